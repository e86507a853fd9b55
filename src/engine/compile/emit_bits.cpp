// SPDX-License-Identifier: Apache-2.0
// How do operations on the bits of a word become instructions? If a CPU has no instruction that
// counts or reverses bits, a few other instructions do it for all lanes at once.
#include "engine/compile/emitter.h"

namespace kiln::engine {

// A function of two bits, given by a table of its four cases.
Reg Emitter::of_two(uint32_t table, const Reg& b, const Reg& c) {
  constexpr Number kType = Number::U32;
  Reg to = t_.vector(), other = t_.vector();
  const bool inverts = (table & 8) == 0 && table != 0 && table != 2 && table != 4 && table != 6;
  switch (inverts ? table ^ 15 : table) {
    case 0:
    case 15:
      t_.constant(to, table ? 0xffffffffu : 0, 4);
      return to;
    case 12:
      t_.copy(to, b);
      break;
    case 10:
      t_.copy(to, c);
      break;
    case 8:
      t_.binary(Does::And, kType, to, b, c);
      break;
    case 14:
      t_.binary(Does::Or, kType, to, b, c);
      break;
    case 6:
    case 9:
      t_.binary(Does::Xor, kType, to, b, c);
      if (table == 9) t_.unary(Does::Not, kType, to, to);
      break;
    case 4:
    case 13:
      t_.unary(Does::Not, kType, other, c);
      t_.binary(table == 4 ? Does::And : Does::Or, kType, to, b, other);
      break;
    default:  // 2, 11
      t_.unary(Does::Not, kType, other, b);
      t_.binary(table == 2 ? Does::And : Does::Or, kType, to, other, c);
  }
  if (inverts) t_.unary(Does::Not, kType, to, to);
  return to;
}

// lop3: a selects between two functions of b and c.
void Emitter::lookup(const Step& step, uint32_t s, const Reg& to) {
  constexpr Number kType = Number::U32;
  const auto set = static_cast<uint32_t>(step.op.imm >> 4 & 15),
             clear = static_cast<uint32_t>(step.op.imm & 15);
  const Reg a = bits_of(*step.a, s, 0), b = bits_of(*step.b, s, 0), c = bits_of(*step.c, s, 0);
  if (set == clear) return t_.copy(to, of_two(set, b, c));
  if (set == (clear ^ 15)) {
    t_.binary(Does::Xor, kType, to, a, of_two(clear, b, c));
  } else if (clear == 0) {
    t_.binary(Does::And, kType, to, a, of_two(set, b, c));
  } else if (set == 15) {
    t_.binary(Does::Or, kType, to, a, of_two(clear, b, c));
  } else {
    t_.select_bits(to, a, of_two(set, b, c), of_two(clear, b, c));
  }
}

// Adds up pairs of bits, then groups of four, then bytes.
void Emitter::count_bits(const Reg& to, const Reg& from) {
  constexpr Number kType = Number::U32;
  const Reg part = t_.vector(), mask = t_.vector(), sum = t_.vector();
  const auto masked = [&](const Reg& reg, uint32_t by) {
    if (by) t_.shift(Does::ShiftRight, kType, part, reg, by);
    t_.binary(Does::And, kType, part, by ? part : reg, mask);
  };
  t_.constant(mask, 0x55555555u, 4);
  masked(from, 1);
  t_.binary(Does::Sub, kType, sum, from, part);
  t_.constant(mask, 0x33333333u, 4);
  masked(sum, 2);
  t_.binary(Does::And, kType, sum, sum, mask);
  t_.binary(Does::Add, kType, sum, sum, part);
  t_.shift(Does::ShiftRight, kType, part, sum, 4);
  t_.binary(Does::Add, kType, sum, sum, part);
  t_.constant(mask, 0x0f0f0f0fu, 4);
  t_.binary(Does::And, kType, sum, sum, mask);
  t_.constant(mask, 0x01010101u, 4);
  t_.binary(Does::Mul, kType, sum, sum, mask);
  t_.shift(Does::ShiftRight, kType, to, sum, 24);
}

// Counts the bits above the highest set one.
void Emitter::leading_zeros(const Reg& to, const Reg& from) {
  constexpr Number kType = Number::U32;
  const Reg all = t_.vector(), part = t_.vector();
  t_.copy(all, from);
  for (const uint32_t by : {1, 2, 4, 8, 16}) {
    t_.shift(Does::ShiftRight, kType, part, all, by);
    t_.binary(Does::Or, kType, all, all, part);
  }
  t_.unary(Does::Not, kType, all, all);
  count_bits(to, all);
}

// Swaps neighbours: bits, then pairs, and so on.
void Emitter::reverse_bits(const Reg& to, const Reg& from) {
  constexpr Number kType = Number::U32;
  constexpr uint32_t kMasks[] = {0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff};
  const Reg all = t_.vector(), low = t_.vector(), mask = t_.vector();
  t_.copy(all, from);
  for (uint32_t i = 0; i < 5; ++i) {
    t_.constant(mask, kMasks[i], 4);
    t_.binary(Does::And, kType, low, all, mask);
    t_.shift(Does::ShiftLeft, kType, low, low, 1u << i);
    t_.shift(Does::ShiftRight, kType, all, all, 1u << i);
    t_.binary(Does::And, kType, all, all, mask);
    t_.binary(Does::Or, kType, all, all, low);
  }
  t_.copy(to, all);
}

// dp4a.
void Emitter::dot4(const Step& step, uint32_t s, const Reg& to) {
  const Reg a = bits_of(*step.a, s, 0), b = bits_of(*step.b, s, 0);
  const Reg sum = t_.vector(), left = t_.vector(), right = t_.vector();
  t_.copy(sum, bits_of(*step.c, s, 0));
  const auto byte = [&](const Reg& part, const Reg& from, uint32_t i, bool is_signed) {
    t_.shift(Does::ShiftLeft, Number::U32, part, from, 24 - i * 8);
    t_.shift(Does::ShiftRight, is_signed ? Number::S32 : Number::U32, part, part, 24);
  };
  for (uint32_t i = 0; i < 4; ++i) {
    byte(left, a, i, step.op.imm & 1);
    byte(right, b, i, step.op.imm & 2);
    t_.ternary(Does::Mad, Number::U32, sum, left, right, sum);
  }
  t_.copy(to, sum);
}

bool Emitter::bits_step(const Step& step, uint32_t s, const Reg& to) {
  const Does does = step.meaning.does;
  if (does == Does::Lookup) {
    lookup(step, s, to);
    return true;
  }
  if (does == Does::Dot4) {
    dot4(step, s, to);
    return true;
  }
  const Reg from = bits_of(*step.a, s, 0);
  if (t_.unary(does, Number::U32, to, from)) return true;
  if (does == Does::PopCount)
    count_bits(to, from);
  else if (does == Does::LeadingZeros)
    leading_zeros(to, from);
  else
    reverse_bits(to, from);
  return true;
}

}  // namespace kiln::engine
