// SPDX-License-Identifier: Apache-2.0
// How are the addresses of 32 lanes checked and turned into pointers?
#include "engine/machine/access.h"

#include <algorithm>
#include <bit>

#include "engine/machine/affine.h"
#include "engine/machine/lane_masks.h"
#include "engine/memory/fill.h"

namespace kiln::engine {
namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

bool allowed(Warp& warp, const Op* op, uint64_t address, uint64_t bytes, bool write) {
  Worker::CachedRegion& cached = warp.worker->cached(op);
  if (address >= cached.begin && address < cached.end && cached.end - address >= bytes &&
      (cached.writable || !write)) {
    return true;
  }
  auto region = warp.block->grid->memory.find(address, bytes, write);
  if (!region) return false;
  cached = {region->begin, region->end, region->writable};
  return true;
}

// Returns the block of the cluster that has this address, and makes the address relative to it.
const Block& shared_owner(Warp& warp, uint64_t* address) {
  const uint64_t peer = *address >> kPeerShift;
  const Cluster* cluster = warp.block->cluster.get();
  const uint64_t count = cluster ? cluster->blocks.size() : 0;
  if (peer == 0 || peer > std::max<uint64_t>(count, 1)) return *warp.block;
  *address &= (uint64_t{1} << kPeerShift) - 1;
  return cluster ? *cluster->blocks[peer - 1] : *warp.block;
}

// Like kJunk, a NaN; as an int it is -3. A loop with this as its limit ends at once, and one that
// starts with it ends soon. With kJunk it would run two billion steps and never reach the code
// after it.
constexpr uint64_t kBadRead = 0xfffffffdfffffffd;

// Where a kernel that continues after a bad address reads and writes instead: memory that nothing
// else uses, filled with junk each time. Returns null if the kernel does not continue.
[[gnu::cold]] std::byte* junk_for(Warp& warp, const Op* goes_on, uint32_t bytes) {
  if (!goes_on) return nullptr;
  std::byte* junk = warp.worker->junk(bytes);
  fill_memory(junk, bytes, kBadRead);
  return junk;
}

}  // namespace

// The only place where a PTX address becomes an address of this process. All errors are found here,
// before memory is touched.
std::byte* locate_at(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                     uint32_t bytes, uint32_t align, Access access) {
  if (space == ptx::Space::Generic) {
    uint64_t tag = address >> 56;
    if (tag == kSharedTag) {
      space = ptx::Space::Shared;
      address &= ~kSharedWindow;
    } else if (tag == kLocalTag) {
      space = ptx::Space::Local;
      address &= ~kLocalWindow;
    } else {
      space = ptx::Space::Global;
    }
  }
  bool is_aligned = (address & (align - 1)) == 0;
  switch (space) {
    case ptx::Space::Shared: {
      const Block& block = shared_owner(warp, &address);
      if (address > block.shared_bytes || block.shared_bytes - address < bytes) {
        return junk_for(warp, out_of_bounds(warp, op, lane, space, access, address, bytes), bytes);
      }
      if (!is_aligned) break;
      return block.shared + address;
    }
    case ptx::Space::Local:
      if (address > warp.local_limit || warp.local_limit - address < bytes) {
        return junk_for(warp, out_of_bounds(warp, op, lane, space, access, address, bytes), bytes);
      }
      if (!is_aligned) break;
      return warp.local.data() + size_t{lane} * warp.local_stride + address;
    default:
      if (!allowed(warp, op, address, bytes, access != Access::Read)) {
        return junk_for(warp, out_of_bounds(warp, op, lane, space, access, address, bytes), bytes);
      }
      if (!is_aligned) break;
      return reinterpret_cast<std::byte*>(address);
  }
  return junk_for(warp, misaligned(warp, op, lane, space, access, address, bytes), bytes);
}

namespace {

std::byte* locate_lane(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                       uint32_t bytes, Access access) {
  return locate_at(warp, op, lane, space, address, bytes, bytes, access);
}

// What the 32 addresses have in common. The compiler turns these loops into vector code.
template <class A>
struct Pattern {
  bool contiguous, same;
  A low_bits;  // all addresses, ORed: shows their alignment
};

template <class A>
Pattern<A> pattern_of(const A* address, uint32_t bytes) {
  const A base = address[0];
  A steps = 0, differs = 0, low = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    steps |= address[i] ^ (base + static_cast<A>(i) * static_cast<A>(bytes));
    differs |= address[i] ^ base;
    low |= address[i];
  }
  return {steps == 0, differs == 0, low};
}

