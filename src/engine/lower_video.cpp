// SPDX-License-Identifier: Apache-2.0
// What do the video instructions compute? (PTX ISA 9.7.16) Parts of words, widened, combined, clamped and merged; in 64
// bits, so that no step overflows.
#include <algorithm>
#include <cstdlib>

#include "engine/lanes.h"
#include "engine/lowerings_more.h"

namespace kiln::engine {
namespace {

enum class Verb : uint8_t { Add, Sub, AbsDiff, Min, Max, Average, ShiftLeft, ShiftRight, Mad, Set };
enum class Second : uint8_t { None, Add, Min, Max, Merge };
enum class Order : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

struct Video {
  Verb verb = Verb::Add;
  Second second = Second::None;
  Order order = Order::Eq;
  bool signed_d = false, signed_a = false, signed_b = false;
  bool saturate = false, wrap = false, plus_one = false;
  uint32_t scale = 0;                          // bits that vmad shifts by
  uint8_t part_d = 0, part_a = 0, part_b = 0;  // ptx::Operand::part
  uint32_t parts = 1;                          // of a word: 1, 2 or 4
  uint32_t a = 0, b = 0, c = 0;
};

int64_t widened(uint32_t word, uint32_t bits, bool is_signed) {
  if (bits == 32) return is_signed ? int64_t{static_cast<int32_t>(word)} : int64_t{word};
  const uint32_t low = word & ((1u << bits) - 1);
  return is_signed ? int64_t{static_cast<int32_t>(low << (32 - bits)) >> (32 - bits)} : int64_t{low};
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
      return how.verb == Verb::ShiftLeft ? static_cast<int64_t>(static_cast<uint64_t>(a) << by) : a >> by;
    }
  }
}

int64_t clamped(int64_t value, uint32_t bits, bool is_signed) {
  const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, is_signed ? -most - 1 : int64_t{0}, most);
}

uint32_t one_word(const Video& how, uint32_t a, uint32_t b, uint32_t c) {
  const int64_t x = part_of(a, how.part_a, how.signed_a), y = part_of(b, how.part_b, how.signed_b);
  if (how.verb == Verb::Mad) {
    const bool is_signed = how.signed_a || how.signed_b;
    // Of two unsigned words the product has 64 bits; the sum may have one more.
    const __int128 product = is_signed ? static_cast<__int128>(x) * y
                                       : static_cast<__int128>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    const __int128 sum = (product + widened(c, 32, is_signed) + (how.plus_one ? 1 : 0)) >> how.scale;
    if (!how.saturate) return static_cast<uint32_t>(sum);
    const __int128 most = is_signed ? 0x7fffffff : 0xffffffff, least = is_signed ? -most - 1 : 0;
    return static_cast<uint32_t>(std::clamp(sum, least, most));
  }
  int64_t value = combined(how, x, y);
  const uint32_t bits = how.part_d == 0 ? 32 : how.part_d <= 4 ? 8 : 16;
  if (how.saturate) value = clamped(value, bits, how.signed_d);
  const uint32_t word = static_cast<uint32_t>(value);
  const bool is_signed = how.signed_d;
  switch (how.second) {
    case Second::Add:
      return word + c;
    case Second::Min:
      return widened(word, 32, is_signed) < widened(c, 32, is_signed) ? word : c;
    case Second::Max:
      return widened(word, 32, is_signed) > widened(c, 32, is_signed) ? word : c;
    case Second::Merge: {
      const uint32_t shift = how.part_d <= 4 ? 8u * (how.part_d - 1u) : 16u * (how.part_d - 5u);
      const uint32_t mask = ((1u << bits) - 1) << shift;
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
    int64_t value =
        combined(how, widened(a >> (p * bits), bits, how.signed_a), widened(b >> (p * bits), bits, how.signed_b));
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
  const uint32_t *a = warp.lanes<uint32_t>(how.a), *b = warp.lanes<uint32_t>(how.b), *c = warp.lanes<uint32_t>(how.c);
  uint32_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = how.parts == 1 ? one_word(how, a[i], b[i], c[i]) : all_parts(how, a[i], b[i], c[i]);
  warp.put(op->d, result);
  return op + 1;
}

bool lower(Lowering& l, uint32_t parts) {
  constexpr std::pair<std::string_view, Verb> kVerbs[] = {
      {"vabsdiff", Verb::AbsDiff}, {"vadd", Verb::Add},      {"vsub", Verb::Sub},       {"vmin", Verb::Min},
      {"vmax", Verb::Max},         {"vavrg", Verb::Average}, {"vshl", Verb::ShiftLeft}, {"vshr", Verb::ShiftRight},
      {"vmad", Verb::Mad},         {"vset", Verb::Set}};
  constexpr std::pair<std::string_view, Order> kOrders[] = {{"eq", Order::Eq}, {"ne", Order::Ne}, {"lt", Order::Lt},
                                                            {"le", Order::Le}, {"gt", Order::Gt}, {"ge", Order::Ge}};
  const auto& modifiers = l.ins().modifiers;
  const auto& operands = l.ins().operands;
  Video how;
  how.parts = parts;
  for (auto [name, verb] : kVerbs) {
    if (l.ins().mnemonic.starts_with(name)) how.verb = verb;
  }
  for (auto [name, order] : kOrders) {
    if (l.has(name)) how.order = order;
  }
  const bool compares = how.verb == Verb::Set;  // vset has no type of its result
  how.signed_d = !compares && modifiers[0] == "s32";
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
  // A second operation stands last; vmax's own name is no modifier.
  if (has_c && how.verb != Verb::Mad && parts == 1) {
    how.second = how.part_d     ? Second::Merge
                 : l.has("add") ? Second::Add
                 : l.has("min") ? Second::Min
                 : l.has("max") ? Second::Max
                                : Second::None;
  } else if (parts > 1 && l.has("add")) {
    how.second = Second::Add;
  }
  if (!l.lanes(operands[1], ptx::Type::b32, &how.a) || !l.lanes(operands[2], ptx::Type::b32, &how.b)) return false;
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

bool video(Lowering& l) { return lower(l, 1); }
bool video_simd(Lowering& l) { return lower(l, l.ins().mnemonic.ends_with('4') ? 4 : 2); }

}  // namespace kiln::engine
