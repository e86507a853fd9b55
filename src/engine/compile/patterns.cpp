// SPDX-License-Identifier: Apache-2.0
// Do the lanes of a value rise by the same step along a row, and from row to row? Asked each time
// that machine code is entered, so what they would have risen by is computed once.
#include <cstring>

#include "engine/compile/plan.h"

namespace kiln::engine {
namespace {

template <class T>
bool lanes_rise(const std::byte* at, const T* rises) {
  T lanes[kWarpSize];
  std::memcpy(lanes, at, sizeof lanes);
  T differs = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) differs |= lanes[i] ^ (lanes[0] + rises[i]);
  return differs == 0;
}

}  // namespace

Rises::Rises(const Pattern2& steps, uint32_t row_lanes) {
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    wide[i] = static_cast<uint64_t>(steps.step) * (i % row_lanes) +
              static_cast<uint64_t>(steps.row_step) * (i / row_lanes);
    narrow[i] = static_cast<uint32_t>(wide[i]);
  }
}

bool Rises::hold(const std::byte* lanes, uint32_t bytes) const {
  return bytes == 8 ? lanes_rise(lanes, wide) : lanes_rise(lanes, narrow);
}

}  // namespace kiln::engine
