// SPDX-License-Identifier: Apache-2.0
// How do all views fit into one HTML page that needs nothing else?
#pragma once

#include <optional>
#include <string>

#include "inspect/analysis.h"
#include "inspect/needs.h"
#include "inspect/sources.h"
#include "inspect/views/code_views.h"

namespace kiln::inspect {

struct PageInput {
  const Analysis& analysis;
  const CodeList& code;
  std::optional<SymbolView> symbols;  // none for device code alone
  std::vector<uint32_t> gpus;
  uint32_t block_threads = 256;
};

// No network, no other file: style, script, pictures and data are in it; of the sources what
// `sources` gives.
std::string make_page(const PageInput& input, Sources& sources);

}  // namespace kiln::inspect
