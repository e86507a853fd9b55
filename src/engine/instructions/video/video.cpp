// SPDX-License-Identifier: Apache-2.0
// What do the video instructions compute? (PTX ISA 9.7.16) Parts of words, widened, combined,
// clamped and merged; in 64 bits, so that no step overflows. GPUs have not had such instructions
// since sm_50, so this computes what ptxas expands them to, which differs from the manual if whole
// words overflow.
#include <algorithm>
#include <cstdlib>

#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_more.h"

namespace kiln::engine {
namespace {

using Verb = VideoVerb;
enum class Second : uint8_t { None, Add, Min, Max, Merge };
enum class Order : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

struct Video {
  Verb verb = Verb::Add;
  Second second = Second::None;
  Order order = Order::Eq;
  bool signed_d = false, signed_a = false, signed_b = false;
  bool saturate = false, wrap = false, plus_one = false;
  uint32_t scale = 0;                          // by which vmad shifts
  uint8_t part_d = 0, part_a = 0, part_b = 0;  // ptx::Operand::part
  uint32_t parts = 1;                          // per word: 1, 2 or 4
  uint32_t a = 0, b = 0, c = 0;
};

int64_t widened(uint32_t word, uint32_t bits, bool is_signed) {
  if (bits == 32) return is_signed ? int64_t{static_cast<int32_t>(word)} : int64_t{word};
  const uint32_t low = word & ((1u << bits) - 1);
  return is_signed ? int64_t{static_cast<int32_t>(low << (32 - bits)) >> (32 - bits)}
                   : int64_t{low};
}

int64_t part_of(uint32_t word, uint8_t part, bool is_signed) {
  if (part == 0) return widened(word, 32, is_signed);
  return part <= 4 ? widened(word >> (8 * (part - 1)), 8, is_signed)
                   : widened(word >> (16 * (part - 5)), 16, is_signed);
}

bool holds(Order order, int64_t a, int64_t b) {
  switch (order) {
    case Order::Eq:
      return a == b;
    case Order::Ne:
      return a != b;
    case Order::Lt:
      return a < b;
    case Order::Le:
      return a <= b;
    case Order::Gt:
      return a > b;
    default:
      return a >= b;
  }
}

int64_t combined(const Video& how, int64_t a, int64_t b) {
  switch (how.verb) {
    case Verb::Add:
      return a + b;
    case Verb::Sub:
      return a - b;
    case Verb::AbsDiff:
      return std::llabs(a - b);
    case Verb::Min:
      return std::min(a, b);
    case Verb::Max:
      return std::max(a, b);
    case Verb::Average:
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Verb::Set:
      return holds(how.order, a, b) ? 1 : 0;
    default: {
      const uint64_t count = static_cast<uint64_t>(b);
      const uint64_t by = how.wrap ? count & 31 : std::min<uint64_t>(count, 32);
      return how.verb == Verb::ShiftLeft ? static_cast<int64_t>(static_cast<uint64_t>(a) << by)
                                         : a >> by;
    }
  }
}

int64_t clamped(int64_t value, uint32_t bits, bool is_signed) {
  const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, is_signed ? -most - 1 : int64_t{0}, most);
}

// Whole words are read as signed, whatever their type; the sum of unsigned ones is shifted without
// its sign.
uint32_t multiply_add(const Video& how, uint32_t a, uint32_t b, uint32_t c) {
  const int64_t x = part_of(a, how.part_a, how.signed_a || how.part_a == 0);
  const int64_t y = part_of(b, how.part_b, how.signed_b || how.part_b == 0);
  const bool is_signed = how.signed_a || how.signed_b;
  const uint64_t sum =
      static_cast<uint64_t>(x * y) + static_cast<uint64_t>(widened(c, 32, true)) + how.plus_one;
  const int64_t value =
      is_signed ? static_cast<int64_t>(sum) >> how.scale : static_cast<int64_t>(sum >> how.scale);
  return static_cast<uint32_t>(how.saturate ? clamped(value, 32, is_signed) : value);
}

// The result of a shift has 34 bits. An unsigned sum or difference is clamped at 0 and wraps around
// at the top.
int64_t clamped_word(const Video& how, int64_t value) {
  constexpr uint32_t kSpare = 64 - 34;
  if (how.verb == Verb::ShiftLeft)
    value = static_cast<int64_t>(static_cast<uint64_t>(value) << kSpare) >> kSpare;
  if (how.signed_d || how.verb == Verb::ShiftLeft) return clamped(value, 32, how.signed_d);
  return value < 0 ? 0 : value & 0xffffffff;
}

uint32_t one_word(const Video& how, uint32_t a, uint32_t b, uint32_t c) {
  if (how.verb == Verb::Mad) return multiply_add(how, a, b, c);
  int64_t value =
      combined(how, part_of(a, how.part_a, how.signed_a), part_of(b, how.part_b, how.signed_b));
  const uint32_t bits = how.part_d == 0 ? 32 : how.part_d <= 4 ? 8 : 16;
  if (how.saturate)
    value = bits == 32 ? clamped_word(how, value) : clamped(value, bits, how.signed_d);
  const uint32_t word = static_cast<uint32_t>(value);
  // The second operation gets all 64 bits, except of a sum or a difference, which becomes a word.
  if (how.verb == Verb::Add || how.verb == Verb::Sub) value = widened(word, 32, how.signed_d);
  const int64_t other = widened(c, 32, how.signed_d);
  const bool less =
      how.signed_d ? value < other : static_cast<uint64_t>(value) < static_cast<uint64_t>(other);
  switch (how.second) {
    case Second::Add:
      return word + c;
    case Second::Min:
      return less ? word : c;
    case Second::Max:
      return less ? c : word;
    case Second::Merge: {
      if (how.part_d == 0) return word;
      const uint32_t shift = how.part_d <= 4 ? 8u * (how.part_d - 1u) : 16u * (how.part_d - 5u);
      const uint32_t mask = (bits == 8 ? 0xffu : 0xffffu) << shift;
      return (c & ~mask) | (word << shift & mask);
    }
    default:
      return word;
  }
}

uint32_t all_parts(const Video& how, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t bits = 32 / how.parts, mask = (1u << bits) - 1;
  uint32_t result = how.second == Second::Add ? c : 0;
  for (uint32_t p = 0; p < how.parts; ++p) {
    int64_t value = combined(how, widened(a >> (p * bits), bits, how.signed_a),
                             widened(b >> (p * bits), bits, how.signed_b));
    if (how.saturate) value = clamped(value, bits, how.signed_d);
    if (how.second == Second::Add) {
      result += static_cast<uint32_t>(value);
    } else {
      result |= (static_cast<uint32_t>(value) & mask) << (p * bits);
    }
  }
  return result;
}

const Op* run_video(Warp& warp, const Op* op) {
  const Video& how = *static_cast<const Video*>(op->data);
  const uint32_t *a = warp.lanes<uint32_t>(how.a), *b = warp.lanes<uint32_t>(how.b),
                 *c = warp.lanes<uint32_t>(how.c);
  uint32_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = how.parts == 1 ? one_word(how, a[i], b[i], c[i]) : all_parts(how, a[i], b[i], c[i]);
  warp.put(op->d, result);
  return op + 1;
}

bool lower(Lowering& l, Verb verb, uint32_t parts) {
  constexpr std::pair<std::string_view, Order> kOrders[] = {{"eq", Order::Eq}, {"ne", Order::Ne},
                                                            {"lt", Order::Lt}, {"le", Order::Le},
                                                            {"gt", Order::Gt}, {"ge", Order::Ge}};
  const auto& modifiers = l.ins().modifiers;
  const auto& operands = l.ins().operands;
  Video how;
  how.parts = parts;
  how.verb = verb;
  for (auto [name, order] : kOrders) {
    if (l.has(name)) how.order = order;
  }
  // Set has no result type: its first type is that of the first operand.
  const bool compares = how.verb == Verb::Set;
  how.signed_d = modifiers[0] == "s32";
  how.signed_a = modifiers[compares ? 0 : 1] == "s32";
  how.signed_b = modifiers[compares ? 1 : 2] == "s32";
  how.saturate = l.has("sat");
  how.wrap = l.has("wrap");
  how.plus_one = l.has("po");
  how.scale = l.has("shr7") ? 7 : l.has("shr15") ? 15 : 0;
  how.part_d = operands[0].part;
  how.part_a = operands[1].part;
  how.part_b = operands[2].part;
  const bool has_c = operands.size() > 3;
  // The second operation comes last; `max` in vmax itself is not a modifier.
  if (has_c && how.verb != Verb::Mad && parts == 1) {
    how.second = how.part_d     ? Second::Merge
                 : l.has("add") ? Second::Add
                 : l.has("min") ? Second::Min
                 : l.has("max") ? Second::Max
                                : Second::None;
  } else if (parts > 1 && l.has("add")) {
    how.second = Second::Add;
  }
  if (!l.lanes(operands[1], ptx::Type::b32, &how.a) ||
      !l.lanes(operands[2], ptx::Type::b32, &how.b))
    return false;
  how.c = how.a;
  if (has_c && !l.lanes(operands[3], ptx::Type::b32, &how.c)) return false;
  Dest d;
  if (!l.dest(operands[0], 4, false, &d)) return false;
  Op& op = l.emit(&run_video);
  op.d = d.offset;
  op.data = l.own(how);
  return true;
}

}  // namespace

