// SPDX-License-Identifier: Apache-2.0
// How is a cold start shown? A table with a waterfall of bars, and what can be done about it.
#pragma once

#include <string>

#include "results/cold.h"

namespace kiln::report {

std::string cold_text(const results::ColdResult& result);
std::string cold_page(const results::ColdResult& result);

}  // namespace kiln::report
