// SPDX-License-Identifier: Apache-2.0
// How do 130,000 kernels fit into a page? Grouped by function: the instances of a template, for all
// architectures, are one row that opens.
#pragma once

#include <vector>

#include "base/json.h"
#include "results/inspect/kernel.h"

namespace kiln::report {

struct KernelGroups {
  // {"name", "count", "sums": [...], "rows": [[...]]}; the order of the values is that of
  // look/inspect.js.
  Json groups = Json::array();
  size_t functions = 0;  // of the file; the largest ones are in `groups`
};

// At most about `max_bytes` of JSON. Every group comes before any second instance, so that a page
// has all functions before it has all instances; the instances with most spills and registers come
// first.
KernelGroups group_kernels(const std::vector<results::KernelFacts>& kernels, size_t max_bytes);

}  // namespace kiln::report
