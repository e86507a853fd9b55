// SPDX-License-Identifier: Apache-2.0
// How do values move between registers and change address space? (PTX ISA 9.7.9)
#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "engine/decode/image.h"
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/decode/spread.h"
#include "engine/instructions/lowerings.h"

namespace kiln::engine {
namespace {

struct Same {
  template <class T>
  static T f(T a) {
    return a;
  }
};

Handler copy_handler(uint32_t bytes, Source a) {
  switch (bytes) {
    case 8:
      return unary_handler<Same, uint64_t, uint64_t>(a);
    case 4:
      return unary_handler<Same, uint32_t, uint32_t>(a);
    case 2:
      return unary_handler<Same, uint16_t, uint16_t>(a);
    default:
      return unary_handler<Same, uint8_t, uint8_t>(a);
  }
}

bool lower_copy(Lowering& l, const ptx::Operand& to, const ptx::Operand& from, ptx::Type type) {
  if (l.register_bytes(to) != ptx::bytes_of(type))
    return l.refuse("the register's width differs from that of the type");
  if (l.alias_affine(to, type, from)) return true;
  Source a;
  if (!l.source(from, type, &a)) return false;
  if (l.alias(to, a, from)) return true;
  l.emit_value(to, ptx::bytes_of(type), a.uniform, copy_handler(ptx::bytes_of(type), a), a);
  return true;
}

// op->x: 0 nanoseconds, 1 clock.
template <class T>
const Op* run_clock(Warp& warp, const Op* op) {
  uint64_t now =
      static_cast<uint64_t>(op->x == 0 ? std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count()
                                       : std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::steady_clock::now().time_since_epoch())
                                             .count());
  T result[kWarpSize];
  for (T& r : result) r = static_cast<T>(now >> op->imm);
  warp.put(op->d, result);
  return op + 1;
}

bool lower_clock(Lowering& l, std::string_view name) {
  bool wide = name == "clock64" || name == "globaltimer";
  if (l.register_bytes(l.operand(0)) != (wide ? 8 : 4))
    return l.refuse("the register's width differs from that of the clock");
  Dest d;
  if (!l.dest(l.operand(0), wide ? 8 : 4, false, &d)) return false;
  Op& op = l.emit(wide ? &run_clock<uint64_t> : &run_clock<uint32_t>);
  op.d = d.offset;
  op.x = name.substr(0, 11) == "globaltimer" ? 0 : 1;
  op.imm = name == "clock_hi" || name == "globaltimer_hi" ? 32 : 0;
  return true;
}

}  // namespace

bool move(Lowering& l) {
  const ptx::Operand& from = l.operand(1);
  if (from.kind == ptx::OperandKind::Special) {
    std::string_view name = from.name;
    if (name == "clock" || name == "clock_hi" || name == "clock64" || name == "globaltimer" ||
        name == "globaltimer_lo" || name == "globaltimer_hi") {
      return lower_clock(l, name);
    }
    // Special registers have 32 bits; %gridid, and a 64-bit mov of any, are zero-extended.
    if (l.register_bytes(l.operand(0)) == 8) {
      Source a;
      if (!l.source(from, ptx::Type::u64, &a)) return false;
      if (!a.uniform) return l.refuse("a 64-bit copy of a 32-bit register");
      l.emit_value(l.operand(0), 8, true, copy_handler(8, a), a);
      return true;
    }
  }
  return lower_copy(l, l.operand(0), from, l.type());
}

namespace {

struct Parts {
  uint32_t count = 0;
  uint32_t bytes = 0;  // of a part
  uint32_t slots[8] = {};
  bool uniform[8] = {};  // of the sources: a scalar
};

// One handler per pair of widths, whose loops become vector code.
template <class Whole, class Part>
const Op* run_pack(Warp& warp, const Op* op) {
  constexpr uint32_t kParts = sizeof(Whole) / sizeof(Part);
  const Parts& parts = *static_cast<const Parts*>(op->data);
  Whole result[kWarpSize] = {};
  for (uint32_t p = 0; p < kParts; ++p) {
    const Part* from = warp.lanes<Part>(parts.slots[p]);
    const auto one = static_cast<Whole>(static_cast<Whole>(from[0]) << (p * sizeof(Part) * 8));
    if (parts.uniform[p]) {
      for (Whole& each : result) each |= one;
      continue;
    }
    for (uint32_t i = 0; i < kWarpSize; ++i)
      result[i] |= static_cast<Whole>(static_cast<Whole>(from[i]) << (p * sizeof(Part) * 8));
  }
  warp.put(op->d, result);
  return op + 1;
}

template <class Whole, class Part>
const Op* run_unpack(Warp& warp, const Op* op) {
  const Parts& parts = *static_cast<const Parts*>(op->data);
  Whole from[kWarpSize];
  std::memcpy(from, warp.lanes<Whole>(op->a), sizeof from);
  for (uint32_t p = 0; p < parts.count; ++p) {
    Part result[kWarpSize];
    for (uint32_t i = 0; i < kWarpSize; ++i)
      result[i] = static_cast<Part>(from[i] >> (p * sizeof(Part) * 8));
    warp.put(parts.slots[p], result);
  }
  return op + 1;
}

// The common ones, mov.b32 {%rs1, %rs2}, %r1 and mov.b64 {%r1, %r2}, %rd1, keep the layout: element
// p of lane i.
ptx::Type part_type(uint32_t bytes) {
  return bytes == 4 ? ptx::Type::b32 : bytes == 2 ? ptx::Type::b16 : ptx::Type::b8;
}

bool part_bytes(Lowering& l, size_t elements, uint32_t* bytes) {
  uint32_t whole = ptx::bytes_of(l.type());
  if (elements < 2 || elements > 8 || whole % elements)
    return l.refuse("this number of parts does not match the type");
  *bytes = whole / static_cast<uint32_t>(elements);
  return true;
}

}  // namespace

