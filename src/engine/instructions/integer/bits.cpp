// SPDX-License-Identifier: Apache-2.0
// What do the bit-field, byte-permute and dot-product instructions compute? (PTX ISA 9.7.1.15
// to 9.7.1.23, 9.7.8, 9.7.9.7)
#include <bit>
#include <set>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/integer/constant_fields.h"
#include "engine/instructions/lowerings.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMostSources = 4;

// Four sources as lanes, a small number from the modifiers in op->x, and a function of single
// values.
struct Sources {
  uint32_t slots[kMostSources] = {};
};

template <class T, T (*kFunction)(const T*, uint8_t)>
const Op* run_bits(Warp& warp, const Op* op) {
  const Sources& sources = *static_cast<const Sources*>(op->data);
  const T* from[kMostSources];
  for (uint32_t s = 0; s < kMostSources; ++s) from[s] = warp.lanes<T>(sources.slots[s]);
  T result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    T values[kMostSources] = {from[0][i], from[1][i], from[2][i], from[3][i]};
    result[i] = kFunction(values, op->x);
  }
  warp.put(op->d, result);
  return op + 1;
}

// `narrow`: bit s is set if source s has 32 bits although T has 64; it is widened first.
struct Widen {
  static uint64_t f(uint32_t a) { return a; }
};

template <class T>
bool lower_bits(Lowering& l, Handler handler, uint8_t variant, uint32_t narrow = 0) {
  Sources sources;
  size_t count = l.ins().operands.size() - 1;
  for (size_t s = 0; s < count && s < kMostSources; ++s) {
    const ptx::Operand& operand = l.operand(s + 1);
    bool is_narrow = sizeof(T) == 8 && (narrow >> s & 1);
    ptx::Type type = sizeof(T) == 8 && !is_narrow ? ptx::Type::b64 : ptx::Type::b32;
    uint32_t slot;
    if (!l.lanes(operand, type, &slot)) return false;
    if (is_narrow) {
      Op& op = l.emit(&run_unary<Widen, uint64_t, uint32_t, true>);
      op.a = slot;
      slot = l.temporary(8);
      l.program().ops.back().d = slot;
      l.program().ops.back().effect = Effect::Lanes8;
    }
    sources.slots[s] = slot;
  }
  for (size_t s = count; s < kMostSources; ++s) sources.slots[s] = sources.slots[0];
  Dest d;
  if (!l.dest(l.operand(0), sizeof(T), false, &d)) return false;
  Op& op = l.emit(handler);
  op.d = d.offset;
  op.x = variant;
  op.data = l.own(sources);
  return true;
}

// With three words as lanes, and a number in Op::imm.
bool lower_of_three(Lowering& l, Handler handler, int64_t number) {
  Source a, b, c;
  if (!l.lanes(l.operand(1), ptx::Type::b32, &a.offset) ||
      !l.lanes(l.operand(2), ptx::Type::b32, &b.offset) ||
      !l.lanes(l.operand(3), ptx::Type::b32, &c.offset))
    return false;
  l.emit_value(l.operand(0), 4, false, handler, a, b, c, number);
  return true;
}

// With 64 bits: a GPU has no such instruction, and the shifts that replace it use all 32 bits of a
// count, not only the low 8.
uint64_t shifted_left(uint64_t value, uint32_t by) { return by < 64 ? value << by : 0; }
uint64_t low_bits(uint32_t length) { return shifted_left(1, length) - 1; }

template <bool kSigned>
uint64_t extract64(const uint64_t* v, uint8_t) {
  const uint32_t at = static_cast<uint32_t>(v[1]), length = static_cast<uint32_t>(v[2]);
  const uint64_t mask = low_bits(length);
  if (!kSigned) return at < 64 ? v[0] >> at & mask : 0;
  uint64_t field = static_cast<uint64_t>(static_cast<int64_t>(v[0]) >> std::min(at, 63u)) & mask;
  if (length - 1 < 64 && field >> (length - 1)) field |= ~mask;
  return field;
}

uint64_t insert64(const uint64_t* v, uint8_t) {
  const uint32_t at = static_cast<uint32_t>(v[2]), length = static_cast<uint32_t>(v[3]);
  const uint64_t mask = low_bits(length);
  return shifted_left(v[0] & mask, at) | (v[1] & ~shifted_left(mask, at));
}

