// SPDX-License-Identifier: Apache-2.0
// Which options do all commands share that build something first?
#pragma once

#include "build/plan/request.h"
#include "build/run/outcome.h"
#include "cli/command.h"

namespace kiln::cli {

// Which of them a command takes: what would have no effect there is an unknown option.
struct BuildChoice {
  bool name = true;     // --name
  bool library = true;  // --ldflag, --compat, --findings, --fresh: not for device code alone
  bool explain = true;  // --explain
  bool watch = true;    // --watch
  const char* arch_text =
      "GPU architectures: 9.0, 9.0a, '8.0;9.0+PTX', sm_90, native (default: kiln.toml, "
      "TORCH_CUDA_ARCH_LIST, the GPU present, 8.0)";
};

// --arch, -D, -I, --cuda-flag, --cflag, --fast-math, --build-dir and those chosen, into `request`;
// under a heading of their own in the help. Of a disabled App only the one it is named after.
void add_build_options(CLI::App& app, build::Request& request, const BuildChoice& choice = {});

// Builds with progress on a terminal and the compiler's warnings on stderr, and explains it where
// request.explain is set. Sets request.directory.
Result<build::Outcome> build_for(Context& context, build::Request request);

}  // namespace kiln::cli
