// SPDX-License-Identifier: Apache-2.0
// Can it be proved, without ninja, that nothing has changed since the last build? By the union of
// what its steps read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "build/cache/reads.h"
#include "sys/files.h"

namespace kiln::build {

struct BuildState {
  std::string key;       // of the ninja file and the circumstances
  sys::fs::path result;  // the published file
  Reads reads;           // of all steps, by state; also the result and the compilers
};

inline constexpr std::string_view kStateFile = "state.txt";

std::string write_state(const BuildState& state);
// Nothing when the text is of another version or damaged: then each step is looked at.
std::optional<BuildState> parse_state(std::string_view text);

}  // namespace kiln::build
