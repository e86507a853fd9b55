// SPDX-License-Identifier: Apache-2.0
// How does one value of a warp become 32 lanes?
#pragma once

#include <cstdint>

#include "engine/program/program.h"

namespace kiln::engine {

Op make_spread(uint32_t from, uint32_t to, uint32_t bytes);
Effect lanes_effect(uint32_t bytes);

}  // namespace kiln::engine
