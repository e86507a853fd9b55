// SPDX-License-Identifier: Apache-2.0
// Where do the bytes of a multicast copy go? To the same place in each block of the cluster that is
// in a mask.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/memory/memory.h"

namespace kiln::engine {

inline uint64_t at_rank(uint64_t address, uint32_t rank) {
  return (address & ~kPeerBits) | uint64_t{rank + 1} << kPeerShift;
}

template <class Body>
bool for_each_rank(uint64_t ranks, Body body) {
  for (uint64_t rest = ranks & 0xffff; rest; rest &= rest - 1) {
    if (!body(static_cast<uint32_t>(std::countr_zero(rest)))) return false;
  }
  return true;
}

}  // namespace kiln::engine
