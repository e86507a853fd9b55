// SPDX-License-Identifier: Apache-2.0
// How does a long text reach a person? Through the pager that PAGER names, else `less`.
#pragma once

#include <string_view>

#include "sys/env.h"
#include "sys/terminal.h"

namespace kiln::sys {

// To stdout as it is when that is no terminal, or the text fits on the screen, or there is no pager.
void write_paged(std::string_view text, const Terminal& terminal, const Environment& env);

}  // namespace kiln::sys
