// SPDX-License-Identifier: Apache-2.0
// Which binaries does a word on the command line of `kiln inspect` or `kiln diff` stand for?
#pragma once

#include "build/plan/request.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "inspect/artifact.h"
#include "inspect/sources.h"

namespace kiln::cli {

// A .cu is compiled for its device code alone; nothing of a library is made.
inline constexpr BuildChoice kForBinaries = {
    .name = false,
    .library = false,
    .explain = false,
    .watch = false,
    .arch_text = "GPU architectures: of a source those to compile for, of a binary those to show"};

struct Target {
  std::vector<inspect::Artifact> files;
  bool compiled = false;        // from a .cu, for the architectures of the request
  std::string source;           // that .cu
  std::filesystem::path place;  // where the file or project is; empty for a package
};

// A .cu is compiled (device code alone), a project built, a package looked up. `member`: only files
// with it in their name.
Result<Target> open_target(Context& context, build::Request request, const std::string& word,
                           const std::string& member);

// Of which folders the sources may be shown: the project that the target or the working folder
// belongs to, the folder of a source that was compiled, and what the user named. Who made a binary
// does not choose.
inspect::SourceScope source_scope(const Target& target, const build::Request& request,
                                  const std::vector<std::string>& named, const Context& context);

// Of the GPUs of this machine, as 90.
std::vector<uint32_t> gpus_here(const Context& context);

}  // namespace kiln::cli
