// SPDX-License-Identifier: Apache-2.0
// How do symbols and libraries read, as text and as JSON?
#pragma once

#include "base/json.h"
#include "inspect/needs.h"
#include "inspect/views/text_views.h"

namespace kiln::inspect {

std::string symbols_text(const SymbolView& view, const TextStyle& style);
// The tables as readelf -s shows them, with demangled names.
std::string tables_text(const SymbolView& view);
Json symbols_json(const SymbolView& view);

}  // namespace kiln::inspect
