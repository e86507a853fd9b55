// SPDX-License-Identifier: Apache-2.0
// How do atomic operations and fences run? (PTX ISA 9.7.13.4 to 9.7.13.7) Other threads of the host
// run other blocks, so each lane is a compare-and-swap loop with the host's atomics, one lane after
// the other. If no other thread runs anything, a load and a store are enough (sole.h).
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings.h"
#include "engine/machine/access.h"
#include "engine/machine/sole.h"
#include "engine/machine/watching.h"
#include "engine/numbers/rmw.h"

namespace kiln::engine {
namespace {

struct Atomic {
  Rmw what;
  uint32_t operand, swap;
  bool of_system = false;  // the program's own threads may change the place too
  bool is_shared = false;  // only one thread of the host accesses it
  bool is_generic = false;
};

template <class T>
T change(std::byte* at, Rmw what, T operand, T swap) {
  T old;
  std::memcpy(&old, at, sizeof(T));
  const T next = apply(what, old, operand, swap);
  std::memcpy(at, &next, sizeof(T));
  return old;
}

// Visits the lanes in order, each with its place.
template <class T, class Body>
void each_place(const Warp& warp, Shape shape, std::byte* const* pointer, const Body& body) {
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(rest));
    body(i, shape == Shape::Uniform      ? pointer[0]
            : shape == Shape::Contiguous ? pointer[0] + size_t{i} * sizeof(T)
                                         : pointer[i]);
  }
}

bool is_in(const Block& block, const std::byte* at) {
  return at >= block.shared && at < block.shared + block.shared_bytes;
}

// In shared memory of any block that the warp can access?
bool is_in_shared_memory(const Warp& warp, const std::byte* at) {
  if (is_in(*warp.block, at)) return true;
  const Cluster* cluster = warp.block->cluster.get();
  return cluster && std::any_of(cluster->blocks.begin(), cluster->blocks.end(),
                                [&](const auto& block) { return block && is_in(*block, at); });
}

// `each` calls its argument with the lanes in order, each with its place.
template <class T, class Each>
void change_each(const Warp& warp, const Atomic& how, const Each& each, const T* operand,
                 const T* swap, T* result) {
  const bool may_flush = std::is_same_v<T, float> && how.what == Rmw::Add && !how.is_shared;
  // One loop for additions, without any decision, and one for everything else.
  const auto change_all = [&](const auto& change_one) {
    if (may_flush) {
      each([&](uint32_t i, std::byte* at) {
        const bool is_shared = how.is_generic && is_in_shared_memory(warp, at);
        const Rmw what = is_shared ? Rmw::Add : Rmw::AddFlushed;
        result[i] = change_one(at, what, operand[i], swap[i]);
      });
    } else if (how.what == Rmw::Add) {
      each([&](uint32_t i, std::byte* at) {
        result[i] = change_one(at, Rmw::Add, operand[i], swap[i]);
      });
    } else {
      each([&](uint32_t i, std::byte* at) {
        result[i] = change_one(at, how.what, operand[i], swap[i]);
      });
    }
  };
  const auto plainly = [](std::byte* at, Rmw what, T value, T other) {
    return change(at, what, value, other);
  };
  if (how.is_shared) return change_all(plainly);
  if (!how.of_system) {
    if (const SoleChange is_sole(*warp.worker); is_sole) return change_all(plainly);
  }
  change_all(
      [](std::byte* at, Rmw what, T value, T other) { return exchange(at, what, value, other); });
}

template <class T>
const Op* run_any_atomic(Warp& warp, const Op* op) {
  const Atomic& how = *static_cast<const Atomic*>(op->data);
  std::byte* pointer[kWarpSize];
  Shape shape = locate(warp, op, sizeof(T), Access::Atomic, pointer);
  if (shape == Shape::Fault) return nullptr;
  T result[kWarpSize] = {};
  change_each<T>(
      warp, how, [&](const auto& body) { each_place<T>(warp, shape, pointer, body); },
      warp.lanes<T>(how.operand), warp.lanes<T>(how.swap), result);
  if (op->y) warp.put(op->d, result);
  return op + 1;
}

