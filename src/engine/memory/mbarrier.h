// SPDX-License-Identifier: Apache-2.0
// What do the 64 bits of an mbarrier mean? The layout is the engine's own: bits 0-19 are the
// pending arrivals, 20-39 the arrivals per phase, 40-62 the pending bytes (signed), and 63 is the
// parity of the phase. The blocks of a cluster run on one thread, so no atomics are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kiln::engine {

constexpr uint64_t kArrivalMask = (uint64_t{1} << 20) - 1;

struct Phase {
  uint64_t pending, wanted;
  int64_t bytes;
  uint64_t parity;
};

inline Phase decode_phase(uint64_t word) {
  return {word & kArrivalMask, word >> 20 & kArrivalMask, static_cast<int64_t>(word << 1) >> 41,
          word >> 63};
}

inline uint64_t encode_phase(const Phase& p) {
  return p.pending | p.wanted << 20 |
         (static_cast<uint64_t>(p.bytes) & ((uint64_t{1} << 23) - 1)) << 40 | p.parity << 63;
}

inline void complete_if_done(Phase* p) {
  if (p->pending != 0 || p->bytes != 0) return;
  p->pending = p->wanted;
  p->parity ^= 1;
}

inline Phase phase_at(const std::byte* object) {
  uint64_t word;
  std::memcpy(&word, object, 8);
  return decode_phase(word);
}

// Called when a copy has delivered `bytes` for the current phase of the object.
inline void complete_bytes(std::byte* object, int64_t bytes) {
  Phase p = phase_at(object);
  p.bytes -= bytes;
  complete_if_done(&p);
  const uint64_t word = encode_phase(p);
  std::memcpy(object, &word, 8);
}

}  // namespace kiln::engine
