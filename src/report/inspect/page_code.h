// SPDX-License-Identifier: Apache-2.0
// How does the code of kernels get into a page? As data with each file and each name once, which
// the page's script turns into linked panes.
#pragma once

#include "base/json.h"
#include "results/inspect/code.h"

namespace kiln::report {

struct PageCode {
  Json files = Json::array(), names = Json::array(), code = Json::array();
};

PageCode page_code(const results::CodeList& code);

}  // namespace kiln::report
