// SPDX-License-Identifier: Apache-2.0
// How does a file look as a picture? Bars that are as long as what they stand for.
#pragma once

#include <string>

#include "inspect/analysis.h"

namespace kiln::inspect {

// A whole SVG document: the file as one bar, its fat binary as a second one, a legend with sizes.
// Colours suit light and dark pages.
std::string overview_svg(const Analysis& analysis);

// For text in SVG and HTML.
std::string escaped(std::string_view text);

}  // namespace kiln::inspect