// Has its own handler: loops around a compare-and-swap often wait for another lane, so they stay
// with the interpreter, where each lane gets its turn.
template <class T>
const Op* run_compare_and_swap(Warp& warp, const Op* op) {
  return run_any_atomic<T>(warp, op);
}

template <class T>
const Op* run_atomic(Warp& warp, const Op* op) {
  return run_any_atomic<T>(warp, op);
}

// The same for compiled code, which has checked the places.
template <class T>
void change_lanes(LanesAside& lanes, const Op* op) {
  const auto* operand = reinterpret_cast<const T*>(lanes.operands);
  change_each<T>(
      *lanes.warp, *static_cast<const Atomic*>(op->data),
      [&](const auto& body) {
        for (uint32_t rest = lanes.mask; rest; rest &= rest - 1) {
          const auto i = static_cast<uint32_t>(std::countr_zero(rest));
          body(i, lanes.places[i]);
        }
      },
      operand, operand, reinterpret_cast<T*>(lanes.results));
}

// Only one thread of the host accesses shared memory. op->b: the operand's lanes.
template <Rmw kWhat>
const Op* run_shared_atomic(Warp& warp, const Op* op) {
  std::byte* pointer[kWarpSize];
  const Shape shape = locate(warp, op, 4, Access::Atomic, pointer);
  if (shape == Shape::Fault) return nullptr;
  const uint32_t* operand = warp.lanes<uint32_t>(op->b);
  uint32_t result[kWarpSize] = {};
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(rest));
    std::byte* at = shape == Shape::Uniform      ? pointer[0]
                    : shape == Shape::Contiguous ? pointer[0] + size_t{i} * 4
                                                 : pointer[i];
    std::memcpy(&result[i], at, 4);
    const uint32_t next = apply<uint32_t>(kWhat, result[i], operand[i], 0);
    std::memcpy(at, &next, 4);
  }
  if (op->y) warp.put(op->d, result);
  return op + 1;
}

// Null: use the general handler.
Handler shared_atomic(ptx::Space space, ptx::Type type, Rmw what) {
  const bool is_word = type == ptx::Type::u32 || type == ptx::Type::s32 || type == ptx::Type::b32;
  if (space != ptx::Space::Shared || !is_word) return nullptr;
  switch (what) {
    case Rmw::Add:
      return &run_shared_atomic<Rmw::Add>;
    case Rmw::And:
      return &run_shared_atomic<Rmw::And>;
    case Rmw::Or:
      return &run_shared_atomic<Rmw::Or>;
    case Rmw::Xor:
      return &run_shared_atomic<Rmw::Xor>;
    default:
      return nullptr;
  }
}

const Op* run_fence(Warp& warp, const Op* op) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  watch_fence(warp, op, static_cast<Scope>(op->x), static_cast<Strength>(op->y),
              static_cast<Proxy>(op->z));
  return op + 1;
}