template <VideoVerb kVerb>
bool video(Lowering& l) {
  return lower(l, kVerb, 1);
}
template <VideoVerb kVerb>
bool video2(Lowering& l) {
  return lower(l, kVerb, 2);
}
template <VideoVerb kVerb>
bool video4(Lowering& l) {
  return lower(l, kVerb, 4);
}
template bool video<Verb::Add>(Lowering&);
template bool video<Verb::Sub>(Lowering&);
template bool video<Verb::AbsDiff>(Lowering&);
template bool video<Verb::Min>(Lowering&);
template bool video<Verb::Max>(Lowering&);
template bool video<Verb::ShiftLeft>(Lowering&);
template bool video<Verb::ShiftRight>(Lowering&);
template bool video<Verb::Mad>(Lowering&);
template bool video<Verb::Set>(Lowering&);
template bool video2<Verb::Add>(Lowering&);
template bool video2<Verb::Sub>(Lowering&);
template bool video2<Verb::AbsDiff>(Lowering&);
template bool video2<Verb::Min>(Lowering&);
template bool video2<Verb::Max>(Lowering&);
template bool video2<Verb::Average>(Lowering&);
template bool video2<Verb::Set>(Lowering&);
template bool video4<Verb::Add>(Lowering&);
template bool video4<Verb::Sub>(Lowering&);
template bool video4<Verb::AbsDiff>(Lowering&);
template bool video4<Verb::Min>(Lowering&);
template bool video4<Verb::Max>(Lowering&);
template bool video4<Verb::Average>(Lowering&);
template bool video4<Verb::Set>(Lowering&);

}  // namespace kiln::engine