bool pack(Lowering& l) {
  const ptx::Operand& from = l.operand(1);
  if (from.kind != ptx::OperandKind::Vector) return l.refuse("expected a vector");
  Parts parts;
  parts.count = static_cast<uint32_t>(from.elements.size());
  if (!part_bytes(l, from.elements.size(), &parts.bytes)) return false;
  for (uint32_t p = 0; p < parts.count; ++p) {
    Source part;
    if (!l.source(from.elements[p], part_type(parts.bytes), &part)) return false;
    parts.slots[p] = part.offset;
    parts.uniform[p] = part.uniform;
  }
  Dest d;
  if (!l.dest(l.operand(0), ptx::bytes_of(l.type()), false, &d)) return false;
  const uint32_t whole = ptx::bytes_of(l.type());
  Op& op =
      l.emit(whole == 8 ? (parts.bytes == 4   ? &run_pack<uint64_t, uint32_t>
                           : parts.bytes == 2 ? &run_pack<uint64_t, uint16_t>
                                              : &run_pack<uint64_t, uint8_t>)
             : whole == 4
                 ? (parts.bytes == 2 ? &run_pack<uint32_t, uint16_t> : &run_pack<uint32_t, uint8_t>)
                 : &run_pack<uint16_t, uint8_t>);
  op.d = d.offset;
  op.data = l.own(parts);
  return true;
}

bool unpack(Lowering& l) {
  const ptx::Operand& to = l.operand(0);
  if (to.kind != ptx::OperandKind::Vector) return l.refuse("expected a vector");
  Parts parts;
  parts.count = static_cast<uint32_t>(to.elements.size());
  if (!part_bytes(l, to.elements.size(), &parts.bytes)) return false;
  uint32_t a;
  if (!l.lanes(l.operand(1), l.type(), &a)) return false;
  for (uint32_t p = 0; p < parts.count; ++p) {
    Dest d;
    if (!l.dest(to.elements[p], parts.bytes, false, &d)) return false;
    parts.slots[p] = d.offset;
  }
  uint32_t whole = ptx::bytes_of(l.type());
  Handler handler =
      whole == 8 ? (parts.bytes == 4   ? &run_unpack<uint64_t, uint32_t>
                    : parts.bytes == 2 ? &run_unpack<uint64_t, uint16_t>
                                       : &run_unpack<uint64_t, uint8_t>)
      : whole == 4
          ? (parts.bytes == 2 ? &run_unpack<uint32_t, uint16_t> : &run_unpack<uint32_t, uint8_t>)
          : &run_unpack<uint16_t, uint8_t>;
  Op& op = l.emit(handler);
  op.a = a;
  op.data = l.own(parts);
  return true;
}

namespace {

template <uint64_t kWindow>
struct IntoGeneric {
  static uint64_t f(uint64_t a) { return a | kWindow; }
};
struct OutOfGeneric {
  static uint64_t f(uint64_t a) { return a & ~(uint64_t{0xff} << 56); }
};

}  // namespace

bool convert_address(Lowering& l) {
  bool shared = l.has("shared") || l.has("shared::cta") || l.has("shared::cluster"),
       local = l.has("local");
  if (!shared && !local) return lower_copy(l, l.operand(0), l.operand(1), ptx::Type::u64);
  Source a;
  if (!l.source(l.operand(1), ptx::Type::u64, &a)) return false;
  Handler handler = l.has("to") ? unary_handler<OutOfGeneric, uint64_t, uint64_t>(a)
                    : shared    ? unary_handler<IntoGeneric<kSharedWindow>, uint64_t, uint64_t>(a)
                                : unary_handler<IntoGeneric<kLocalWindow>, uint64_t, uint64_t>(a);
  l.emit_value(l.operand(0), 8, a.uniform, handler, a);
  return true;
}

