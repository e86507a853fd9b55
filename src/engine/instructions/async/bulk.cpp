// SPDX-License-Identifier: Apache-2.0
// How do bulk copies run? (PTX ISA 9.7.9.25.5, st.async, red.async) At once, when they are issued:
// the bytes are written, then the mbarrier is notified. So a group is always complete.
#include <fmt/format.h>

#include <bit>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings_async.h"
#include "engine/machine/watching.h"
#include "engine/memory/multicast.h"
#include "engine/numbers/rmw.h"

namespace kiln::engine {
namespace {

// Writes `bytes` from `from` to `to`; null: not a plain copy.
using Combine = void (*)(std::byte* to, const std::byte* from, uint32_t bytes, Rmw what);

struct Bulk {
  AddressOperand to, from, barrier;
  LaneValue bytes, ranks, byte_mask;
  bool has_barrier = false, multicast = false, masked = false;
  Combine combine = nullptr;
  Rmw what = Rmw::Add;
};

const Op* bad_size(Warp& warp, const Op* op, uint32_t lane, uint64_t bytes) {
  return warp.fault(op, kMisalignedAddress, lane,
                    fmt::format("Bulk copy of {} bytes: the size must be a multiple of 16\n{}",
                                bytes, where(warp, *op, lane)));
}

bool copy_to(Warp& warp, const Op* op, const Bulk& how, uint32_t lane, uint64_t to,
             uint64_t barrier, const std::byte* from, uint32_t bytes) {
  std::byte* at = locate_watched(warp, op, lane, how.to.space, to, bytes, 16, Access::Write, true);
  if (!at) return false;
  if (how.combine) {
    how.combine(at, from, bytes, how.what);
  } else if (how.masked) {
    const uint64_t mask = how.byte_mask.of(warp, lane);
    for (uint32_t i = 0; i < bytes; ++i) {
      if (mask >> (i % 16) & 1) at[i] = from[i];
    }
  } else {
    std::memmove(at, from, bytes);
  }
  return !how.has_barrier || bytes_came(warp, op, lane, how.barrier.space, barrier, bytes);
}

const Op* run_bulk(Warp& warp, const Op* op) {
  const Bulk& how = *static_cast<const Bulk*>(op->data);
  watch_async(warp, op, AsyncStep::Issue, 0, AsyncKind::Bulk);
  return for_each_lane(warp, op, [&](uint32_t lane) {
    const uint64_t bytes = how.bytes.of(warp, lane);
    if (bytes == 0) return true;
    if (bytes % 16) return bad_size(warp, op, lane, bytes) != nullptr;
    const std::byte* from = locate_watched(warp, op, lane, how.from.space, how.from.of(warp, lane),
                                           static_cast<uint32_t>(bytes), 16, Access::Read, true);
    if (!from) return false;
    const uint64_t to = how.to.of(warp, lane),
                   barrier = how.has_barrier ? how.barrier.of(warp, lane) : 0;
    if (!how.multicast)
      return copy_to(warp, op, how, lane, to, barrier, from, static_cast<uint32_t>(bytes));
    return for_each_rank(how.ranks.of(warp, lane), [&](uint32_t rank) {
      return copy_to(warp, op, how, lane, at_rank(to, rank), at_rank(barrier, rank), from,
                     static_cast<uint32_t>(bytes));
    });
  });
}

template <class T>
void combine(std::byte* to, const std::byte* from, uint32_t bytes, Rmw what) {
  for (uint32_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T operand;
    std::memcpy(&operand, from + at, sizeof(T));
    exchange(to + at, what, operand, operand);
  }
}

bool emit_bulk(Lowering& l, Bulk how) {
  const auto& operands = l.ins().operands;
  const size_t spaces = l.has("reduce") ? 3 : 2;
  const auto& modifiers = l.ins().modifiers;
  const bool to_global = modifiers[spaces] == "global",
             from_global = modifiers[spaces + 1] == "global";
  if (!address_operand(l, operands[0], to_global ? ptx::Space::Global : ptx::Space::Shared,
                       &how.to) ||
      !address_operand(l, operands[1], from_global ? ptx::Space::Global : ptx::Space::Shared,
                       &how.from) ||
      !lane_value(l, operands[2], ptx::Type::u32, &how.bytes)) {
    return false;
  }
  size_t next = 3;
  how.has_barrier = !to_global;
  if (how.has_barrier && !address_operand(l, operands[next++], ptx::Space::Shared, &how.barrier))
    return false;
  how.multicast = l.has("multicast::cluster");
  how.masked = l.has("cp_mask");
  const size_t wanted = next + how.multicast + how.masked + l.has("L2::cache_hint");
  if (operands.size() != wanted) return l.refuse("wrong number of operands");
  if (how.multicast && !lane_value(l, operands[next++], ptx::Type::u16, &how.ranks)) return false;
  if (l.has("L2::cache_hint")) ++next;
  if (how.masked && !lane_value(l, operands[next], ptx::Type::u16, &how.byte_mask)) return false;
  l.emit(&run_bulk).data = l.own(how);
  return true;
}

}  // namespace

bool bulk_group(Lowering& l) {
  announce_group(l, AsyncKind::Bulk);
  return true;
}

bool copy_bulk(Lowering& l) { return emit_bulk(l, {}); }

bool reduce_bulk(Lowering& l) {
  Bulk how;
  how.what = rmw_of(l.ins());
  const bool known = with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) >= 2 && !Packed<T>) how.combine = &combine<T>;
    return how.combine != nullptr;
  });
  return known ? emit_bulk(l, how) : l.refuse("no such type for this instruction");
}

