// SPDX-License-Identifier: Apache-2.0
// What does the code generator of aarch64 keep? (a64/target.cpp, a64/numbers.cpp, a64/lanes.cpp,
// a64/words.cpp)
#pragma once

#include <asmjit/arm/a64emitter.h>

#include <array>
#include <bit>
#include <cstddef>
#include <vector>

#include "engine/compile/a64/registers.h"
#include "engine/compile/target.h"
#include "engine/memory/spare.h"

namespace kiln::engine {

using asmjit::a64::Gp;
using asmjit::a64::Mem;
using asmjit::a64::Vec;
namespace a64 = asmjit::a64;
using Cond = asmjit::a64::CondCode;

inline Vec v(const Reg& reg) { return reg.as<Vec>(); }
inline Gp x(const Reg& reg) { return reg.as<Gp>().x(); }
inline Gp w(const Reg& reg) { return reg.as<Gp>().w(); }
inline Gp sized(const Reg& reg, Number type) { return bytes_of(type) == 8 ? x(reg) : w(reg); }

inline bool is_signed(Number type) { return type == Number::S32 || type == Number::S64; }

class A64 final : public Target {
 public:
  A64() { cc_.clear(); }
  ~A64() override {
    if (cc_.size() < NotesA64::kMostKept) Spare<Known>::give_back(std::move(generator_));
  }
  uint32_t vector_lanes() const override { return 4; }
  uint32_t vector_count() const override { return 32; }

  // Registers are lost from the second instruction on (NotesA64::note_uses).
  void call(const void* handler, Reg warp, const void* op) override {
    cc_.mov(a64::x0, x(warp));
    cc_.mov(a64::x1, reinterpret_cast<uint64_t>(op));
    cc_.mov(a64::x16, reinterpret_cast<uint64_t>(handler));
    cc_.blr(a64::x16);
    cc_.ldr(a64::x0, a64::ptr(a64::sp, 16));  // RegistersA64::save
  }
  void begin() override { end_ = cc_.newLabel(); }
  Reg pass() override { return a64::x0; }
  bool finish(std::vector<std::byte>* bytes) override {
    cc_.bind(end_);
    cc_.ret(a64::x30);
    return generator_->registers.run(cc_, bytes);
  }

  Reg new_vector() override { return cc_.new_vector(); }
  Reg new_word() override { return cc_.new_word(); }
  Label label() override { return cc_.newLabel(); }
  Label bare_label() override { return cc_.new_bare_label(); }
  void bind(Label at) override { cc_.bind(at); }
  void jump(Label to) override { cc_.b(to); }
  void leave(uint32_t exit) override {
    cc_.mov(a64::w0, exit);
    cc_.b(end_);
  }

