// SPDX-License-Identifier: Apache-2.0
// What does the page of `kiln inspect --html` show of a file? Its bytes, kernels, code and symbols.
#pragma once

#include <optional>
#include <vector>

#include "results/inspect/code.h"
#include "results/inspect/kernel.h"
#include "results/inspect/overview.h"
#include "results/inspect/symbols.h"

namespace kiln::results {

struct Inspection {
  Overview overview;
  std::vector<KernelFacts> kernels;
  CodeList code;                   // with the sources that may be shown
  std::optional<Symbols> symbols;  // none for device code alone
};

}  // namespace kiln::results
