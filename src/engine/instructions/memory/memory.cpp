// SPDX-License-Identifier: Apache-2.0
// How do loads and stores run? (PTX ISA 9.7.9.8 to 9.7.9.12) access.h finds and checks the bytes of
// each lane.
#include <atomic>
#include <cstring>

#include "engine/decode/fuse.h"
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/decode/operand_parts.h"
#include "engine/instructions/convert/convert_common.h"
#include "engine/instructions/lowerings.h"
#include "engine/instructions/memory/memory_values.h"
#include "engine/instructions/memory/passed.h"
#include "engine/machine/access.h"
#include "engine/machine/lane_masks.h"

namespace kiln::engine {
namespace {

// One address in local memory: one place per lane, at equal distances.
template <class M, class R>
[[gnu::noinline]] void load_column(Warp& warp, const Op* op, const std::byte* from) {
  R* d = warp.lanes<R>(op->d);
  const size_t stride = warp.local_stride;
  for (uint32_t i = 0; i < kWarpSize; ++i, from += stride) {
    if (warp.mask >> i & 1) d[i] = widen<M, R>(from);
  }
}

template <class M, class R>
[[gnu::noinline]] void store_column(Warp& warp, const Op* op, std::byte* to) {
  const R* b = warp.lanes<R>(op->b);
  const size_t stride = warp.local_stride;
  const uint32_t step = op->y ? 0 : 1;
  for (uint32_t i = 0; i < kWarpSize; ++i, to += stride) {
    if (warp.mask >> i & 1) narrow<M, R>(to, b[i * step]);
  }
}

// Most warps read 32 neighbours or one address. These are one copy and one value; only the rest
// goes lane by lane.
template <class M, class R>
const Op* run_load(Warp& warp, const Op* op) {
  std::byte* pointer[kWarpSize];
  Shape shape = locate_at_once(warp, op, sizeof(M), false, &pointer[0]);
  if (shape == Shape::Fault) {
    if (const std::byte* from = local_column<M>(warp, op)) {
      load_column<M, R>(warp, op, from);
      return op + 1;
    }
    shape = locate(warp, op, sizeof(M), Access::Read, pointer);
  }
  R* d = warp.lanes<R>(op->d);
  switch (shape) {
    case Shape::Fault:
      return nullptr;
    case Shape::Contiguous:
      if constexpr (sizeof(M) == sizeof(R)) {
        std::memcpy(d, pointer[0], sizeof(R) * kWarpSize);
      } else {
        const M* from = reinterpret_cast<const M*>(pointer[0]);
#pragma GCC ivdep
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): a load of s8 extends its sign
        for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = static_cast<R>(from[i]);
      }
      break;
    case Shape::Uniform: {
      const R value = widen<M, R>(pointer[0]);
      if (warp.mask == kFullMask) {
        for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = value;
      } else {
        select_lanes<R, true>(d, &value, d, warp.mask);
      }
      break;
    }
    case Shape::Scattered:
      if (warp.mask == kFullMask) {
        for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = widen<M, R>(pointer[i]);
      } else {
        for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
          uint32_t i = static_cast<uint32_t>(__builtin_ctz(rest));
          d[i] = widen<M, R>(pointer[i]);
        }
      }
  }
  return op + 1;
}

// One address for all lanes, and a register that is only read in the same stretch: one scalar.
template <class M, class R>
const Op* run_load_scalar(Warp& warp, const Op* op) {
  std::byte* pointer[kWarpSize];
  Shape shape = locate_at_once(warp, op, sizeof(M), false, &pointer[0]);
  if (shape == Shape::Fault) shape = locate(warp, op, sizeof(M), Access::Read, pointer);
  if (shape == Shape::Fault) return nullptr;
  *warp.lanes<R>(op->d) = widen<M, R>(pointer[0]);
  return op + 1;
}

template <class M, class R>
const Op* run_load_scalar_shared(Warp& warp, const Op* op) {
  const std::byte* at = shared_place<M>(warp, op);
  if (!at) return run_load_scalar<M, R>(warp, op);
  *warp.lanes<R>(op->d) = widen<M, R>(at);
  return op + 1;
}

