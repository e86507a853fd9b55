// SPDX-License-Identifier: Apache-2.0
// What do shared and local memory contain before a kernel writes them? On a GPU, whatever the last
// block left there. Zeros would hide that a kernel reads memory before it writes it, so it is
// junk here, the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kiln::engine {

// A NaN as f16, bf16, f32 and f64; far out of range as a 32-bit or 64-bit index, signed or
// unsigned.
constexpr uint64_t kJunk = 0x7ffd7ffd7ffd7ffd;

inline void fill_memory(std::byte* to, uint64_t bytes, uint64_t word) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8) std::memcpy(to + at, &word, 8);
  if (at < bytes) std::memcpy(to + at, &word, bytes - at);
}

}  // namespace kiln::engine
