// SPDX-License-Identifier: Apache-2.0
// What did an edit do to the kernels of a binary? What `kiln diff` found, kernel by kernel.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace kiln::results {

enum class Change { Same, FewerResources, MoreResources, Mixed, Added, Removed };
std::string_view name_of(Change change);

struct Figure {
  std::string name;  // "registers", "spill loads", "integer"
  int64_t before = 0, after = 0;
  int64_t delta() const { return after - before; }
};

struct BlockDiff {
  std::string label;  // of the block in the newer file, or the older one's when it is gone
  std::vector<std::pair<char, std::string>> lines;  // ' ', '-' or '+' and the instruction
  bool changed = false;
};

struct KernelDiff {
  std::string symbol, name, arch;
  Change change = Change::Same;
  bool code_differs = false;
  std::vector<Figure> figures;    // resources; all of them, changed or not
  std::vector<Figure> mix;        // classes that either has
  std::vector<BlockDiff> blocks;  // changed ones, where the listings were given
};

struct FileDiff {
  std::string before, after;
  std::vector<KernelDiff> kernels;
  std::vector<Figure> groups;  // bytes of code, data, SASS, ...
  std::vector<std::string> images_added, images_removed;
  // Kernels are compared for the architectures that both have code for. Where they share none,
  // these say which one of each is.
  std::string before_arch, after_arch;
  std::vector<std::string> only_before, only_after;  // architectures whose kernels are left out
};

Json to_json(const FileDiff& diff);

}  // namespace kiln::results
