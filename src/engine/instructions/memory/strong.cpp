// SPDX-License-Identifier: Apache-2.0
// How are vectors accessed that other threads may access: by ld and st with .relaxed, .acquire,
// .release, .volatile or past the L1? (PTX ISA 8, 9.7.9.8) The bytes of a lane as one (whole.h).
#include <bit>

#include "engine/instructions/lowerings.h"
#include "engine/instructions/memory/memory_values.h"
#include "engine/machine/access.h"
#include "engine/numbers/whole.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace kiln::engine {

bool plain_accesses_are_whole() {
#if defined(__aarch64__)
  static const bool kWhole = (getauxval(AT_HWCAP) & HWCAP_USCAT) != 0;
#else
  static const bool kWhole = __builtin_cpu_supports("avx");
#endif
  return kWhole;
}

namespace {

std::byte* place_of_lane(Shape shape, std::byte* (&pointer)[kWarpSize], uint32_t lane,
                         uint32_t bytes) {
  return shape == Shape::Contiguous ? pointer[0] + size_t{lane} * bytes
         : shape == Shape::Uniform  ? pointer[0]
                                    : pointer[lane];
}

template <class M, class R>
const Op* run_load_strong(Warp& warp, const Op* op) {
  const Elements& elements = *static_cast<const Elements*>(op->data);
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * elements.count;
  std::byte* pointer[kWarpSize];
  const Shape shape = locate(warp, op, bytes, Access::Read, pointer);
  if (shape == Shape::Fault) return nullptr;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    std::byte value[kMostElements * sizeof(uint64_t)];
    load_as_one(place_of_lane(shape, pointer, lane, bytes), value, bytes);
    for (uint32_t e = 0; e < elements.count; ++e)
      warp.lanes<R>(elements.slots[e])[lane] = widen<M, R>(value + e * sizeof(M));
  }
  return op + 1;
}

template <class M, class R>
const Op* run_store_strong(Warp& warp, const Op* op) {
  const Elements& elements = *static_cast<const Elements*>(op->data);
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * elements.count;
  std::byte* pointer[kWarpSize];
  const Shape shape = locate(warp, op, bytes, Access::Write, pointer);
  if (shape == Shape::Fault) return nullptr;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    std::byte value[kMostElements * sizeof(uint64_t)];
    for (uint32_t e = 0; e < elements.count; ++e)
      narrow<M, R>(value + e * sizeof(M),
                   warp.lanes<R>(elements.slots[e])[elements.uniform[e] ? 0 : lane]);
    store_as_one(place_of_lane(shape, pointer, lane, bytes), value, bytes);
  }
  return op + 1;
}

}  // namespace

bool is_strong(const Lowering& l) {
  for (std::string_view order :
       {"relaxed", "acquire", "release", "volatile", "mmio", "cg", "cv", "wt"}) {
    if (l.has(order)) return true;
  }
  return false;
}

Handler strong_vector_load(Lowering& l, uint32_t register_bytes) {
  Handler handler = nullptr;
  with_memory_types(l, register_bytes, [&](auto m, auto r) {
    handler = &run_load_strong<decltype(m), decltype(r)>;
    return true;
  });
  return handler;
}

Handler strong_vector_store(Lowering& l, uint32_t register_bytes) {
  Handler handler = nullptr;
  with_memory_types(l, register_bytes, [&](auto m, auto r) {
    handler = &run_store_strong<decltype(m), decltype(r)>;
    return true;
  });
  return handler;
}

}  // namespace kiln::engine
