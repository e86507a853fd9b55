// SPDX-License-Identifier: Apache-2.0
// What of a file goes on its page? As much as a page can hold; the text views and --json have the
// rest.
#pragma once

#include <optional>

#include "inspect/analysis.h"
#include "inspect/needs.h"
#include "inspect/sources.h"
#include "inspect/views/code_views.h"
#include "results/inspection.h"

namespace kiln::inspect {

struct PageInput {
  const Analysis& analysis;
  const CodeList& code;
  std::optional<SymbolView> symbols;  // none for device code alone
  std::vector<uint32_t> gpus;
  uint32_t block_threads = 256;
};

// Of the sources what `sources` gives.
results::Inspection inspection_of(const PageInput& input, Sources& sources);

results::FileBytes file_bytes_of(const Analysis& analysis);

}  // namespace kiln::inspect