namespace {

// What isspacep tests: the tag of the address; for global addresses, whether it is in a constant
// variable or in the kernel's parameters (which are global too, as on a GPU); for shared addresses,
// whether they are the block's own.
enum : uint8_t { kGlobal, kLocal, kShared, kSharedOwn, kConst, kParam };

const Op* run_test_space(Warp& warp, const Op* op) {
  const uint64_t* a = warp.lanes<uint64_t>(op->a);
  const Image& image = *static_cast<const Image*>(op->data);
  const uint64_t own = static_cast<uint64_t>(*warp.lanes<uint32_t>(op->b)) + 1;
  const uint64_t parameters = reinterpret_cast<uint64_t>(warp.block->grid->parameters());
  const uint64_t parameter_bytes = warp.block->grid->program->parameter_bytes;
  uint32_t result = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const uint64_t tag = a[i] >> 56, peer = (a[i] & kPeerBits) >> kPeerShift;
    const bool param = tag == 0 && a[i] - parameters < parameter_bytes;
    const bool constant =
        op->x == kConst || op->x == kGlobal ? tag == 0 && image.is_constant(a[i]) : false;
    const bool holds = op->x == kGlobal  ? tag == 0 && !constant
                       : op->x == kLocal ? tag == kLocalTag
                       : op->x == kConst ? constant
                       : op->x == kParam
                           ? param
                           : tag == kSharedTag && (op->x == kShared || peer == 0 || peer == own);
    result |= holds ? 1u << i : 0;
  }
  warp.set_predicate(op->d, result);
  return op + 1;
}

}  // namespace

bool test_space(Lowering& l) {
  uint32_t a, d;
  if (!l.lanes(l.operand(1), ptx::Type::u64, &a) || !l.dest_predicate(l.operand(0), &d))
    return false;
  const uint32_t rank = l.special(Special::ClusterCtarank, false);
  Op& op = l.emit(&run_test_space);
  op.a = a;
  op.b = rank;
  op.d = d;
  op.data = &l.image();
  op.x = l.has("global")                           ? kGlobal
         : l.has("local")                          ? kLocal
         : l.has("shared::cluster")                ? kShared
         : l.has("const")                          ? kConst
         : l.has("param") || l.has("param::entry") ? kParam
                                                   : kSharedOwn;
  return true;
}

void describe_move(Meanings& to) {
  to.parts(&run_pack<uint64_t, uint32_t>, Number::U64, Number::U32, [](const Op& op, Touched& out) {
    const Parts& parts = *static_cast<const Parts*>(op.data);
    out.reads = {{parts.slots[0], 4, parts.uniform[0]}, {parts.slots[1], 4, parts.uniform[1]}};
    out.writes = {{op.d, 8}};
  });
  to.parts(&run_unpack<uint64_t, uint32_t>, Number::U32, Number::U64,
           [](const Op& op, Touched& out) {
             const Parts& parts = *static_cast<const Parts*>(op.data);
             out.reads = {{op.a, 8}};
             out.writes = {{parts.slots[0], 4}, {parts.slots[1], 4}};
           });
  to.parts(&run_pack<uint32_t, uint16_t>, Number::U32, Number::U16, [](const Op& op, Touched& out) {
    const Parts& parts = *static_cast<const Parts*>(op.data);
    out.reads = {{parts.slots[0], 2, parts.uniform[0]}, {parts.slots[1], 2, parts.uniform[1]}};
    out.writes = {{op.d, 4}};
  });
  to.parts(&run_unpack<uint32_t, uint16_t>, Number::U16, Number::U32,
           [](const Op& op, Touched& out) {
             const Parts& parts = *static_cast<const Parts*>(op.data);
             out.reads = {{op.a, 4}};
             out.writes = {{parts.slots[0], 2}, {parts.slots[1], 2}};
           });
  to.unary<Same, uint16_t>(Does::Copy);
  to.unary<Same, uint32_t>(Does::Copy);
  to.unary<Same, uint64_t>(Does::Copy);
  to.add(make_spread(0, 0, 2).run, {Does::Spread, Number::U16, Number::U16, 1});
  to.add(make_spread(0, 0, 4).run, {Does::Spread, Number::U32, Number::U32, 1});
  to.add(make_spread(0, 0, 8).run, {Does::Spread, Number::U64, Number::U64, 1});
}

}  // namespace kiln::engine
