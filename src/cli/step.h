// SPDX-License-Identifier: Apache-2.0
// How does ninja have one step of a build done? By `kiln step FILE`, which is for builds alone and
// not among the commands.
#pragma once

#include <string>

#include "sys/env.h"

namespace kiln::cli {

// The exit code.
int run_build_step(const std::string& step_file, const sys::Environment& env);

}  // namespace kiln::cli