template <class M, class R>
const Op* run_load_scalar_vector(Warp& warp, const Op* op) {
  const Elements& elements = *static_cast<const Elements*>(op->data);
  std::byte* pointer[kWarpSize];
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * elements.count;
  Shape shape = locate_at_once(warp, op, bytes, false, &pointer[0]);
  if (shape == Shape::Fault) shape = locate(warp, op, bytes, Access::Read, pointer);
  if (shape == Shape::Fault) return nullptr;
  for (uint32_t e = 0; e < elements.count; ++e) {
    *warp.lanes<R>(elements.slots[e]) = widen<M, R>(pointer[0] + e * sizeof(M));
  }
  return op + 1;
}

template <class M, class R>
const Op* run_load_vector(Warp& warp, const Op* op) {
  const Elements& elements = *static_cast<const Elements*>(op->data);
  std::byte* pointer[kWarpSize];
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * elements.count;
  Shape shape = locate_at_once(warp, op, bytes, false, &pointer[0]);
  if (shape == Shape::Fault) shape = locate(warp, op, bytes, Access::Read, pointer);
  if (shape == Shape::Fault) return nullptr;
  if (shape == Shape::Contiguous && elements.count == 4) {
    const M* from = reinterpret_cast<const M*>(pointer[0]);
    R *d0 = warp.lanes<R>(elements.slots[0]), *d1 = warp.lanes<R>(elements.slots[1]),
      *d2 = warp.lanes<R>(elements.slots[2]), *d3 = warp.lanes<R>(elements.slots[3]);
    // NOLINTBEGIN(bugprone-signed-char-misuse): a load of s8 extends its sign
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      d0[i] = static_cast<R>(from[4 * i]);
      d1[i] = static_cast<R>(from[4 * i + 1]);
      d2[i] = static_cast<R>(from[4 * i + 2]);
      d3[i] = static_cast<R>(from[4 * i + 3]);
    }
    // NOLINTEND(bugprone-signed-char-misuse)
    return op + 1;
  }
  for (uint32_t e = 0; e < elements.count; ++e) {
    R* d = warp.lanes<R>(elements.slots[e]);
    const size_t skip = e * sizeof(M);
    if (shape == Shape::Contiguous) {
      for (uint32_t i = 0; i < kWarpSize; ++i)
        d[i] = widen<M, R>(pointer[0] + size_t{i} * bytes + skip);
    } else {
      for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
        uint32_t i = static_cast<uint32_t>(__builtin_ctz(rest));
        d[i] = widen<M, R>(pointer[shape == Shape::Uniform ? 0 : i] + skip);
      }
    }
  }
  return op + 1;
}

template <class M, class R>
const Op* run_store(Warp& warp, const Op* op) {
  std::byte* pointer[kWarpSize];
  Shape shape = locate_at_once(warp, op, sizeof(M), true, &pointer[0]);
  if (shape == Shape::Fault) {
    if (std::byte* to = local_column<M>(warp, op)) {
      store_column<M, R>(warp, op, to);
      return op + 1;
    }
    shape = locate(warp, op, sizeof(M), Access::Write, pointer);
  }
  const R* b = warp.lanes<R>(op->b);
  const uint32_t step = op->y ? 0 : 1;
  switch (shape) {
    case Shape::Fault:
      return nullptr;
    case Shape::Contiguous:
      if (sizeof(M) == sizeof(R) && step) {
        std::memcpy(pointer[0], b, sizeof(R) * kWarpSize);
      } else {
        M* to = reinterpret_cast<M*>(pointer[0]);
        for (uint32_t i = 0; i < kWarpSize; ++i) to[i] = static_cast<M>(b[i * step]);
      }
      break;
    case Shape::Uniform: {
      // It is undefined which lane's value remains. This keeps the last one's, as the hardware
      // tends to do.
      uint32_t last = 31u - static_cast<uint32_t>(__builtin_clz(warp.mask));
      narrow<M, R>(pointer[0], b[last * step]);
      break;
    }
    case Shape::Scattered:
      for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
        uint32_t i = static_cast<uint32_t>(__builtin_ctz(rest));
        narrow<M, R>(pointer[i], b[i * step]);
      }
  }
  return op + 1;
}

