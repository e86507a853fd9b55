// SPDX-License-Identifier: Apache-2.0
// How is an inspected file shown? As text by view, as a page, and its bytes as a picture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/inspect/code.h"
#include "results/inspect/kernel.h"
#include "results/inspect/overview.h"
#include "results/inspect/symbols.h"
#include "results/inspection.h"

namespace kiln::report {

struct InspectStyle {
  int columns = 0;  // names are cut to it; 0: never
  bool color = false;
  bool verbose = false;

  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
};

std::string overview_text(const results::Overview& overview, const InspectStyle& style);

// `faults`: images whose kernels could not be read.
std::string kernels_text(const std::vector<results::KernelFacts>& kernels,
                         const std::vector<std::string>& faults, const InspectStyle& style);

std::string symbols_text(const results::Symbols& symbols, const InspectStyle& style);
// The tables as readelf -s shows them, with demangled names.
std::string tables_text(const results::Symbols& symbols);

// PTX of one kernel or more; `filter` is what their names were asked to have.
std::string ptx_text(const std::vector<results::PtxText>& images, const std::string& filter,
                     const InspectStyle& style);
// Instructions with control codes, live registers and source lines; the text of these where the
// list has it.
std::string sass_text(const results::CodeList& code, const InspectStyle& style);

// Style, script, pictures and data are in it.
std::string inspect_page(const results::Inspection& inspection);

// A whole SVG document: the file as one bar, its fat binary as a second one, a legend with sizes.
// Colours suit light and dark pages.
std::string bytes_picture(const results::FileBytes& file);

}  // namespace kiln::report
