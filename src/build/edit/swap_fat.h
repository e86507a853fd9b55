// SPDX-License-Identifier: Apache-2.0
// How does a linked library get other device code without a linker? ld takes 60 ms; this takes one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kiln::build {

struct FatSwap {
  std::string before, after;  // fat binaries
};

// The library with each `after` in the place of its `before`: over it where all fit; else the
// section that holds them moves behind the end of the file, mapped in the place of a spare note
// segment, and the relocations that point into it and its row in the table of sections follow.
Result<std::string> swap_fat_binaries(std::string_view library, const std::vector<FatSwap>& swaps);

}  // namespace kiln::build
