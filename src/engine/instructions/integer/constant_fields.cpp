// SPDX-License-Identifier: Apache-2.0
// How are bfe, bfi and prmt lowered if the numbers that select bits and bytes are constants? To
// shifts and logic on whole words, which are vector code, and instructions in compiled code; the
// general functions of bits.cpp go through the lanes one by one.
#include "engine/instructions/integer/constant_fields.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <vector>

#include "engine/decode/lanes.h"
#include "engine/numbers/integer_operations.h"

namespace kiln::engine {
namespace {

// Emits the Ops of one instruction. Each reads what the one before wrote; the last one writes the
// instruction's result.
class Chain {
 public:
  explicit Chain(Lowering& l) : l_(l) {}

  // The source of an operand that has 32 lanes. Returns false if it is a scalar or there is none.
  bool read(const ptx::Operand& operand, ptx::Type type, Source* out) {
    return l_.source(operand, type, out) && !out->uniform;
  }
  template <class F, class T, class B>
  Source apply(Source a, Source b) {
    finish_step();
    last_ = {binary_handler<F, T, T, B>(a, b), a, b};
    bytes_ = sizeof(T);
    return {kPending};
  }
  template <class T>
  Source shift_left(Source a, uint32_t by) {
    return by ? apply<ShiftLeft, T, uint32_t>(here(a), number(by)) : a;
  }
  template <class T>
  Source shift_right(Source a, uint32_t by) {
    return by ? apply<ShiftRight, T, uint32_t>(here(a), number(by)) : a;
  }
  template <class T>
  Source mask(Source a, T bits) {
    return apply<And, T, T>(here(a), number(bits));
  }
  template <class T>
  Source join(Source a, Source b) {
    const Source left = here(a), right = here(b);
    return apply<Or, T, T>(left, right);
  }
  template <class T>
  Source subtract(Source a, Source b) {
    return apply<Sub, T, T>(here(a), b);
  }
  // Where a result is if other Ops follow.
  Source here(Source a) {
    if (a.offset != kPending) return a;
    finish_step();
    return written_;
  }
  bool end() {
    if (!last_.handler) return false;
    l_.emit_value(l_.operand(0), bytes_, false, last_.handler, last_.a, last_.b);
    return true;
  }

 private:
  static constexpr uint32_t kPending = ~uint32_t{0};
  Source number(uint64_t bits) { return {l_.constant(bits), true}; }
  void finish_step() {
    if (!last_.handler) return;
    l_.emit(last_.handler);
    const uint32_t slot = l_.temporary(bytes_);
    Op& op = l_.program().ops.back();
    op.a = last_.a.offset, op.b = last_.b.offset, op.d = slot;
    op.effect = bytes_ == 8 ? Effect::Lanes8 : Effect::Lanes4;
    written_ = {slot};
    last_ = {};
  }
  struct Step {
    Handler handler = nullptr;
    Source a, b;
  };
  Lowering& l_;
  Step last_;
  uint32_t bytes_ = 4;
  Source written_;
};

struct Field {
  uint32_t at, length;
};
// The field, if it is inside the register; otherwise the general function handles it.
std::optional<Field> field_of(const Lowering& l, size_t at, uint32_t bits) {
  const auto first = l.number_of(l.operand(at)), count = l.number_of(l.operand(at + 1));
  if (!first || !count || *first >= bits || *count == 0 || *count > bits - *first || *count == bits)
    return std::nullopt;
  return Field{static_cast<uint32_t>(*first), static_cast<uint32_t>(*count)};
}

template <class T>
constexpr T ones(uint32_t count) {
  return static_cast<T>(~T{0}) >> (sizeof(T) * 8 - count);
}

template <class T>
bool extract(Lowering& l, Field field) {
  using Signed = std::make_signed_t<T>;
  constexpr uint32_t kBits = sizeof(T) * 8;
  Chain chain(l);
  Source a;
  if (!chain.read(l.operand(1), l.type(), &a)) return false;
  if (ptx::is_signed(l.type())) {
    const Source top = chain.shift_left<T>(a, kBits - field.at - field.length);
    chain.shift_right<Signed>(top, kBits - field.length);
    return chain.end();
  }
  const Source low = chain.shift_right<T>(a, field.at);
  if (field.at + field.length < kBits) chain.mask<T>(low, ones<T>(field.length));
  return chain.end();
}

template <class T>
bool insert(Lowering& l, Field field) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  Chain chain(l);
  Source a, b;
  const auto into = l.number_of(l.operand(2));
  if (!chain.read(l.operand(1), l.type(), &a)) return false;
  if (into != 0u && !chain.read(l.operand(2), l.type(), &b)) return false;
  const bool is_cut = field.at + field.length == kBits;  // the shift drops the other bits
  Source value = is_cut ? a : chain.mask<T>(a, ones<T>(field.length));
  value = chain.shift_left<T>(value, field.at);
  if (into == 0u) return chain.end();
  value = chain.here(value);
  const Source rest = chain.mask<T>(b, static_cast<T>(~(ones<T>(field.length) << field.at)));
  chain.join<T>(value, rest);
  return chain.end();
}

// Bytes of one source that all move by the same number of bytes.
struct Moved {
  uint32_t source;
  int32_t by;      // to the left; negative: to the right
  uint32_t bytes;  // of the result, as a bit mask
};

struct Selected {
  uint32_t from;  // 0 to 7
  bool is_sign;
};
using Selection = std::array<Selected, 4>;

// The first bytes are neighbours of one source, and the others are copies of the sign of the last
// of these.
std::optional<Field> sign_extended(const Selection& bytes) {
  uint32_t count = 1;
  if (bytes[0].is_sign) return std::nullopt;
  while (count < 4 && !bytes[count].is_sign && bytes[count].from == bytes[0].from + count) ++count;
  if (count == 4 || bytes[0].from / 4 != bytes[count - 1].from / 4) return std::nullopt;
  for (uint32_t i = count; i < 4; ++i) {
    if (!bytes[i].is_sign || bytes[i].from != bytes[count - 1].from) return std::nullopt;
  }
  return Field{bytes[0].from % 4 * 8, count * 8};
}

// `signs`: of the bytes that are copies of a sign; otherwise of the others.
std::vector<Moved> moves_of(const Selection& bytes, uint32_t zeros, bool signs) {
  std::vector<Moved> out;
  for (uint32_t i = 0; i < 4; ++i) {
    if (bytes[i].is_sign != signs) continue;
    const uint32_t source = bytes[i].from / 4;
    const auto by = static_cast<int32_t>(i) - static_cast<int32_t>(bytes[i].from % 4);
    if (zeros >> source & 1) continue;
    const auto same = std::find_if(out.begin(), out.end(), [&](const Moved& each) {
      return each.source == source && each.by == by;
    });
    const uint32_t mask = 0xffu << i * 8;
    if (same == out.end())
      out.push_back({source, by, mask});
    else
      same->bytes |= mask;
  }
  return out;
}

Source move_bytes(Chain& chain, Source from, const Moved& how) {
  const auto bits = static_cast<uint32_t>(std::abs(how.by)) * 8;
  const Source moved =
      how.by > 0 ? chain.shift_left<uint32_t>(from, bits) : chain.shift_right<uint32_t>(from, bits);
  const uint32_t all = how.by > 0 ? ~0u << bits : ~0u >> bits;
  return how.bytes == all ? moved : chain.mask<uint32_t>(moved, how.bytes);
}

// Each of these bytes is all ones if the sign of its source byte is set. The signs become the low
// bits of the bytes, which 255 spreads.
Source copies_of_signs(Chain& chain, Source from, const Moved& how) {
  const int32_t bits = how.by * 8 - 7;
  Source low = bits > 0 ? chain.shift_left<uint32_t>(from, static_cast<uint32_t>(bits))
                        : chain.shift_right<uint32_t>(from, static_cast<uint32_t>(-bits));
  low = chain.here(chain.mask<uint32_t>(low, how.bytes & 0x01010101u));
  return chain.subtract<uint32_t>(chain.shift_left<uint32_t>(low, 8), low);
}

}  // namespace