template <class A>
struct Ends {
  A least, most;
};
template <class A>
Ends<A> ends_of(const A* address) {
  A least = address[0], most = address[0];
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    least = address[i] < least ? address[i] : least;
    most = address[i] > most ? address[i] : most;
  }
  return {least, most};
}

// Each lane by itself, in shared memory or in the region that the Op accessed last. Usually all
// lanes are inside, and aligned. A region never overlaps the tagged windows.
template <class A>
bool locate_each(Warp& warp, const Op* op, const A* address, uint32_t bytes, bool write,
                 std::byte* (&pointer)[kWarpSize]) {
  const auto space = static_cast<ptx::Space>(op->z);
  uint64_t begin = 0, end = warp.block->shared_bytes, move = 0;
  if (space == ptx::Space::Shared) {
    move = reinterpret_cast<uint64_t>(warp.block->shared);
  } else {
    const Worker::CachedRegion& cached = warp.worker->cached(op);
    if (space == ptx::Space::Local || (write && !cached.writable)) return false;
    begin = cached.begin, end = cached.end;
  }
  if (end < begin || end - begin < bytes) return false;
  const uint64_t most = end - begin - bytes, low = bytes - 1;
  uint64_t bad = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const uint64_t at = static_cast<A>(address[i] + static_cast<A>(op->imm));
    const uint64_t runs = (warp.mask & kPartBits<uint64_t>[i]) != 0 ? ~uint64_t{0} : 0;
    bad |= ((at - begin > most ? 1 : 0) | (at & low)) & runs;
    pointer[i] = reinterpret_cast<std::byte*>(at + move);
  }
  return bad == 0;
}

// Each lane in its own local memory, at the address relative to `window`.
template <class A>
bool locate_local(Warp& warp, const A* address, uint64_t offset, uint64_t window, uint32_t bytes,
                  std::byte* (&pointer)[kWarpSize]) {
  if (warp.local_limit < bytes) return false;
  const uint64_t most = warp.local_limit - bytes, stride = warp.local_stride;
  std::byte* const first = warp.local.data();
  uint64_t beyond = 0, low = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const uint64_t at = static_cast<A>(address[i] + static_cast<A>(offset)) - window;
    beyond |= at > most ? 1 : 0;
    low |= at;
    pointer[i] = reinterpret_cast<std::byte*>(reinterpret_cast<uint64_t>(first) + i * stride + at);
  }
  return beyond == 0 && (low & (bytes - 1)) == 0;
}

bool is_local(ptx::Space space, uint64_t address) {
  return space == ptx::Space::Local ||
         (space == ptx::Space::Generic && (address >> 56) == kLocalTag);
}

// Checks three of the addresses: might they be neighbours, or all the same?
template <class A>
bool may_be_together(const A* address, uint32_t bytes) {
  const A step = address[1] - address[0], all = address[kWarpSize - 1] - address[0];
  return (step == bytes && all == bytes * (kWarpSize - 1)) || (step == 0 && all == 0);
}

