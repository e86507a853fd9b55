// SPDX-License-Identifier: Apache-2.0
// In which environment does kiln start what it built?
#pragma once

#include "base/result.h"
#include "sys/env.h"

namespace kiln::cli {

// `env` with KILN_ENGINE set to this kiln's engine, where nobody chose another one: the program
// finds the engine that fits it without kiln on PATH.
Result<sys::Environment> program_environment(sys::Environment env);

}  // namespace kiln::cli