template <class M, class R>
const Op* run_store_vector(Warp& warp, const Op* op) {
  const Elements& elements = *static_cast<const Elements*>(op->data);
  std::byte* pointer[kWarpSize];
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * elements.count;
  Shape shape = locate_at_once(warp, op, bytes, true, &pointer[0]);
  if (shape == Shape::Fault) shape = locate(warp, op, bytes, Access::Write, pointer);
  if (shape == Shape::Fault) return nullptr;
  if (shape == Shape::Contiguous && elements.count == 4 && !elements.uniform[0] &&
      !elements.uniform[1] && !elements.uniform[2] && !elements.uniform[3]) {
    M* to = reinterpret_cast<M*>(pointer[0]);
    const R *b0 = warp.lanes<R>(elements.slots[0]), *b1 = warp.lanes<R>(elements.slots[1]),
            *b2 = warp.lanes<R>(elements.slots[2]), *b3 = warp.lanes<R>(elements.slots[3]);
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      to[4 * i] = static_cast<M>(b0[i]);
      to[4 * i + 1] = static_cast<M>(b1[i]);
      to[4 * i + 2] = static_cast<M>(b2[i]);
      to[4 * i + 3] = static_cast<M>(b3[i]);
    }
    return op + 1;
  }
  for (uint32_t e = 0; e < elements.count; ++e) {
    const R* b = warp.lanes<R>(elements.slots[e]);
    const uint32_t step = elements.uniform[e] ? 0 : 1;
    const size_t skip = e * sizeof(M);
    for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
      uint32_t i = static_cast<uint32_t>(__builtin_ctz(rest));
      std::byte* to = shape == Shape::Contiguous ? pointer[0] + size_t{i} * bytes
                      : shape == Shape::Uniform  ? pointer[0]
                                                 : pointer[i];
      narrow<M, R>(to + skip, b[i * step]);
    }
  }
  return op + 1;
}

ptx::Space space_of(Lowering& l, ptx::Space otherwise = ptx::Space::Generic) {
  if (l.has("global")) return ptx::Space::Global;
  if (l.has("shared") || l.has("shared::cta") || l.has("shared::cluster"))
    return ptx::Space::Shared;
  if (l.has("local")) return ptx::Space::Local;
  if (l.has("const")) return ptx::Space::Const;
  if (l.has("param") || l.has("param::entry") || l.has("param::func")) return ptx::Space::Param;
  return otherwise;
}

const Op* run_fence_memory(Warp&, const Op* op) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return op + 1;
}

bool set_address(Lowering& l, Op* op, const ptx::Operand& operand, ptx::Space space) {
  Source base;
  uint32_t base_bytes = 8;
  if (!l.address(operand, &base, &base_bytes, &op->imm, &space)) return false;
  op->a = base.offset;
  op->x = address_flags(base.uniform, base.affine, l.variant().narrow_rows(), base_bytes);
  op->z = static_cast<uint8_t>(space);
  return true;
}

bool check_count(Lowering& l, size_t count) {
  size_t wanted = l.has("v8") ? 8 : l.has("v4") ? 4 : l.has("v2") ? 2 : 1;
  return count == wanted || l.refuse("the number of registers differs from that of the vector");
}

// Loads into a 64-bit register: a value of at most 32 bits is widened by a separate Op, as by cvt.
bool load_widened(Lowering& l, Op& prepared, const ptx::Operand& target) {
  const Source narrow{l.temporary(4), false};
  l.announce(prepared, AccessKind::Load, ptx::bytes_of(l.type()));
  const bool done = with_memory_types(l, 4, [&](auto m, auto r) {
    Op& op = l.emit(&run_load<decltype(m), decltype(r)>);
    prepared.run = op.run;
    prepared.site = op.site;
    op = prepared;
    op.d = narrow.offset;
    return true;
  });
  if (done) l.emit_value(target, 8, false, widening_of_lanes(ptx::is_signed(l.type())), narrow);
  return done;
}