bool lower_atomic(Lowering& l, bool returns) {
  size_t first = returns ? 1 : 0;
  const auto& operands = l.ins().operands;
  Atomic how;
  how.what = rmw_of(l.ins());
  how.of_system = l.has("sys");
  bool swaps = how.what == Rmw::Cas;
  const size_t wanted = first + (swaps ? 3 : 2) + (l.has("L2::cache_hint") ? 1 : 0);
  if (operands.size() != wanted) return l.refuse("wrong number of operands");
  if (!l.lanes(operands[first + 1], l.type(), &how.operand)) return false;
  how.swap = how.operand;
  if (swaps && !l.lanes(operands[first + 2], l.type(), &how.swap)) return false;
  Op prepared;
  Source base;
  uint32_t base_bytes = 8;
  bool shared = l.has("shared") || l.has("shared::cta") || l.has("shared::cluster");
  ptx::Space space = l.has("global") ? ptx::Space::Global
                     : shared        ? ptx::Space::Shared
                                     : ptx::Space::Generic;
  if (!l.address(operands[first], &base, &base_bytes, &prepared.imm, &space)) return false;
  prepared.a = base.offset;
  prepared.x = address_flags(base.uniform, base.affine, l.variant().narrow_rows(), base_bytes);
  prepared.z = static_cast<uint8_t>(space);
  prepared.y = returns && operands[0].kind != ptx::OperandKind::Sink;
  Dest d;
  if (returns && !l.dest(operands[0], ptx::bytes_of(l.type()), false, &d)) return false;
  prepared.d = d.offset;
  prepared.b = how.operand;
  how.is_shared = space == ptx::Space::Shared;
  how.is_generic = space == ptx::Space::Generic;
  const Handler of_shared = shared_atomic(space, l.type(), how.what);
  if (!of_shared) prepared.data = l.own(how);
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) >= 2 && sizeof(T) <= 8) {
      l.announce(prepared, returns ? AccessKind::Atomic : AccessKind::Reduction, sizeof(T));
      Op& op = l.emit(of_shared ? of_shared : swaps ? &run_compare_and_swap<T> : &run_atomic<T>);
      prepared.run = op.run;
      prepared.site = op.site;
      op = prepared;
      if (prepared.y) l.announce_value(prepared.d, sizeof(T), false);
      return true;
    }
    return l.refuse("no such type for this instruction");
  });
}

}  // namespace

void describe_atomic(Meanings& to) {
  Meaning meaning{Does::Atomic, Number::U32, Number::U32};
  const auto add = [&](Handler handler, Does combines) {
    meaning.combines = combines;
    to.add(handler, meaning);
  };
  add(&run_shared_atomic<Rmw::Add>, Does::Add);
  add(&run_shared_atomic<Rmw::And>, Does::And);
  add(&run_shared_atomic<Rmw::Or>, Does::Or);
  add(&run_shared_atomic<Rmw::Xor>, Does::Xor);
  const auto add_called = [&](auto type) {
    using T = decltype(type);
    Meaning called{Does::Atomic, sizeof(T) == 8 ? Number::U64 : Number::U32};
    called.from = called.type;
    called.change = &change_lanes<T>;
    to.add(&run_atomic<T>, called);
  };
  for (const ptx::Type type :
       {ptx::Type::u32, ptx::Type::s32, ptx::Type::b32, ptx::Type::f32, ptx::Type::u64,
        ptx::Type::s64, ptx::Type::b64, ptx::Type::f64, ptx::Type::f16x2, ptx::Type::bf16x2}) {
    with_type(type, [&](auto t) {
      if constexpr (sizeof(t) == 4 || sizeof(t) == 8) add_called(t);
      return true;
    });
  }
}

bool atomic(Lowering& l) { return lower_atomic(l, true); }
bool reduction(Lowering& l) { return lower_atomic(l, false); }

namespace {

// `otherwise`: the order of a fence that names none.
bool lower_fence(Lowering& l, Strength otherwise) {
  Strength order = strength_of(l.ins());
  const Scope scope = scope_of(l.ins());
  const Proxy proxy = !l.has("proxy")               ? Proxy::None
                      : l.has("alias")              ? Proxy::Alias
                      : l.has("tensormap::generic") ? Proxy::TensorMap
                                                    : Proxy::Async;
  if (order == Strength::Weak && proxy == Proxy::None) order = otherwise;
  Op& op = l.emit(&run_fence);
  op.x = static_cast<uint8_t>(scope == Scope::None ? Scope::Gpu : scope);
  op.y = static_cast<uint8_t>(order);
  op.z = static_cast<uint8_t>(proxy);
  return true;
}

}  // namespace

