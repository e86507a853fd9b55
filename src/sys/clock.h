// SPDX-License-Identifier: Apache-2.0
// What time is it? Seconds for durations, and the wall clock as files carry it.
#pragma once

#include <chrono>
#include <cstdint>

namespace kiln::sys {

// Steady: for durations only.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Comparable to FileState::mtime_ns.
inline int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace kiln::sys