bool extract_constant_field(Lowering& l) {
  const bool is_wide = ptx::bytes_of(l.type()) == 8;
  const auto field = field_of(l, 2, is_wide ? 64 : 32);
  return field && (is_wide ? extract<uint64_t>(l, *field) : extract<uint32_t>(l, *field));
}

bool insert_constant_field(Lowering& l) {
  const bool is_wide = ptx::bytes_of(l.type()) == 8;
  const auto field = field_of(l, 3, is_wide ? 64 : 32);
  return field && (is_wide ? insert<uint64_t>(l, *field) : insert<uint32_t>(l, *field));
}

bool permute_by_constant(Lowering& l) {
  const auto selector = l.number_of(l.operand(3));
  if (!selector) return false;
  Selection bytes;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto nibble = static_cast<uint32_t>(*selector >> 4 * i & 15);
    bytes[i] = {nibble & 7, nibble >= 8};
  }
  Chain chain(l);
  std::array<Source, 2> from;
  uint32_t zeros = 0;
  const auto read = [&](uint32_t source) {
    if (l.number_of(l.operand(source + 1)) == 0u) {
      zeros |= 1u << source;
      return true;
    }
    return chain.read(l.operand(source + 1), ptx::Type::b32, &from[source]);
  };
  const auto reads = [&](uint32_t source) {
    return std::any_of(bytes.begin(), bytes.end(),
                       [&](const Selected& each) { return each.from / 4 == source; });
  };
  for (uint32_t source : {0u, 1u}) {
    if (reads(source) && !read(source)) return false;
  }
  if (const auto field = sign_extended(bytes)) {
    const uint32_t source = bytes[0].from / 4;
    if (zeros >> source & 1) return false;
    const Source top = chain.shift_left<uint32_t>(from[source], 32 - field->at - field->length);
    chain.shift_right<int32_t>(top, 32 - field->length);
    return chain.end();
  }
  Source all;
  bool is_first = true;
  const auto join = [&](Source more) {
    all = is_first ? more : chain.join<uint32_t>(all, more);
    is_first = false;
  };
  for (const Moved& each : moves_of(bytes, zeros, true)) {
    if (!is_first) all = chain.here(all);
    join(copies_of_signs(chain, from[each.source], each));
  }
  for (const Moved& each : moves_of(bytes, zeros, false)) {
    if (!is_first) all = chain.here(all);
    join(move_bytes(chain, from[each.source], each));
  }
  return chain.end();
}

}  // namespace kiln::engine