bool fence(Lowering& l) { return lower_fence(l, Strength::AcquireRelease); }
// membar is fence.sc.
bool fence_sequential(Lowering& l) { return lower_fence(l, Strength::Sequential); }

namespace {

struct AsyncSource {
  uint32_t to_base;
  uint32_t source;  // the size of each lane's source, or the predicate that ignores it
  bool ignores;
  int64_t to_offset;
  uint8_t to_flags;
  uint32_t bytes;
};

// How many bytes each active lane reads; the rest of its destination becomes zero.
void source_sizes(Warp& warp, const AsyncSource& how, uint32_t (&sizes)[kWarpSize]) {
  const uint32_t* given = warp.lanes<uint32_t>(how.source);
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const uint32_t size = !how.ignores ? given[i] : given[0] >> i & 1 ? 0 : how.bytes;
    sizes[i] = warp.mask >> i & 1 ? std::min(how.bytes, size) : 0;
  }
}

// Finds the source of each lane. A tail is often at the end of an allocation, so a lane that copies
// 4 of 16 bytes must not be checked for the other 12; its address must still be aligned to 16.
bool locate_sources(Warp& warp, const Op* op, const AsyncSource& how,
                    const uint32_t (&sizes)[kWarpSize], std::byte* (&from)[kWarpSize]) {
  const uint32_t active = warp.mask;
  uint32_t whole = 0, partial = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if (sizes[i] == how.bytes) whole |= 1u << i;
    if (sizes[i] != 0 && sizes[i] != how.bytes) partial |= 1u << i;
  }
  bool good = true;
  if (whole) {
    warp.mask = whole;
    watch_access(warp, op, {AccessKind::Load, Strength::Weak, Scope::None, true, how.bytes});
    std::byte* at[kWarpSize];
    const Shape shape = locate(warp, op, how.bytes, Access::Read, at);
    good = shape != Shape::Fault;
    for (uint32_t rest = good ? whole : 0; rest; rest &= rest - 1) {
      const auto i = static_cast<uint32_t>(std::countr_zero(rest));
      from[i] = shape == Shape::Uniform      ? at[0]
                : shape == Shape::Contiguous ? at[0] + size_t{i} * how.bytes
                                             : at[i];
    }
  }
  uint64_t addresses[kWarpSize];
  warp.mask = partial;
  if (good && partial) lane_addresses(warp, op, addresses);
  while (good && warp.mask) {  // the lanes of one size are one access
    const uint32_t bytes = sizes[std::countr_zero(warp.mask)], others = warp.mask;
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      if (sizes[i] != bytes) warp.mask &= ~(1u << i);
    }
    watch_access(warp, op, {AccessKind::Load, Strength::Weak, Scope::None, true, bytes});
    for (uint32_t rest = warp.mask; good && rest; rest &= rest - 1) {
      const auto i = static_cast<uint32_t>(std::countr_zero(rest));
      from[i] = locate_at(warp, op, i, static_cast<ptx::Space>(op->z), addresses[i], bytes,
                          how.bytes, Access::Read);
      good = from[i] != nullptr;
    }
    warp.mask = others & ~warp.mask;
  }
  warp.mask = active;
  return good;
}

