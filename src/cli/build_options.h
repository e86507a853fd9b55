// SPDX-License-Identifier: Apache-2.0
// Which options do all commands share that build something first?
#pragma once

#include "build/plan/request.h"
#include "build/run/outcome.h"
#include "cli/command.h"

namespace kiln::cli {

// --name, --arch, -D, -I, --cuda-flag, --cflag, --ldflag, --fast-math, --build-dir, into `request`;
// under a heading of their own in the help of a command that does more than build.
void add_build_options(CLI::App& app, build::Request& request,
                       const char* heading = "Build options");

// Builds with progress on a terminal and the compiler's warnings on stderr. Sets request.directory.
Result<build::Outcome> build_for(Context& context, build::Request request);

}  // namespace kiln::cli
