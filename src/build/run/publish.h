// SPDX-License-Identifier: Apache-2.0
// Under which path does a finished build appear? A library under one of its own for each content: a
// process that has the former one loaded can load the new one next to it.
#pragma once

#include "build/plan/plan.h"

namespace kiln::build {

// lib<name>.so: always the newest.
fs::path link_path(const Plan& plan);

// `linked` is what the linker made. Returns lib<name>-<hash>.so, or the program's path. Older
// libraries go, but for a few.
Result<fs::path> publish(sys::Files& files, const Plan& plan, const fs::path& linked);

}  // namespace kiln::build
