// SPDX-License-Identifier: Apache-2.0
// What does a message call a file? What the command line calls it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace kiln::cli {

// Full paths in `text` become what `words` call them, or else are relative to `directory`, the
// working folder. `directory` alone stays: "there is no kiln.toml in /src/x" says where.
std::string as_written(const std::string& text, const std::vector<std::string>& words,
                       const std::filesystem::path& directory);

// The same for an error's what, why and fix.
Error as_written(Error error, const std::vector<std::string>& words,
                 const std::filesystem::path& directory);

}  // namespace kiln::cli
