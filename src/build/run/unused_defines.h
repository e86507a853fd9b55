// SPDX-License-Identifier: Apache-2.0
// Does anything look at a define? A misspelt -D changes nothing and says nothing: the kernel that
// was to get a larger block keeps its default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sys/files.h"

namespace kiln::build {

// For each of "BLOKC=64" whose name is in none of the files: "no file that is compiled mentions
// BLOKC (-D BLOKC=64); did you mean BLOCK?" Files are read in their order, until all are found.
std::vector<std::string> unused_defines(const std::vector<std::string>& defines,
                                        const std::vector<sys::fs::path>& paths,
                                        const sys::Files& files);

}  // namespace kiln::build