namespace {

constexpr uint32_t kMostStored = 4;

struct RemoteStore {
  AddressOperand to, barrier;
  LaneValue values[kMostStored];
  uint32_t count = 1, bytes = 4;
  Combine combine = nullptr;
  Rmw what = Rmw::Add;
};

const Op* run_remote_store(Warp& warp, const Op* op) {
  const RemoteStore& how = *static_cast<const RemoteStore*>(op->data);
  const uint32_t all = how.bytes * how.count;
  return for_each_lane(warp, op, [&](uint32_t lane) {
    std::byte* to = locate_watched(warp, op, lane, how.to.space, how.to.of(warp, lane), all, all,
                                   Access::Write, true);
    if (!to) return false;
    std::byte values[kMostStored * 8];
    for (uint32_t e = 0; e < how.count; ++e) {
      const uint64_t value = how.values[e].of(warp, lane);
      std::memcpy(values + size_t{e} * how.bytes, &value, how.bytes);
    }
    if (how.combine) {
      how.combine(to, values, all, how.what);
    } else {
      std::memcpy(to, values, all);
    }
    return bytes_came(warp, op, lane, how.barrier.space, how.barrier.of(warp, lane), all);
  });
}

bool emit_remote_store(Lowering& l, RemoteStore how) {
  const auto& operands = l.ins().operands;
  how.bytes = ptx::bytes_of(l.type());
  if (how.bytes < 4 || how.bytes > 8) return l.refuse("no such type for this instruction");
  if (!address_operand(l, operands[0], ptx::Space::Shared, &how.to) ||
      !address_operand(l, operands[2], ptx::Space::Shared, &how.barrier)) {
    return false;
  }
  const bool is_vector = operands[1].kind == ptx::OperandKind::Vector;
  how.count = is_vector ? static_cast<uint32_t>(operands[1].elements.size()) : 1;
  const uint32_t wanted = l.has("v4") ? 4 : l.has("v2") ? 2 : 1;
  if (how.count != wanted)
    return l.refuse("the number of registers differs from that of the vector");
  for (uint32_t e = 0; e < how.count; ++e) {
    if (!lane_value(l, is_vector ? operands[1].elements[e] : operands[1], l.type(), &how.values[e]))
      return false;
  }
  l.emit(&run_remote_store).data = l.own(how);
  return true;
}

}  // namespace

bool store_async(Lowering& l) { return emit_remote_store(l, {}); }

bool reduce_async(Lowering& l) {
  RemoteStore how;
  how.what = rmw_of(l.ins());
  with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && sizeof(T) >= 4) how.combine = &combine<T>;
    return true;
  });
  return how.combine ? emit_remote_store(l, how) : l.refuse("no such type for this instruction");
}

}  // namespace kiln::engine
