// SPDX-License-Identifier: Apache-2.0
// In which ways is a good text of PTX broken? Nesting without end, huge operands, lost and foreign
// tokens.
#pragma once

#include <string>

#include "grammar.h"

namespace kiln::fuzz {

void break_ptx(Choices& choices, const Knobs& knobs, std::string& text);

}  // namespace kiln::fuzz
