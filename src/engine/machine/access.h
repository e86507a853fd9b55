// SPDX-License-Identifier: Apache-2.0
// How does the address of an Op become memory of this process? Bounds, rights and alignment are
// checked before anything is touched.
#pragma once

#include <cstdint>
#include <string>

#include "engine/machine/affine.h"
#include "engine/machine/fault.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

// Bits of Op::x of Ops with an address in `a` and `imm`.
constexpr uint8_t kAddressUniform = 1;
constexpr uint8_t kAddress32 = 2;
constexpr uint8_t kAddressAffine = 4;  // `a` is a header (affine.h)
constexpr uint8_t kAddressRows = 8;    // the same, for a value with a step from row to row

inline uint8_t address_flags(bool uniform, bool affine, bool rows, uint32_t bytes) {
  return static_cast<uint8_t>((uniform ? kAddressUniform : 0) | (bytes == 4 ? kAddress32 : 0) |
                              (!affine ? 0
                               : rows  ? kAddressRows
                                       : kAddressAffine));
}

enum class Shape : uint8_t {
  Fault,
  Uniform,     // all lanes at pointer[0]
  Contiguous,  // lane i at pointer[0] + i * bytes, all lanes active
  Scattered    // the active lanes at pointer[i]
};

// Finds the bytes of each active lane. `space` is in Op::z.
Shape locate(Warp& warp, const Op* op, uint32_t bytes, Access access,
             std::byte* (&pointer)[kWarpSize]);

// The common cases, without a call: all lanes are active, and the address is a scalar or base and
// step. Fault only means that the caller must use locate().
[[gnu::always_inline]] inline Shape locate_at_once(Warp& warp, const Op* op, uint32_t bytes,
                                                   bool write, std::byte** pointer) {
  if (warp.mask != kFullMask || !(op->x & (kAddressUniform | kAddressAffine))) return Shape::Fault;
  const auto space = static_cast<ptx::Space>(op->z);
  uint64_t first, step = 0;
  if (op->x & kAddressAffine) {
    const Affine& value = affine_at(warp, op->a);
    if (value.state == AffineState::Lanes) return Shape::Fault;
    first = value.base;
    step = value.step;
  } else {
    first = *warp.lanes<uint64_t>(op->a);
  }
  if (step != 0 && step != bytes) return Shape::Fault;
  const uint64_t all = step ? uint64_t{bytes} * kWarpSize : bytes;
  first += static_cast<uint64_t>(op->imm);
  if (op->x & kAddress32) first &= 0xffffffffu;
  if (first & (bytes - 1)) return Shape::Fault;
  if (space == ptx::Space::Shared) {
    const uint64_t limit = warp.block->shared_bytes;
    if (first > limit || limit - first < all) return Shape::Fault;
    *pointer = warp.block->shared + first;
  } else {
    // A region never overlaps the tagged windows, so what it contains is global memory.
    const Worker::CachedRegion& cached = warp.worker->cached(op);
    if (space == ptx::Space::Local || first < cached.begin || first >= cached.end ||
        cached.end - first < all || (write && !cached.writable)) {
      return Shape::Fault;
    }
    *pointer = reinterpret_cast<std::byte*>(first);
  }
  return step ? Shape::Contiguous : Shape::Uniform;
}

// The most common cases: 32 neighbours, or one place, in shared memory. They return null if the
// caller must use locate().
template <class T>
[[gnu::always_inline]] inline std::byte* shared_neighbours(Warp& warp, const Op* op) {
  const Affine& value = affine_at(warp, op->a);
  if (warp.mask != kFullMask || value.state == AffineState::Lanes) return nullptr;
  if (static_cast<uint32_t>(value.step) != sizeof(T)) return nullptr;
  uint64_t first = value.base + static_cast<uint64_t>(op->imm);
  if (op->x & kAddress32) first &= 0xffffffffu;
  const uint64_t limit = warp.block->shared_bytes;
  if ((first & (sizeof(T) - 1)) || first > limit || limit - first < sizeof(T) * kWarpSize)
    return nullptr;
  return warp.block->shared + first;
}
// 32 neighbours in global memory, at a 64-bit address; a region never overlaps the tagged windows.
template <class T, bool kWrite>
[[gnu::always_inline]] inline std::byte* global_neighbours(Warp& warp, const Op* op) {
  const Affine& value = affine_at(warp, op->a);
  const uint64_t first = value.base + static_cast<uint64_t>(op->imm);
  const Worker::CachedRegion& cached = warp.worker->cached(op);
  const bool good = warp.mask == kFullMask && value.state != AffineState::Lanes &&
                    value.step == sizeof(T) && (first & (sizeof(T) - 1)) == 0 &&
                    first >= cached.begin && first < cached.end &&
                    cached.end - first >= sizeof(T) * kWarpSize && (!kWrite || cached.writable);
  return good ? reinterpret_cast<std::byte*>(first) : nullptr;
}
template <class T>
[[gnu::always_inline]] inline std::byte* shared_place(Warp& warp, const Op* op) {
  uint64_t at = *warp.lanes<uint64_t>(op->a) + static_cast<uint64_t>(op->imm);
  if (op->x & kAddress32) at &= 0xffffffffu;
  const uint64_t limit = warp.block->shared_bytes;
  if ((at & (sizeof(T) - 1)) || at > limit || limit - at < sizeof(T)) return nullptr;
  return warp.block->shared + at;
}

// One address in local memory, which is a different place for each lane. Returns the place of lane
// 0; those of the next lanes are Warp::local_stride apart. Null: the caller must use locate().
template <class T>
[[gnu::always_inline]] inline std::byte* local_column(Warp& warp, const Op* op) {
  if (static_cast<ptx::Space>(op->z) != ptx::Space::Local || !(op->x & kAddressUniform))
    return nullptr;
  uint64_t at = op->x & kAddress32 ? *warp.lanes<uint32_t>(op->a) : *warp.lanes<uint64_t>(op->a);
  at += static_cast<uint64_t>(op->imm);
  if (op->x & kAddress32) at &= 0xffffffffu;
  if ((at & (sizeof(T) - 1)) || at > warp.local_limit || warp.local_limit - at < sizeof(T))
    return nullptr;
  return warp.local.data() + at;
}

// The lanes of each row access neighbours, or all the same place. Everything has been checked.
struct RowPlaces {
  std::byte* first;  // of the first row
  int64_t row_step;
  uint32_t row_lanes;
  bool neighbours;
};
// For Ops with kAddressRows. Returns false if the caller must use locate().
bool locate_rows(Warp& warp, const Op* op, uint32_t bytes, bool write, RowPlaces* out);

// One lane in any space, aligned to `align`. Returns null if a fault was reported.
std::byte* locate_at(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                     uint32_t bytes, uint32_t align, Access access);
// One lane at a generic address. Returns null if a fault was reported.
std::byte* locate_generic(Warp& warp, const Op* op, uint32_t lane, uint64_t address, uint32_t bytes,
                          Access access);
// Reads the NUL-terminated text at a generic address, at most `most` bytes of it. Returns false if
// a fault was reported.
bool read_text(Warp& warp, const Op* op, uint32_t lane, uint64_t address, size_t most,
               std::string* out);

}  // namespace kiln::engine
