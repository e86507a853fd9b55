// SPDX-License-Identifier: Apache-2.0
// How are the addresses of 32 lanes checked and turned into pointers?
#include "engine/access.h"

#include <bit>

namespace kiln::engine {
namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

bool allowed(Warp& warp, const Op* op, uint64_t address, uint64_t bytes, bool write) {
  Worker::CachedRegion& cached = warp.worker->cached(op);
  if (address >= cached.begin && address < cached.end && cached.end - address >= bytes && (cached.writable || !write)) {
    return true;
  }
  auto region = warp.block->grid->memory.find(address, bytes, write);
  if (!region) return false;
  cached = {region->begin, region->end, region->writable};
  return true;
}

// One lane of any space. Null: a fault was reported.
std::byte* locate_lane(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address, uint32_t bytes,
                       Access access) {
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
  bool is_aligned = (address & (bytes - 1)) == 0;
  switch (space) {
    case ptx::Space::Shared:
      if (address > warp.block->shared_bytes || warp.block->shared_bytes - address < bytes) {
        out_of_bounds(warp, op, lane, space, access, address, bytes);
        return nullptr;
      }
      if (!is_aligned) break;
      return warp.block->shared + address;
    case ptx::Space::Local:
      if (address > warp.local_stride || warp.local_stride - address < bytes) {
        out_of_bounds(warp, op, lane, space, access, address, bytes);
        return nullptr;
      }
      if (!is_aligned) break;
      return warp.local.data() + size_t{lane} * warp.local_stride + address;
    default:
      if (!allowed(warp, op, address, bytes, access != Access::Read)) {
        out_of_bounds(warp, op, lane, space, access, address, bytes);
        return nullptr;
      }
      if (!is_aligned) break;
      return reinterpret_cast<std::byte*>(address);
  }
  misaligned(warp, op, lane, space, access, address, bytes);
  return nullptr;
}

template <class A>
bool contiguous(const A* address, uint32_t bytes) {
  const A base = address[0];
  A difference = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i)
    difference |= address[i] ^ (base + static_cast<A>(i) * static_cast<A>(bytes));
  return difference == 0;
}

template <class A>
Shape locate_lanes(Warp& warp, const Op* op, uint32_t bytes, Access access, std::byte* (&pointer)[kWarpSize]) {
  const A* address = warp.lanes<A>(op->a);
  const auto space = static_cast<ptx::Space>(op->z);
  const uint64_t offset = static_cast<uint64_t>(op->imm);
  if (warp.mask == kFullMask && contiguous(address, bytes)) {
    uint64_t begin = address[0] + offset, all = uint64_t{bytes} * kWarpSize;
    if (sizeof(A) == 4) begin &= 0xffffffffu;
    bool is_aligned = (begin & (bytes - 1)) == 0;
    if (space == ptx::Space::Shared) {
      if (is_aligned && begin <= warp.block->shared_bytes && warp.block->shared_bytes - begin >= all) {
        pointer[0] = warp.block->shared + begin;
        return Shape::Contiguous;
      }
    } else if (space != ptx::Space::Local && (begin >> 56) == 0 && is_aligned &&
               allowed(warp, op, begin, all, access != Access::Read)) {
      pointer[0] = reinterpret_cast<std::byte*>(begin);
      return Shape::Contiguous;
    }
  }
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    uint64_t at = address[lane] + offset;
    if (sizeof(A) == 4) at &= 0xffffffffu;
    pointer[lane] = locate_lane(warp, op, lane, space, at, bytes, access);
    if (!pointer[lane]) return Shape::Fault;
  }
  return Shape::Scattered;
}

}  // namespace

Shape locate(Warp& warp, const Op* op, uint32_t bytes, Access access, std::byte* (&pointer)[kWarpSize]) {
  if (op->x & kAddressUniform) {
    uint64_t at = *warp.lanes<uint64_t>(op->a);
    if (op->x & kAddress32) at = *warp.lanes<uint32_t>(op->a);
    at += static_cast<uint64_t>(op->imm);
    if (op->x & kAddress32) at &= 0xffffffffu;
    auto space = static_cast<ptx::Space>(op->z);
    if (space == ptx::Space::Local || (space == ptx::Space::Generic && (at >> 56) == kLocalTag)) {
      for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {  // the same address is another place for each lane
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

std::byte* locate_generic(Warp& warp, const Op* op, uint32_t lane, uint64_t address, uint32_t bytes, Access access) {
  return locate_lane(warp, op, lane, ptx::Space::Generic, address, bytes, access);
}

bool read_text(Warp& warp, const Op* op, uint32_t lane, uint64_t address, size_t most, std::string* out) {
  for (size_t i = 0; i < most; ++i) {
    const std::byte* at = locate_lane(warp, op, lane, ptx::Space::Generic, address + i, 1, Access::Read);
    if (!at) return false;
    if (*at == std::byte{0}) return true;
    out->push_back(static_cast<char>(*at));
  }
  return true;
}

}  // namespace kiln::engine