template <bool kSigned>
uint32_t extract(const uint32_t* v, uint8_t) {
  const uint32_t at = v[1] & 0xff, length = v[2] & 0xff;
  if (length == 0) return 0;
  // The sign is the last bit of the field, or of the register if the field reaches beyond it.
  const uint32_t last = std::min(at + length - 1, 31u);
  const bool fill = kSigned && (v[0] >> last & 1);
  const uint32_t available = at < 32 ? ~0u >> at : 0;
  const uint32_t mask = length < 32 ? ((1u << length) - 1) & available : available;
  const uint32_t field = at < 32 ? v[0] >> at & mask : 0;
  return fill ? field | ~mask : field;
}

uint32_t insert(const uint32_t* v, uint8_t) {
  const uint32_t at = v[2] & 0xff, length = v[3] & 0xff;
  if (at >= 32 || length == 0) return v[1];
  const uint32_t mask = length >= 32 ? ~0u : (1u << length) - 1;
  return (v[1] & ~(mask << at)) | ((v[0] & mask) << at);
}

// fns as ptxas expands it: with a base beyond 31 it finds nothing, and an offset of -2^31 falls
// through to the last place.
uint32_t nth_set(const uint32_t* v, uint8_t) {
  uint32_t mask = v[0], base = v[1], count = v[2];
  const bool down = static_cast<int32_t>(count) < 0;
  if (down) {
    uint32_t mirrored = 0;
    for (uint32_t i = 0; i < 32; ++i) mirrored |= (mask >> i & 1) << (31 - i);
    mask = mirrored, base = 31 - base, count = 0 - count;
  } else if (count == 0) {
    mask &= base < 32 ? 1u << base : 0, count = 1;
  }
  mask &= base < 32 ? ~0u << base : 0;
  if (std::popcount(mask) < static_cast<int32_t>(count)) return ~0u;
  uint32_t at = 0;
  for (uint32_t found = mask & 1; found < count && at < 31; found += mask >> at & 1) ++at;
  return down ? 31 - at : at;
}

uint32_t mask_of(const uint32_t* v, uint8_t wraps) {
  uint32_t at = wraps ? v[0] & 31 : std::min(v[0], 32u),
           length = wraps ? v[1] & 31 : std::min(v[1], 32u);
  uint64_t mask = ((uint64_t{1} << length) - 1) << at;
  return static_cast<uint32_t>(mask);
}

// variant: bit 0 wrap, bit 1 signed.
uint32_t extend_from(const uint32_t* v, uint8_t variant) {
  uint32_t length = variant & 1 ? v[1] & 31 : std::min(v[1], 32u);
  if (length == 0) return 0;
  if (length >= 32) return v[0];
  uint32_t field = v[0] & ((1u << length) - 1);
  return (variant & 2) && (v[0] >> (length - 1) & 1) ? field | ~((1u << length) - 1) : field;
}

// On bytes: Op::imm as for Does::Dot4. The sign correction is 128 times the highest bit.
const Op* run_dot4(Warp& warp, const Op* op) {
  const uint32_t *a = warp.lanes<uint32_t>(op->a), *b = warp.lanes<uint32_t>(op->b),
                 *c = warp.lanes<uint32_t>(op->c);
  uint32_t* d = warp.lanes<uint32_t>(op->d);
  const uint32_t sign_a = op->imm & 1 ? 0x80 : 0, sign_b = op->imm & 2 ? 0x80 : 0;
#pragma GCC ivdep
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    uint32_t sum = c[i];
    for (uint32_t by = 0; by < 32; by += 8) {
      const uint32_t left = ((a[i] >> by & 0xff) ^ sign_a) - sign_a,
                     right = ((b[i] >> by & 0xff) ^ sign_b) - sign_b;
      sum += left * right;
    }
    d[i] = sum;
  }
  return op + 1;
}

// variant: bit 0: a signed; bit 1: b signed; bit 2: the upper half.
int32_t byte_of(uint32_t v, uint32_t i, bool is_signed_value) {
  uint8_t b = static_cast<uint8_t>(v >> (8 * i));
  return is_signed_value ? static_cast<int8_t>(b) : b;
}
uint32_t dot2(const uint32_t* v, uint8_t variant) {
  uint32_t sum = v[2];
  for (uint32_t i = 0; i < 2; ++i) {
    uint16_t half = static_cast<uint16_t>(v[0] >> (16 * i));
    int64_t a = variant & 1 ? static_cast<int16_t>(half) : half;
    int64_t b = byte_of(v[1], i + (variant & 4 ? 2 : 0), variant & 2);
    sum += static_cast<uint32_t>(a * b);
  }
  return sum;
}

