// SPDX-License-Identifier: Apache-2.0
// How is a comparison of two binaries shown?
#pragma once

#include <string>

#include "results/diff.h"

namespace kiln::report {

struct DiffStyle {
  int columns = 0;  // names are cut to it; 0: never
  bool color = false;
};

// Only what differs: figures with both values, the mix, changed blocks of instructions.
std::string diff_text(const results::FileDiff& diff, const DiffStyle& style);

// One page to attach to a pull request: changed kernels first, then each with its code.
std::string diff_page(const results::FileDiff& diff);

}  // namespace kiln::report