// Reads the bytes now and writes them to shared memory when the program waits for them, so that a
// read that comes too early shows.
const Op* run_copy_async(Warp& warp, const Op* op) {
  const AsyncSource& how = *static_cast<const AsyncSource*>(op->data);
  watch_async(warp, op, AsyncStep::Issue);
  std::byte *from[kWarpSize], *to[kWarpSize];
  Op target = *op;
  target.a = how.to_base;
  target.imm = how.to_offset;
  target.x = how.to_flags;
  target.z = static_cast<uint8_t>(ptx::Space::Shared);
  watch_access(warp, &target, {AccessKind::Store, Strength::Weak, Scope::None, true, how.bytes});
  const Shape to_shape = locate(warp, &target, how.bytes, Access::Write, to);
  if (to_shape == Shape::Fault) return nullptr;
  uint32_t sizes[kWarpSize];
  source_sizes(warp, how, sizes);
  if (!locate_sources(warp, op, how, sizes, from)) return nullptr;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
    AsyncCopy copy{};
    copy.to = to_shape == Shape::Uniform      ? to[0]
              : to_shape == Shape::Contiguous ? to[0] + size_t{i} * how.bytes
                                              : to[i];
    copy.bytes = static_cast<uint8_t>(how.bytes);
    if (sizes[i]) std::memcpy(copy.value, from[i], sizes[i]);
    warp.copies.push_back(copy);
  }
  return op + 1;
}

const Op* run_copy_commit(Warp& warp, const Op* op) {
  watch_async(warp, op, AsyncStep::Commit);
  warp.groups.push_back(std::move(warp.copies));
  warp.copies.clear();
  return op + 1;
}

void land(const std::vector<AsyncCopy>& copies) {
  for (const AsyncCopy& copy : copies) std::memcpy(copy.to, copy.value, copy.bytes);
}

// op->imm: how many of the newest groups may still be running; -1: wait for all, committed or not.
// op->y: the thread itself does not wait.
const Op* run_copy_wait(Warp& warp, const Op* op) {
  if (!op->y) watch_async(warp, op, AsyncStep::Wait, op->imm);
  size_t keep = op->imm < 0 ? 0 : static_cast<size_t>(op->imm);
  while (warp.groups.size() > keep) {
    land(warp.groups.front());
    warp.groups.erase(warp.groups.begin());
  }
  if (op->imm < 0) {
    land(warp.copies);
    warp.copies.clear();
  }
  return op + 1;
}

}  // namespace

bool copy_async(Lowering& l) {
  const auto& operands = l.ins().operands;
  AsyncSource how;
  how.bytes = static_cast<uint32_t>(operands[2].bits);
  if (operands[2].bits != 4 && operands[2].bits != 8 && operands[2].bits != 16)
    return l.refuse("it copies 4, 8 or 16 bytes");
  const size_t count = operands.size() - (l.has("L2::cache_hint") ? 1 : 0);
  const ptx::Operand& size = count > 3 ? operands[3] : operands[2];
  how.ignores = size.kind == ptx::OperandKind::Predicate;
  if (how.ignores ? !l.predicate(size, &how.source) : !l.lanes(size, ptx::Type::u32, &how.source)) {
    return false;
  }
  Source to, from;
  uint32_t to_bytes = 8, from_bytes = 8;
  ptx::Space shared = ptx::Space::Shared, global = ptx::Space::Global;
  if (!l.address(operands[0], &to, &to_bytes, &how.to_offset, &shared)) return false;
  how.to_base = to.offset;
  how.to_flags = address_flags(to.uniform, to.affine, l.variant().narrow_rows(), to_bytes);
  int64_t from_offset = 0;
  if (!l.address(operands[1], &from, &from_bytes, &from_offset, &global)) return false;
  Op& op = l.emit(&run_copy_async);
  op.a = from.offset;
  op.imm = from_offset;
  op.x = address_flags(from.uniform, from.affine, l.variant().narrow_rows(), from_bytes);
  op.z = static_cast<uint8_t>(ptx::Space::Global);
  op.data = l.own(how);
  return true;
}

void emit_copy_land(Lowering& l) {
  Op& op = l.emit(&run_copy_wait);
  op.imm = -1;
  op.y = 1;
}

bool copy_async_commit(Lowering& l) {
  l.emit(&run_copy_commit);
  return true;
}

bool copy_async_wait(Lowering& l) {
  l.emit(&run_copy_wait).imm = l.has("wait_all") ? -1 : static_cast<int64_t>(l.operand(0).bits);
  return true;
}

}  // namespace kiln::engine
