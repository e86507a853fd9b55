// SPDX-License-Identifier: Apache-2.0
// How does a long text reach a person? Through the pager that PAGER names, else `less`.
#pragma once

#include <string>

#include "sys/env.h"
#include "sys/terminal.h"

namespace kiln::sys {

// To stdout when that is not a terminal, or the text fits on the screen, or there is no pager.
// Control characters are escaped first (printable): the text quotes files that nobody vouches for.
void write_paged(std::string text, const Terminal& terminal, const Environment& env);

}  // namespace kiln::sys