bool lower_load(Lowering& l, ptx::Space space) {
  const ptx::Operand& address = l.operand(1);
  auto targets = parts(l.operand(0));
  if (!check_count(l, targets.size())) return false;
  uint32_t bytes = ptx::bytes_of(l.type());
  if (space == ptx::Space::Param && !address.base_is_register) {
    const Lowering::Passed* passed = l.passed(address.name);
    for (size_t e = 0; e < targets.size(); ++e) {
      int64_t skip = static_cast<int64_t>(e * bytes);
      bool done = passed ? load_passed(l, address, *passed, *targets[e], skip)
                         : load_parameter(l, address, *targets[e], skip);
      if (!done) return l.refuse("no parameter of this name");
    }
    return true;
  }
  uint32_t register_bytes = bytes;
  for (const ptx::Operand* t : targets) {
    if (t->kind == ptx::OperandKind::Register) register_bytes = l.register_bytes(*t);
  }
  Op prepared;
  if (!set_address(l, &prepared, address, space)) return false;
  Elements elements;
  elements.count = static_cast<uint32_t>(targets.size());
  // In local memory the same address is a different place for each lane; a generic address may be
  // local.
  const auto in = static_cast<ptx::Space>(prepared.z);
  const bool strong = elements.count > 1 && is_strong(l);
  bool scalar = !strong && (prepared.x & kAddressUniform) && in != ptx::Space::Local &&
                in != ptx::Space::Generic;
  for (const ptx::Operand* t : targets) scalar = scalar && l.dest_in_stretch(*t);
  const bool acquires = l.has("acquire");
  const bool weak = !acquires && !l.has("relaxed") && !l.has("volatile") && !l.has("mmio");
  if (!scalar && weak && elements.count == 1 && register_bytes == 8 && bytes < 8)
    return load_widened(l, prepared, *targets[0]);
  // Before the targets, which record that the next Op defines them.
  l.announce(prepared, AccessKind::Load, bytes * elements.count);
  for (size_t e = 0; e < targets.size(); ++e) {
    Dest d;
    if (scalar ? !l.dest_of_stretch(*targets[e], register_bytes, &d)
               : !l.dest(*targets[e], register_bytes, false, &d)) {
      return false;
    }
    elements.slots[e] = d.offset;
  }
  bool done = with_memory_types(l, register_bytes, [&](auto m, auto r) {
    using M = decltype(m);
    using R = decltype(r);
    Handler one =
        scalar ? (in == ptx::Space::Shared ? &run_load_scalar_shared<M, R> : &run_load_scalar<M, R>)
               : &run_load<M, R>;
    Op& op = l.emit(strong                ? strong_vector_load(l, register_bytes)
                    : elements.count == 1 ? one
                    : scalar              ? &run_load_scalar_vector<M, R>
                                          : &run_load_vector<M, R>);
    prepared.run = op.run;
    prepared.site = op.site;
    op = prepared;
    op.d = elements.slots[0];
    if (elements.count > 1) op.data = l.own(elements);
    op.y = weak && l.read_once(*targets[0]) ? kReadOnce : 0;
    return true;
  });
  for (uint32_t e = 0; done && !weak && e < elements.count; ++e) {
    if (targets[e]->kind != ptx::OperandKind::Sink)
      l.announce_value(elements.slots[e], register_bytes, scalar, e);
  }
  if (done && acquires) l.emit(&run_fence_memory);
  return done;
}

}  // namespace

bool load(Lowering& l) { return lower_load(l, space_of(l)); }
bool load_uniform(Lowering& l) { return lower_load(l, space_of(l, ptx::Space::Global)); }