// lop3: Op::imm has the result for each of the eight combinations of three bits. All are computed,
// so that a loop over lanes becomes vector code.
const Op* run_lookup(Warp& warp, const Op* op) {
  const uint32_t *a = warp.lanes<uint32_t>(op->a), *b = warp.lanes<uint32_t>(op->b),
                 *c = warp.lanes<uint32_t>(op->c);
  uint32_t* d = warp.lanes<uint32_t>(op->d);
  uint32_t of[8];
  for (uint32_t i = 0; i < 8; ++i) of[i] = 0 - static_cast<uint32_t>(op->imm >> i & 1);
#pragma GCC ivdep
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const auto by = [](uint32_t bit, uint32_t set, uint32_t clear) {
      return clear ^ ((clear ^ set) & bit);
    };
    const uint32_t high = by(b[i], by(c[i], of[7], of[6]), by(c[i], of[5], of[4]));
    const uint32_t low = by(b[i], by(c[i], of[3], of[2]), by(c[i], of[1], of[0]));
    d[i] = by(a[i], high, low);
  }
  return op + 1;
}

// Shifts by at most 31, and once more by 1, so that no shift is as wide as its value and lanes stay
// 32 bits wide.
struct FunnelLeft {  // `wrap`
  static uint32_t f(uint32_t low, uint32_t high, uint32_t count) {
    const uint32_t by = count & 31;
    return high << by | low >> 1 >> (31 - by);
  }
};
struct FunnelRight {
  static uint32_t f(uint32_t low, uint32_t high, uint32_t count) {
    const uint32_t by = count & 31;
    return low >> by | high << 1 << (31 - by);
  }
};
struct FunnelLeftClamped {
  static uint32_t f(uint32_t low, uint32_t high, uint32_t count) {
    return count > 31 ? low : FunnelLeft::f(low, high, count);
  }
};
struct FunnelRightClamped {
  static uint32_t f(uint32_t low, uint32_t high, uint32_t count) {
    return count > 31 ? high : FunnelRight::f(low, high, count);
  }
};

template <class F>
bool lower_funnel(Lowering& l) {
  Source low, high, count;
  if (!l.source(l.operand(1), ptx::Type::b32, &low) ||
      !l.source(l.operand(2), ptx::Type::b32, &high) ||
      !l.source(l.operand(3), ptx::Type::b32, &count)) {
    return false;
  }
  l.emit_value(l.operand(0), 4, low.uniform && high.uniform && count.uniform,
               ternary_handler<F, uint32_t, uint32_t, uint32_t>(low, high, count), low, high,
               count);
  return true;
}

uint32_t permute_bytes(const uint32_t* v, uint8_t mode) {
  uint64_t both = uint64_t{v[1]} << 32 | v[0];
  uint32_t selector = v[2];
  auto byte = [&](uint32_t i) { return static_cast<uint32_t>(both >> (8 * (i & 7)) & 0xff); };
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t from = 0;
    bool sign = false;
    uint32_t n = selector & 3;
    switch (mode) {
      case 0:
        from = selector >> (4 * i) & 7;
        sign = selector >> (4 * i) & 8;
        break;
      case 1:
        from = n + i;
        break;  // f4e
      case 2:
        from = (n - i) & 7;
        break;  // b4e
      case 3:
        from = n;
        break;  // rc8
      case 4:
        from = i < n ? n : i;
        break;  // ecl
      case 5:
        from = i > n ? n : i;
        break;  // ecr
      default:
        from = (n & 1) * 2 + (i & 1);  // rc16
    }
    uint32_t value = byte(from);
    if (sign) value = value & 0x80 ? 0xff : 0;
    result |= value << (8 * i);
  }
  return result;
}

}  // namespace

