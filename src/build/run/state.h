// SPDX-License-Identifier: Apache-2.0
// Can it be proved, without ninja, that nothing has changed since the last build? By a record of
// every file that took part.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/files.h"

namespace kiln::build {

struct SeenFile {
  sys::fs::path path;
  sys::FileState state;
};

struct BuildState {
  std::string key;                    // of the ninja file and the circumstances
  sys::fs::path result;               // the published file
  std::vector<SeenFile> files;        // inputs and results
  std::vector<sys::fs::path> absent;  // where a header was looked for in vain
};

inline constexpr std::string_view kStateFile = "state.txt";

std::string write_state(const BuildState& state);
// Nothing when the text is of another version or damaged: then ninja decides.
std::optional<BuildState> parse_state(std::string_view text);

// Size, both times and inode.
bool is_same(const sys::FileState& a, const sys::FileState& b);

// The first file that is not as it was, or that appeared; or nothing.
std::optional<sys::fs::path> first_change(const sys::Files& files, const BuildState& state);

}  // namespace kiln::build