bool store(Lowering& l) {
  const ptx::Operand& address = l.operand(0);
  auto sources = parts(l.operand(1));
  if (!check_count(l, sources.size())) return false;
  uint32_t bytes = ptx::bytes_of(l.type());
  uint32_t register_bytes = bytes;
  for (const ptx::Operand* s : sources) {
    if (s->kind == ptx::OperandKind::Register) register_bytes = l.register_bytes(*s);
  }
  ptx::Type register_type = register_bytes == 8   ? ptx::Type::b64
                            : register_bytes == 4 ? ptx::Type::b32
                            : register_bytes == 2 ? ptx::Type::b16
                                                  : ptx::Type::b8;
  if (ptx::bytes_of(l.type()) == register_bytes) register_type = l.type();
  Elements elements;
  elements.count = static_cast<uint32_t>(sources.size());
  for (size_t e = 0; e < sources.size(); ++e) {
    Source source;
    if (!l.source(*sources[e], register_type, &source)) return false;
    elements.slots[e] = source.offset;
    elements.uniform[e] = source.uniform;
  }
  ptx::Space space = space_of(l);
  if (space == ptx::Space::Param && !address.base_is_register) {
    const Lowering::Passed* passed = l.passed(address.name);
    if (!passed) return l.refuse("no argument of this name");
    for (size_t e = 0; e < sources.size(); ++e) {
      const Source from{elements.slots[e], elements.uniform[e]};
      if (!store_passed(l, address, *passed, from, register_bytes, static_cast<int64_t>(e * bytes)))
        return false;
    }
    return true;
  }
  Op prepared;
  if (!set_address(l, &prepared, address, space)) return false;
  // Before the access, so that watchers can tell writes of the same value from others.
  if (elements.count == 1) {
    l.announce_value(elements.slots[0], register_bytes, elements.uniform[0]);
    l.announce_store(prepared, bytes, {elements.slots[0], elements.uniform[0]}, register_bytes);
  } else {
    l.announce(prepared, AccessKind::Store, bytes * elements.count);
  }
  if (l.has("release")) l.emit(&run_fence_memory);
  return with_memory_types(l, register_bytes, [&](auto m, auto r) {
    using M = decltype(m);
    using R = decltype(r);
    Op& op = l.emit(elements.count == 1 ? &run_store<M, R>
                    : is_strong(l)      ? strong_vector_store(l, register_bytes)
                                        : &run_store_vector<M, R>);
    prepared.run = op.run;
    prepared.site = op.site;
    op = prepared;
    op.b = elements.slots[0];
    op.y = elements.uniform[0];
    if (elements.count > 1) op.data = l.own(elements);
    return true;
  });
}

namespace {

template <class T>
const Op* run_load_global(Warp& warp, const Op* op) {
  const std::byte* from = global_neighbours<T, false>(warp, op);
  if (!from) [[unlikely]]
    return run_load<T, T>(warp, op);
  std::memcpy(warp.lanes<T>(op->d), from, sizeof(T) * kWarpSize);
  return op + 1;
}

template <class T>
const Op* run_store_global(Warp& warp, const Op* op) {
  std::byte* to = global_neighbours<T, true>(warp, op);
  if (!to) [[unlikely]]
    return run_store<T, T>(warp, op);
  std::memcpy(to, warp.lanes<T>(op->b), sizeof(T) * kWarpSize);
  return op + 1;
}

// Blocks have rows of 32, 16 and 8; a copy of a known size is a few instructions.
template <class T, uint32_t kLanes>
void load_rows(const RowPlaces& rows, T* d) {
  for (uint32_t row = 0; row < kWarpSize / kLanes; ++row, d += kLanes) {
    const std::byte* from = rows.first + row * rows.row_step;
    if (rows.neighbours) {
      std::memcpy(d, from, sizeof(T) * kLanes);
    } else {
      const T value = widen<T, T>(from);
      for (uint32_t i = 0; i < kLanes; ++i) d[i] = value;
    }
  }
}
template <class T, uint32_t kLanes>
void store_rows(const RowPlaces& rows, const T* b) {
  for (uint32_t row = 0; row < kWarpSize / kLanes; ++row, b += kLanes) {
    std::byte* to = rows.first + row * rows.row_step;
    if (rows.neighbours) {
      std::memcpy(to, b, sizeof(T) * kLanes);
    } else {
      narrow<T, T>(to, b[kLanes - 1]);  // the last lane's value remains
    }
  }
}

template <class T>
const Op* run_load_rows(Warp& warp, const Op* op) {
  RowPlaces rows;
  if (!locate_rows(warp, op, sizeof(T), false, &rows) || rows.row_lanes < 8) [[unlikely]]
    return run_load<T, T>(warp, op);
  T* d = warp.lanes<T>(op->d);
  rows.row_lanes == kWarpSize ? load_rows<T, kWarpSize>(rows, d)
  : rows.row_lanes == 16      ? load_rows<T, 16>(rows, d)
                              : load_rows<T, 8>(rows, d);
  return op + 1;
}

template <class T>
const Op* run_store_rows(Warp& warp, const Op* op) {
  RowPlaces rows;
  if (!locate_rows(warp, op, sizeof(T), true, &rows) || rows.row_lanes < 8) [[unlikely]]
    return run_store<T, T>(warp, op);
  const T* b = warp.lanes<T>(op->b);
  rows.row_lanes == kWarpSize ? store_rows<T, kWarpSize>(rows, b)
  : rows.row_lanes == 16      ? store_rows<T, 16>(rows, b)
                              : store_rows<T, 8>(rows, b);
  return op + 1;
}

struct Row {
  Handler any, own;
  bool stores;
};

}  // namespace