template <class A>
Shape locate_lanes(Warp& warp, const Op* op, uint32_t bytes, Access access,
                   std::byte* (&pointer)[kWarpSize]) {
  const auto space = static_cast<ptx::Space>(op->z);
  const uint64_t offset = static_cast<uint64_t>(op->imm);
  const A* address =
      warp.lanes<A>(op->x & (kAddressAffine | kAddressRows) ? op->a + kAffineLanes : op->a);
  const bool together = warp.mask == kFullMask && may_be_together(address, bytes);
  if (!together && locate_each(warp, op, address, bytes, access != Access::Read, pointer))
    return Shape::Scattered;
  A filled[kWarpSize];
  if (warp.mask != kFullMask) {  // inactive lanes take the address of an active one
    select_lanes<A, false, true>(filled, address, &address[first_lane(warp.mask)], warp.mask);
    address = filled;
  }
  if (is_local(space, address[0] + offset)) {
    const uint64_t window = space == ptx::Space::Local ? 0 : kLocalWindow;
    if (locate_local(warp, address, offset, window, bytes, pointer)) return Shape::Scattered;
  }
  const Pattern<A> pattern = pattern_of(address, bytes);
  const bool is_aligned = ((pattern.low_bits | offset) & (bytes - 1)) == 0;
  const bool is_scattered = !pattern.contiguous && !pattern.same;
  const uint64_t wrap = sizeof(A) == 4 ? 0xffffffffu : ~uint64_t{0};
  const Ends<A> ends = is_scattered ? ends_of(address) : Ends<A>{address[0], address[0]};
  const uint64_t first = (ends.least + offset) & wrap;
  const uint64_t all =
      pattern.contiguous ? uint64_t{bytes} * kWarpSize : uint64_t{ends.most} - ends.least + bytes;
  // Checks the whole range at once: is it inside shared memory, or inside one region?
  std::byte* base = nullptr;
  if (is_aligned && first + (all - 1) <= wrap && first + (all - 1) >= first) {
    if (space == ptx::Space::Shared) {
      if (first <= warp.block->shared_bytes && warp.block->shared_bytes - first >= all)
        base = warp.block->shared + first;
    } else if (space != ptx::Space::Local && (first >> 56) == 0 && ((first + all) >> 56) == 0 &&
               allowed(warp, op, first, all, access != Access::Read)) {
      base = reinterpret_cast<std::byte*>(first);
    }
  }
  if (base) {
    pointer[0] = base;
    if (pattern.same) return Shape::Uniform;
    if (pattern.contiguous && warp.mask == kFullMask) return Shape::Contiguous;
    for (uint32_t i = 0; i < kWarpSize; ++i) pointer[i] = base + (address[i] - ends.least);
    return Shape::Scattered;
  }
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    uint64_t at = (address[lane] + offset) & wrap;
    pointer[lane] = locate_lane(warp, op, lane, space, at, bytes, access);
    if (!pointer[lane]) return Shape::Fault;
  }
  return Shape::Scattered;
}

}  // namespace

namespace {

constexpr uint64_t kFarthest = 1 << 24;  // from lane to lane

// Base and step are enough for neighbours in memory, one place, or places at equal distances.
// Inactive lanes must be inside as well. Everything else goes by lanes.
bool locate_affine(Warp& warp, const Op* op, uint32_t bytes, Access access,
                   std::byte* (&pointer)[kWarpSize], Shape* shape) {
  const Affine& value = affine_at(warp, op->a);
  if (value.state == AffineState::Lanes) return false;
  const bool narrow = op->x & kAddress32;
  const uint64_t step = narrow ? static_cast<uint32_t>(value.step) : value.step;
  if (step >= kFarthest) return false;
  uint64_t first = value.base + static_cast<uint64_t>(op->imm);
  if (narrow) first &= 0xffffffffu;
  const uint64_t all = step * (kWarpSize - 1) + bytes;
  if ((first | step) & (bytes - 1) || (narrow && (first + all) >> 32)) return false;
  const auto space = static_cast<ptx::Space>(op->z);
  if (space == ptx::Space::Shared) {
    if (first > warp.block->shared_bytes || warp.block->shared_bytes - first < all) return false;
    pointer[0] = warp.block->shared + first;
  } else {
    if (space == ptx::Space::Local || (first >> 56) || ((first + all) >> 56)) return false;
    if (!allowed(warp, op, first, all, access != Access::Read)) return false;
    pointer[0] = reinterpret_cast<std::byte*>(first);
  }
  const bool is_whole = warp.mask == kFullMask;
  *shape = step == bytes && is_whole ? Shape::Contiguous : step ? Shape::Scattered : Shape::Uniform;
  if (*shape == Shape::Scattered) {
    for (uint32_t i = 1; i < kWarpSize; ++i) pointer[i] = pointer[0] + i * step;
  }
  return true;
}

// The position of rows whose bytes have all been checked.
struct RowSpan {
  std::byte* first;
  int64_t step, row_step;
  uint32_t row_lanes;
};

bool span_of_rows(Warp& warp, const Op* op, uint32_t bytes, bool write, RowSpan* out) {
  const Affine& value = affine_at(warp, op->a);
  if (value.state == AffineState::Lanes || !value.row_lanes) return false;
  const bool narrow = op->x & kAddress32;
  Affine at = value;
  at.base += static_cast<uint64_t>(op->imm);
  uint64_t least, most;
  if (narrow) {
    uint32_t low, high;
    if (!affine_bounds<uint32_t>(at, &low, &high)) return false;
    least = low, most = high;
    at.base = static_cast<uint32_t>(at.base);
    at.step = static_cast<uint64_t>(int64_t{static_cast<int32_t>(at.step)});
    at.row_step = static_cast<uint64_t>(int64_t{static_cast<int32_t>(at.row_step)});
  } else if (!affine_bounds<uint64_t>(at, &least, &most)) {
    return false;
  }
  if ((at.base | at.step | at.row_step) & (bytes - 1)) return false;
  const uint64_t all = most - least + bytes;
  if (all < bytes) return false;
  const auto space = static_cast<ptx::Space>(op->z);
  std::byte* first;
  if (space == ptx::Space::Shared) {
    const uint64_t limit = warp.block->shared_bytes;
    if (least > limit || limit - least < all) return false;
    first = warp.block->shared + at.base;
  } else {
    if (space == ptx::Space::Local || (least >> 56) || ((least + all) >> 56)) return false;
    if (!allowed(warp, op, least, all, write)) return false;
    first = reinterpret_cast<std::byte*>(at.base);
  }
  *out = {first, static_cast<int64_t>(at.step), static_cast<int64_t>(at.row_step), at.row_lanes};
  return true;
}

}  // namespace

