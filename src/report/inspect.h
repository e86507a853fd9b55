// SPDX-License-Identifier: Apache-2.0
// How is an inspected file shown? As a page, and its bytes as a picture.
#pragma once

#include <string>

#include "results/inspection.h"

namespace kiln::report {

// Style, script, pictures and data are in it.
std::string inspect_page(const results::Inspection& inspection);

// A whole SVG document: the file as one bar, its fat binary as a second one, a legend with sizes.
// Colours suit light and dark pages.
std::string bytes_picture(const results::FileBytes& file);

}  // namespace kiln::report