Handler rows_access(const Op& op) {
  constexpr Row kRows[] = {{&run_load<uint16_t, uint16_t>, &run_load_rows<uint16_t>, false},
                           {&run_load<uint32_t, uint32_t>, &run_load_rows<uint32_t>, false},
                           {&run_load<uint64_t, uint64_t>, &run_load_rows<uint64_t>, false},
                           {&run_store<uint16_t, uint16_t>, &run_store_rows<uint16_t>, true},
                           {&run_store<uint32_t, uint32_t>, &run_store_rows<uint32_t>, true},
                           {&run_store<uint64_t, uint64_t>, &run_store_rows<uint64_t>, true}};
  for (const Row& row : kRows) {
    if (row.any == op.run && !(row.stores && op.y)) return row.own;
  }
  return nullptr;
}

Handler global_access(const Op& op) {
  constexpr Row kRows[] = {{&run_load<uint16_t, uint16_t>, &run_load_global<uint16_t>, false},
                           {&run_load<uint32_t, uint32_t>, &run_load_global<uint32_t>, false},
                           {&run_load<uint64_t, uint64_t>, &run_load_global<uint64_t>, false},
                           {&run_store<uint16_t, uint16_t>, &run_store_global<uint16_t>, true},
                           {&run_store<uint32_t, uint32_t>, &run_store_global<uint32_t>, true},
                           {&run_store<uint64_t, uint64_t>, &run_store_global<uint64_t>, true}};
  for (const Row& row : kRows) {
    if (row.any == op.run && !(row.stores && op.y)) return row.own;  // y: one value for all lanes
  }
  return nullptr;
}

Handler plain_load_32() { return &run_load<uint32_t, uint32_t>; }
bool is_scalar_load_32(Handler handler) {
  return handler == &run_load_scalar<uint32_t, uint32_t> ||
         handler == &run_load_scalar_shared<uint32_t, uint32_t>;
}

bool nothing(Lowering&) { return true; }

void describe_memory(Meanings& to) {
  const auto describe = [&](auto value) {
    using T = decltype(value);
    const Meaning load{Does::Load, number_of<T>()}, store{Does::Store, number_of<T>()},
        scalar{Does::LoadScalar, number_of<T>()};
    for (Handler each : {&run_load<T, T>, &run_load_global<T>, &run_load_rows<T>})
      to.add(each, load);
    for (Handler each : {&run_store<T, T>, &run_store_global<T>, &run_store_rows<T>})
      to.add(each, store);
    for (Handler each : {&run_load_scalar<T, T>, &run_load_scalar_shared<T, T>})
      to.add(each, scalar);
    to.add(&run_load_vector<T, T>, {Does::LoadVector, number_of<T>()});
    to.add(&run_load_scalar_vector<T, T>, {Does::LoadScalarVector, number_of<T>()});
    to.add(&run_store_vector<T, T>, {Does::StoreVector, number_of<T>()});
  };
  describe(uint32_t{});
  describe(uint64_t{});
  const auto small = [&](auto memory, auto value) {
    using M = decltype(memory);
    using R = decltype(value);
    const auto as = [](Does does) { return Meaning{does, number_of<R>(), number_of<M>()}; };
    to.add(&run_load<M, R>, as(Does::Load));
    to.add(&run_load_scalar<M, R>, as(Does::LoadScalar));
    to.add(&run_load_scalar_shared<M, R>, as(Does::LoadScalar));
    to.add(&run_load_vector<M, R>, as(Does::LoadVector));
    to.add(&run_load_scalar_vector<M, R>, as(Does::LoadScalarVector));
    to.add(&run_store<M, R>, as(Does::Store));
    to.add(&run_store_vector<M, R>, as(Does::StoreVector));
  };
  const auto in_both = [&](auto memory) {
    small(memory, uint16_t{});
    small(memory, uint32_t{});
  };
  in_both(uint8_t{});
  in_both(int8_t{});
  in_both(uint16_t{});
  in_both(int16_t{});
  to.add(&run_load_global<uint16_t>, {Does::Load, Number::U16, Number::U16});
  to.add(&run_store_global<uint16_t>, {Does::Store, Number::U16, Number::U16});
}

}  // namespace kiln::engine