bool bit_extract(Lowering& l) {
  if (extract_constant_field(l)) return true;
  bool is_signed_type = ptx::is_signed(l.type());
  if (ptx::bytes_of(l.type()) == 8) {
    return lower_bits<uint64_t>(l,
                                is_signed_type ? &run_bits<uint64_t, extract64<true>>
                                               : &run_bits<uint64_t, extract64<false>>,
                                0, 0b110);
  }
  return lower_bits<uint32_t>(
      l, is_signed_type ? &run_bits<uint32_t, extract<true>> : &run_bits<uint32_t, extract<false>>,
      0);
}

bool bit_insert(Lowering& l) {
  if (insert_constant_field(l)) return true;
  if (ptx::bytes_of(l.type()) == 8)
    return lower_bits<uint64_t>(l, &run_bits<uint64_t, insert64>, 0, 0b1100);
  return lower_bits<uint32_t>(l, &run_bits<uint32_t, insert>, 0);
}

bool find_nth_set(Lowering& l) { return lower_bits<uint32_t>(l, &run_bits<uint32_t, nth_set>, 0); }
bool bit_mask(Lowering& l) {
  return lower_bits<uint32_t>(l, &run_bits<uint32_t, mask_of>, l.has("wrap"));
}

bool shift_extend(Lowering& l) {
  uint8_t variant =
      static_cast<uint8_t>((l.has("wrap") ? 1 : 0) | (ptx::is_signed(l.type()) ? 2 : 0));
  return lower_bits<uint32_t>(l, &run_bits<uint32_t, extend_from>, variant);
}

bool dot_product4(Lowering& l) {
  const int64_t signs =
      (ptx::is_signed(l.type()) ? 1 : 0) | (ptx::is_signed(l.other_type()) ? 2 : 0);
  return lower_of_three(l, &run_dot4, signs);
}

bool dot_product2(Lowering& l) {
  uint8_t variant =
      static_cast<uint8_t>((ptx::is_signed(l.type()) ? 1 : 0) |
                           (ptx::is_signed(l.other_type()) ? 2 : 0) | (l.has("hi") ? 4 : 0));
  return lower_bits<uint32_t>(l, &run_bits<uint32_t, dot2>, variant);
}

bool lop3(Lowering& l) {
  return lower_of_three(l, &run_lookup, static_cast<int64_t>(l.operand(4).bits & 0xff));
}

bool funnel_shift(Lowering& l) {
  if (l.has("wrap")) return l.has("r") ? lower_funnel<FunnelRight>(l) : lower_funnel<FunnelLeft>(l);
  return l.has("r") ? lower_funnel<FunnelRightClamped>(l) : lower_funnel<FunnelLeftClamped>(l);
}

bool permute(Lowering& l) {
  constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  uint8_t mode = 0;
  for (size_t i = 0; i < std::size(kModes); ++i) {
    if (l.has(kModes[i])) mode = static_cast<uint8_t>(i + 1);
  }
  if (mode == 0 && permute_by_constant(l)) return true;
  return lower_bits<uint32_t>(l, &run_bits<uint32_t, permute_bytes>, mode);
}

namespace {

template <class T>
void touched_by_bits(const Op& op, Touched& out) {
  const Sources& sources = *static_cast<const Sources*>(op.data);
  for (uint32_t slot : std::set<uint32_t>(sources.slots, sources.slots + kMostSources))
    out.reads.push_back({slot, sizeof(T)});
  out.writes = {{op.d, sizeof(T)}};
}

template <class T, T (*... kFunctions)(const T*, uint8_t)>
void describe_called(Meanings& to) {
  (to.warpwide(&run_bits<T, kFunctions>, &touched_by_bits<T>), ...);
}

}  // namespace

void describe_bits(Meanings& to) {
  describe_called<uint32_t, extract<false>, extract<true>, insert, permute_bytes, dot2, mask_of,
                  extend_from>(to);
  describe_called<uint64_t, extract64<false>, extract64<true>, insert64>(to);
  to.add(&run_lookup, {Does::Lookup, Number::U32, Number::U32, 3, 7});
  to.add(&run_dot4, {Does::Dot4, Number::U32, Number::U32, 3, 7});
  to.ternary<FunnelLeft, uint32_t>(Does::FunnelLeft);
  to.ternary<FunnelRight, uint32_t>(Does::FunnelRight);
  to.ternary<FunnelLeftClamped, uint32_t>(Does::Lanewise);
  to.ternary<FunnelRightClamped, uint32_t>(Does::Lanewise);
}

}  // namespace kiln::engine