  // The offsets that fit into an address depend on the size of the access; others are added first.
  Mem at(const Reg& base, int64_t offset, uint32_t bytes) {
    const bool fits = (offset >= 0 && offset < int64_t{4096} * bytes && offset % bytes == 0) ||
                      (offset >= -256 && offset < 256);
    if (fits) return a64::ptr(x(base), static_cast<int32_t>(offset));
    Gp sum = temporary_word();
    if (offset > 0 && offset < (int64_t{1} << 24)) {
      cc_.add(sum, x(base), static_cast<uint64_t>(offset & ~int64_t{4095}));
      const int64_t rest = offset & 4095;
      if (rest % bytes == 0 || rest < 256) return a64::ptr(sum, static_cast<int32_t>(rest));
      cc_.add(sum, sum, static_cast<uint64_t>(rest));
      return a64::ptr(sum);
    }
    cc_.mov(sum, static_cast<uint64_t>(offset));
    cc_.add(sum, sum, x(base));
    return a64::ptr(sum);
  }
  void load(Reg to, Reg base, int64_t offset) override { cc_.ldr(v(to), at(base, offset, 16)); }
  void store(Reg from, Reg base, int64_t offset) override {
    cc_.str(v(from), at(base, offset, 16));
  }
  void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) override {
    if (bytes < 4) {
      Gp word = temporary_word();
      load_small_word(word, base, offset, Number::U16, 2);
      return splat(to, word, 4);
    }
    Gp where = x(base);
    if (offset != 0) {
      where = temporary_word();
      word_add(where, base, offset);
    }
    if (bytes == 8)
      cc_.ld1r(v(to).d2(), a64::ptr(where));
    else
      cc_.ld1r(v(to).s4(), a64::ptr(where));
  }
  void load_word(Reg to, Reg base, int64_t offset, uint32_t bytes) override {
    if (bytes < 4) return load_small_word(to, base, offset, Number::U16, 2);
    cc_.ldr(bytes == 8 ? x(to) : w(to), at(base, offset, bytes));
  }
  void store_word(Reg from, Reg base, int64_t offset, uint32_t bytes) override {
    const Mem to = at(base, offset, bytes);
    if (bytes == 1)
      cc_.strb(w(from), to);
    else if (bytes == 2)
      cc_.strh(w(from), to);
    else
      cc_.str(bytes == 8 ? x(from) : w(from), to);
  }
  void load_small(const Reg& to, const Reg& base, int64_t offset, Number from) override;
  void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) override;
  void load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                       uint32_t bytes) override;

  void copy(Reg to, Reg from) override {
    if (to.id() == from.id()) return;
    if (to.isVec())
      cc_.mov(v(to).b16(), v(from).b16());
    else
      cc_.mov(x(to), x(from));
  }
  void splat(Reg to, Reg word, uint32_t bytes) override {
    if (bytes == 8)
      cc_.dup(v(to).d2(), x(word));
    else
      cc_.dup(v(to).s4(), w(word));
  }
  void constant(Reg to, uint64_t bits, uint32_t bytes) override {
    const uint64_t all = bytes == 8 ? bits : (bits & 0xffffffffu) * 0x100000001u;
    constant_lanes(v(to), all, all);
  }
  void steps(Reg to, uint64_t step, uint32_t bytes) override {
    const auto [low, high] = steps_from(0, step, bytes);
    constant_lanes(v(to), low, high);
  }
  bool adds_steps() const override { return true; }
  void add_steps(const Reg& to, const Reg& a, int64_t first, int64_t step,
                 uint32_t bytes) override {
    const auto [low, high] =
        steps_from(static_cast<uint64_t>(first), static_cast<uint64_t>(step), bytes);
    Vec rises = temporary();
    constant_lanes(rises, low, high);
    bytes == 8 ? cc_.add(v(to).d2(), v(a).d2(), rises.d2())
               : cc_.add(v(to).s4(), v(a).s4(), rises.s4());
  }
  void constant_word(Reg to, uint64_t bits) override { cc_.mov(x(to), bits); }
  void lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) override {
    if (bytes == 8)
      cc_.umov(x(to), v(vector).d(lane));
    else
      cc_.umov(w(to), v(vector).s(lane));
  }
  void set_lane(Reg to, Reg word, uint32_t lane, uint32_t bytes) override {
    if (bytes == 8)
      cc_.ins(v(to).d(lane), x(word));
    else
      cc_.ins(v(to).s(lane), w(word));
  }

  void load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) override {
    if (lane == 0)
      bytes == 8 ? cc_.ldr(v(to).d(), a64::ptr(x(base))) : cc_.ldr(v(to).s(), a64::ptr(x(base)));
    else
      cc_.ld1(bytes == 8 ? v(to).d(lane) : v(to).s(lane), a64::ptr(x(base)));
  }

  // Lane by lane: NEON has no gathers (a64/lanes.cpp).
  bool gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low, const Reg& high,
              uint32_t bytes) override;
  bool gathers_narrow() const override { return true; }
  void gather_narrow(const Reg& to, const Reg& base, int64_t offset, const Reg& distances,
                     uint32_t shift) override;
  bool load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step,
                  uint32_t bytes) override;
  bool store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                   uint32_t bytes) override;
  bool load_elements(const List<Reg>& to, const Reg& base, int64_t offset) override;
  bool store_elements(const List<Reg>& from, const Reg& base, int64_t offset) override;
  bool loads_some() const override { return true; }
  bool loads_some_at_once() const override { return false; }
  void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) override;
  bool gathers_small() const override { return true; }
  void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                    uint32_t bytes) override;
  void widen_small(const Reg& to, const Reg& a, Number from) override {
    widen_neighbours(v(to), v(a), from);
  }
  void exchange(const Reg& to, const Reg& from, uint32_t bits) override;
  void order(const Reg& to, const uint8_t* lanes) override;
  void permute(const Reg& to, const Reg& from, const Reg& order) override {
    cc_.tbl(v(to).b16(), v(from).b16(), v(order).b16());
  }
  void join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) override;

  void load_word_at(const Reg& to, const Reg& base, const Reg& index, int64_t offset,
                    uint32_t bytes) override {
    cc_.ldr(bytes == 8 ? x(to) : w(to), at_index(base, index, offset, bytes));
  }
  void store_word_at(const Reg& from, const Reg& base, const Reg& index, int64_t offset,
                     uint32_t bytes) override {
    cc_.str(bytes == 8 ? x(from) : w(from), at_index(base, index, offset, bytes));
  }
  void lowest_bit(const Reg& to, const Reg& bits) override {
    Gp turned = temporary_word();
    cc_.rbit(turned, x(bits));
    cc_.clz(x(to), turned);
  }
  void clear_lowest_bit(const Reg& bits) override {
    Gp less = temporary_word();
    cc_.sub(less, x(bits), 1);
    cc_.and_(x(bits), x(bits), less);
  }

  void load_first(const Reg& to, const Reg& base, int64_t offset, uint32_t bytes) override {
    if (bytes == 8)
      cc_.ldr(v(to).d(), at(base, offset, 8));
    else
      cc_.ldr(v(to).s(), at(base, offset, 4));
  }

  void any_and_differ(Reg any, Reg differ, const List<Reg>& masks) override;
  bool unary(Does does, Number type, Reg to, Reg a) override;
  bool binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) override;
  bool needs_quiet_operands() const override { return true; }
  bool shift(Does does, Number type, Reg to, Reg a, uint32_t by) override;
  void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) override {
    // Shifts the low half right, and inserts the high half above it.
    const uint32_t left = does == Does::FunnelRight ? 32 - by : by;
    const Vec both = to.id() == high.id() ? temporary() : v(to);
    cc_.ushr(both.s4(), v(low).s4(), 32 - left);
    cc_.sli(both.s4(), v(high).s4(), left);
    if (both.id() != to.id()) cc_.mov(v(to).b16(), both.b16());
  }
  bool convert(Number to_type, Number from, Reg to, Reg a) override;
  void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;

  void widen(bool is_signed_value, bool high, Reg to, Reg a) override {
    if (is_signed_value)
      high ? cc_.sxtl2(v(to).d2(), v(a).s4()) : cc_.sxtl(v(to).d2(), v(a).s2());
    else
      high ? cc_.uxtl2(v(to).d2(), v(a).s4()) : cc_.uxtl(v(to).d2(), v(a).s2());
  }
  void mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) override {
    if (is_signed_value)
      high ? cc_.smull2(v(to).d2(), v(a).s4(), v(b).s4())
           : cc_.smull(v(to).d2(), v(a).s2(), v(b).s2());
    else
      high ? cc_.umull2(v(to).d2(), v(a).s4(), v(b).s4())
           : cc_.umull(v(to).d2(), v(a).s2(), v(b).s2());
  }
  void narrow(Reg to, Reg low, Reg high) override {
    cc_.uzp1(v(to).s4(), v(low).s4(), v(high).s4());
  }
  void select(Reg to, Reg mask, Reg a, Reg b) override {
    const bool apart = to.id() == a.id() || to.id() == b.id();
    const Vec chosen = apart ? temporary() : v(to);
    if (chosen.id() != mask.id()) cc_.mov(chosen.b16(), v(mask).b16());
    cc_.bsl(chosen.b16(), v(a).b16(), v(b).b16());
    if (apart) cc_.mov(v(to).b16(), chosen.b16());
  }
  void blend(const Reg& to, const Reg& from, const Reg& mask) override {
    cc_.bit(v(to).b16(), v(from).b16(), v(mask).b16());
  }
  void blend_others(const Reg& to, const Reg& from, const Reg& mask) override {
    cc_.bif(v(to).b16(), v(from).b16(), v(mask).b16());
  }
  void select_bits(Reg to, Reg bits, Reg a, Reg b) override { select(to, bits, a, b); }
  void canonicalize(Reg value, Reg nan) override {
    Vec is_number = temporary();
    cc_.fcmeq(is_number.s4(), v(value).s4(), v(value).s4());
    cc_.bif(v(value).b16(), v(nan).b16(), is_number.b16());
  }
  void canonicalize_wide(const Reg& value) override {
    Vec is_number = temporary(), nan = temporary();
    constant(nan, 0xfff8000000000000u, 8);
    cc_.fcmeq(is_number.d2(), v(value).d2(), v(value).d2());
    cc_.bif(v(value).b16(), nan.b16(), is_number.b16());
  }
  void flush(const Reg& to, const Reg& a) override;
  void round(int64_t how) override;
  void round_as_before() override;
  void unpack(Small small, uint32_t part, const Reg& to, const Reg& a) override;
  void pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) override;
  bool from_double(Number to_type, Reg to, Reg low, Reg high) override;
  bool to_double(Number from, bool high, Reg to, Reg a) override;
  void bits_to_mask(Reg to, Reg word, uint32_t first) override {
    Vec all = temporary();
    cc_.dup(all.s4(), w(word));
    bits_to_mask_of(v(to), all, first);
  }
  void bits_to_masks(const List<Reg>& to, const Reg& word) override {
    Vec all = temporary();
    cc_.dup(all.s4(), w(word));
    for (size_t i = 0; i < to.size(); ++i) {
      const Mark mark = this->mark();
      bits_to_mask_of(v(to[i]), all, static_cast<uint32_t>(i) * 4);
      release(mark);
    }
  }
  void mask_to_bits(Reg word, Reg mask, uint32_t first) override {
    Vec bits = temporary();
    lane_bits(bits, 0);
    cc_.and_(bits.b16(), bits.b16(), v(mask).b16());
    cc_.addv(bits.s(), bits.s4());
    Gp lanes = temporary_word();
    cc_.umov(lanes.w(), bits.s(0));
    cc_.orr(x(word), x(word), lanes, a64::lsl(first));
  }

  bool word_unary(Does does, Number type, Reg to, Reg a) override;
  bool word_binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  void word_extend(bool is_signed_value, Reg to, Reg a) override {
    is_signed_value ? cc_.sxtw(x(to), w(a)) : cc_.mov(w(to), w(a));
  }
  void word_add(Reg to, Reg a, int64_t number) override {
    if (number == 0) {
      copy(to, a);
    } else if (number >= 0 && number < 4096) {
      cc_.add(x(to), x(a), static_cast<uint64_t>(number));
    } else if (number < 0 && number > -4096) {
      cc_.sub(x(to), x(a), static_cast<uint64_t>(-number));
    } else {
      Gp word = temporary_word();
      cc_.mov(word, static_cast<uint64_t>(number));
      cc_.add(x(to), x(a), word);
    }
  }
  void word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void word_select(Reg to, Reg condition, Reg a, Reg b) override {
    cc_.cmp(x(condition), 0);
    cc_.csel(x(to), x(a), x(b), Cond::kNE);
  }
  void jump_if(Reg word, bool is_set, Label to) override {
    is_set ? cc_.cbnz(x(word), to) : cc_.cbz(x(word), to);
  }
  void jump_if_above(Reg a, Reg b, Label to) override {
    cc_.cmp(x(a), x(b));
    cc_.b_hi(to);
  }
  void jump_if_bits(Reg word, uint64_t bits, Label to) override {
    if (std::has_single_bit(bits)) {
      cc_.tbnz(x(word), std::countr_zero(bits), to);
      return;
    }
    cc_.tst(x(word), bits);
    cc_.b_ne(to);
  }

 private:
  Mem at_index(const Reg& base, const Reg& index, int64_t offset, uint32_t bytes) {
    Gp sum = temporary_word();
    word_add(sum, base, offset);
    return a64::ptr(sum, x(index), a64::lsl(bytes == 8 ? 3 : 2));
  }
  void is_above(Number type, const Reg& d, const Reg& l, const Reg& r);
  void is_from(Number type, const Reg& d, const Reg& l, const Reg& r);
  void is_same(Number type, const Reg& d, const Reg& l, const Reg& r);
  bool unary_bits(Does does, const Vec& to, const Vec& a);
  bool unary_wide(Does does, const Vec& to, const Vec& a);
  bool binary_real(Does does, const Vec& to, const Vec& a, const Vec& b);
  bool binary_wide(Does does, const Vec& to, const Vec& a, const Vec& b);
  Vec temporary() { return vector().as<Vec>(); }
  Gp temporary_word() { return word().as<Gp>(); }
  // The two halves of a vector of such lanes.
  static std::array<uint64_t, 2> steps_from(uint64_t first, uint64_t step, uint32_t bytes) {
    const auto two = [&](uint64_t lane) {
      return uint64_t{static_cast<uint32_t>(first + step * lane)} |
             uint64_t{static_cast<uint32_t>(first + step * (lane + 1))} << 32;
    };
    return bytes == 8 ? std::array{first, first + step} : std::array{two(0), two(2)};
  }
  void constant_lanes(const Vec& to, uint64_t low, uint64_t high) { cc_.constant(to, {low, high}); }
  void lane_bits(const Vec& to, uint32_t first) {  // 1, 2, 4, 8, shifted by `first`
    constant_lanes(to, (uint64_t{2} << 32 | 1) << first, (uint64_t{8} << 32 | 4) << first);
  }
  void bits_to_mask_of(const Vec& to, const Vec& all, uint32_t first) {
    Vec bits = temporary();
    lane_bits(bits, first);
    cc_.cmtst(to.s4(), all.s4(), bits.s4());
  }
  void turn(const std::array<Vec, 4>& rows, const std::array<Vec, 4>& to);
  void widen_neighbours(const Vec& to, const Vec& a, Number from);
  void power_of_two(const Vec& to, const Vec& a);
  void divide_nearly(const Vec& to, const Vec& a, const Vec& b);
  void divide_integers(Does does, Number type, const Reg& to, const Reg& a, const Reg& b);
  void multiply_high(Number type, const Vec& to, const Vec& a, const Vec& b);
  void multiply_wide(const Vec& to, const Vec& a, const Vec& b);
  Vec round_to_bf16(const Vec& value);

  struct Known {
    NotesA64 notes;
    RegistersA64 registers;
  };
  std::unique_ptr<Known> generator_ = Spare<Known>::take();
  NotesA64& cc_ = generator_->notes;
  Label end_;
};

}  // namespace kiln::engine
