// SPDX-License-Identifier: Apache-2.0
// How are up to 16 bytes accessed as one? A GPU reads and writes the vector of a lane at once, and
// programs rely on it: CUB's look-back has a flag and its value next to each other in
// ld.relaxed.v2.u64. Other threads of the host run other blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kiln::engine {

struct Whole {
  uint64_t low, high;
  bool operator==(const Whole&) const = default;
};

// Is an aligned load or store of 16 bytes a single access? True on x86 with AVX and aarch64 with
// LSE2.
bool plain_accesses_are_whole();

// Stores `next` if the old value is `wanted`, and returns the old value. `at` is a multiple of 16.
inline Whole compare_and_swap(std::byte* at, Whole wanted, Whole next) {
#if defined(__aarch64__)
  Whole seen, put;
  uint32_t failed;
  asm volatile(
      "1: ldaxp %[low], %[high], [%[at]]\n"
      "cmp %[low], %[wanted_low]\n"
      "ccmp %[high], %[wanted_high], #0, eq\n"
      "csel %[put_low], %[next_low], %[low], eq\n"
      "csel %[put_high], %[next_high], %[high], eq\n"
      "stlxp %w[failed], %[put_low], %[put_high], [%[at]]\n"
      "cbnz %w[failed], 1b"
      : [low] "=&r"(seen.low), [high] "=&r"(seen.high), [put_low] "=&r"(put.low),
        [put_high] "=&r"(put.high), [failed] "=&r"(failed)
      : [at] "r"(at), [wanted_low] "r"(wanted.low), [wanted_high] "r"(wanted.high),
        [next_low] "r"(next.low), [next_high] "r"(next.high)
      : "cc", "memory");
  return seen;
#else
  Whole seen = wanted;
  asm volatile("lock cmpxchg16b (%[at])"
               : "+a"(seen.low), "+d"(seen.high)
               : [at] "r"(at), "b"(next.low), "c"(next.high)
               : "cc", "memory");
  return seen;
#endif
}

inline Whole load_whole(std::byte* at) {
  if (!plain_accesses_are_whole()) return compare_and_swap(at, {0, 0}, {0, 0});
  Whole value;
#if defined(__aarch64__)
  asm volatile("ldp %0, %1, [%2]" : "=r"(value.low), "=r"(value.high) : "r"(at) : "memory");
#else
  asm volatile("movdqa (%[at]), %%xmm0\nmovdqu %%xmm0, %[to]"
               : [to] "=m"(value)
               : [at] "r"(at)
               : "xmm0", "memory");
#endif
  return value;
}

inline void store_whole(std::byte* at, Whole value) {
  if (!plain_accesses_are_whole()) {
    Whole seen = load_whole(at);
    for (Whole found = compare_and_swap(at, seen, value); found != seen;
         found = compare_and_swap(at, seen, value)) {
      seen = found;
    }
    return;
  }
#if defined(__aarch64__)
  asm volatile("stp %0, %1, [%2]" ::"r"(value.low), "r"(value.high), "r"(at) : "memory");
#else
  asm volatile("movdqu (%[from]), %%xmm0\nmovdqa %%xmm0, (%[at])" ::[from] "r"(&value), [at] "r"(at)
               : "xmm0", "memory");
#endif
}

// Accesses `bytes` bytes of one lane, in as few accesses as possible. Unaligned bytes are the
// lane's own memory.
inline void load_as_one(std::byte* from, std::byte* to, uint32_t bytes) {
  const auto place = reinterpret_cast<uintptr_t>(from);
  if (bytes % 16 == 0 && place % 16 == 0) {
    for (uint32_t at = 0; at < bytes; at += 16) {
      const Whole value = load_whole(from + at);
      std::memcpy(to + at, &value, 16);
    }
  } else if (bytes == 8 && place % 8 == 0) {
    const uint64_t value = __atomic_load_n(reinterpret_cast<uint64_t*>(from), __ATOMIC_RELAXED);
    std::memcpy(to, &value, 8);
  } else if (bytes == 4 && place % 4 == 0) {
    const uint32_t value = __atomic_load_n(reinterpret_cast<uint32_t*>(from), __ATOMIC_RELAXED);
    std::memcpy(to, &value, 4);
  } else {
    std::memcpy(to, from, bytes);
  }
}

inline void store_as_one(std::byte* to, const std::byte* from, uint32_t bytes) {
  const auto place = reinterpret_cast<uintptr_t>(to);
  if (bytes % 16 == 0 && place % 16 == 0) {
    for (uint32_t at = 0; at < bytes; at += 16) {
      Whole value;
      std::memcpy(&value, from + at, 16);
      store_whole(to + at, value);
    }
  } else if (bytes == 8 && place % 8 == 0) {
    uint64_t value;
    std::memcpy(&value, from, 8);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), value, __ATOMIC_RELAXED);
  } else if (bytes == 4 && place % 4 == 0) {
    uint32_t value;
    std::memcpy(&value, from, 4);
    __atomic_store_n(reinterpret_cast<uint32_t*>(to), value, __ATOMIC_RELAXED);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace kiln::engine
