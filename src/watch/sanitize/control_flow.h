// SPDX-License-Identifier: Apache-2.0
// Which instructions can follow which?
#pragma once

#include <cstdint>

#include "engine/program/program.h"

namespace kiln::watch {

// Can lanes that run the instruction of one site come to that of another, in the same function?
bool leads_to(const engine::Program& program, uint32_t from_site, uint32_t to_site);
// Is all that follows, from this site to the function's end, of several lines of the source at
// once? A compiler that merges the ends of two ways gives what they have in common the line 0.
bool is_merged_end(const engine::Program& program, uint32_t site);

}  // namespace kiln::watch
