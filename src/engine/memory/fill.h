// SPDX-License-Identifier: Apache-2.0
// What does shared and local memory hold before anybody has written it? On a GPU whatever the last
// block left there. Zeros would make a kernel that forgot to write look right, so it is junk here,
// and the same junk in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kiln::engine {

// NaN as f16, bf16, f32 and f64; an index far outside of everything as 32 or 64 bits, signed or
// not.
constexpr uint64_t kJunk = 0x7ffd7ffd7ffd7ffd;

inline void fill_memory(std::byte* to, uint64_t bytes, uint64_t word) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8) std::memcpy(to + at, &word, 8);
  if (at < bytes) std::memcpy(to + at, &word, bytes - at);
}

}  // namespace kiln::engine
