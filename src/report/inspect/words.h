// SPDX-License-Identifier: Apache-2.0
// Which words do the text and the page of an inspected file share?
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/inspect/kernel.h"
#include "results/inspect/overview.h"

namespace kiln::report {

// What the file's device code needs: "driver" and a version, "here" and what this machine does.
std::vector<std::pair<std::string, std::string>> service_notes(const results::Overview& overview);

// "<= 1024", "= 16x16, 2" with the blocks that a multiprocessor must hold, "" without
std::string bounds_text(const results::KernelFacts& kernel);

// "12 integer", "3 move": the most frequent class first.
std::vector<std::string> mix_items(const results::KernelFacts& kernel);

// Items with commas between, broken between them where a line is full; further lines begin below
// the first item.
std::string listed_items(const std::string& head, const std::vector<std::string>& items,
                         int columns);

// "cut…"
std::string fitted_name(std::string_view text, int columns);

}  // namespace kiln::report