bool locate_rows(Warp& warp, const Op* op, uint32_t bytes, bool write, RowPlaces* out) {
  RowSpan span;
  if (warp.mask != kFullMask || !span_of_rows(warp, op, bytes, write, &span)) return false;
  if (span.step != 0 && span.step != int64_t{bytes}) return false;
  *out = {span.first, span.row_step, span.row_lanes, span.step != 0};
  return true;
}

Shape locate(Warp& warp, const Op* op, uint32_t bytes, Access access,
             std::byte* (&pointer)[kWarpSize]) {
  if (op->x & kAddressAffine) {
    Shape shape;
    if (locate_affine(warp, op, bytes, access, pointer, &shape)) return shape;
    materialize(warp, op->a);
  }
  if (op->x & kAddressRows) {
    RowSpan span;
    if (span_of_rows(warp, op, bytes, access != Access::Read, &span)) {
      uint32_t lane = 0;
      for (int64_t row = 0; lane < kWarpSize; ++row) {
        for (int64_t i = 0; i < int64_t{span.row_lanes}; ++i)
          pointer[lane++] = span.first + row * span.row_step + i * span.step;
      }
      return Shape::Scattered;
    }
    materialize(warp, op->a);
  }
  if (op->x & kAddressUniform) {
    uint64_t at = *warp.lanes<uint64_t>(op->a);
    if (op->x & kAddress32) at = *warp.lanes<uint32_t>(op->a);
    at += static_cast<uint64_t>(op->imm);
    if (op->x & kAddress32) at &= 0xffffffffu;
    auto space = static_cast<ptx::Space>(op->z);
    if (is_local(space, at)) {  // the same address is a different place for each lane
      uint64_t all[kWarpSize];
      std::fill(all, all + kWarpSize, at);
      const uint64_t window = space == ptx::Space::Local ? 0 : kLocalWindow;
      if (locate_local(warp, all, 0, window, bytes, pointer)) return Shape::Scattered;
      for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        pointer[lane] = locate_lane(warp, op, lane, space, at, bytes, access);
        if (!pointer[lane]) return Shape::Fault;
      }
      return Shape::Scattered;
    }
    pointer[0] = locate_lane(warp, op, first_lane(warp.mask), space, at, bytes, access);
    return pointer[0] ? Shape::Uniform : Shape::Fault;
  }
  if (op->x & kAddress32) return locate_lanes<uint32_t>(warp, op, bytes, access, pointer);
  return locate_lanes<uint64_t>(warp, op, bytes, access, pointer);
}

std::byte* locate_generic(Warp& warp, const Op* op, uint32_t lane, uint64_t address, uint32_t bytes,
                          Access access) {
  return locate_lane(warp, op, lane, ptx::Space::Generic, address, bytes, access);
}

bool read_text(Warp& warp, const Op* op, uint32_t lane, uint64_t address, size_t most,
               std::string* out) {
  for (size_t i = 0; i < most; ++i) {
    const std::byte* at =
        locate_lane(warp, op, lane, ptx::Space::Generic, address + i, 1, Access::Read);
    if (!at) return false;
    if (*at == std::byte{0}) return true;
    out->push_back(static_cast<char>(*at));
  }
  return true;
}

}  // namespace kiln::engine
