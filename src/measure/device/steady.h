// SPDX-License-Identifier: Apache-2.0
// What time is it for a difference? A clock that nobody sets back.
#pragma once

#include <chrono>

namespace kiln::measure {

inline double steady_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace kiln::measure
