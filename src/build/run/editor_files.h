// SPDX-License-Identifier: Apache-2.0
// How does an editor understand a .cu? By compile_commands.json in clang's words; clangd reads no
// nvcc flags.
#pragma once

#include "build/run/work.h"

namespace kiln::build {

// compile_commands.json in the build folder, where it changed. The .clangd of a scaffold points
// there.
Status write_editor_files(const Work& work);

std::string compile_commands(const Plan& plan);

// What --compile-commands leaves in a folder of sources: the rows of `now`, and those of `former`
// that are about other files. `source` names it in errors.
Result<std::string> merged_commands(std::string_view former, std::string_view now,
                                    std::string_view source);

}  // namespace kiln::build
