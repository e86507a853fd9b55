// SPDX-License-Identifier: Apache-2.0
// Which instructions can follow which?
#pragma once

#include <cstdint>

#include "engine/program/program.h"

namespace kiln::watch {

// Can lanes that run the instruction of one site come to that of another, in the same function?
bool leads_to(const engine::Program& program, uint32_t from_site, uint32_t to_site);

}  // namespace kiln::watch
