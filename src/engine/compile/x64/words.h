// SPDX-License-Identifier: Apache-2.0
// What in the code generator for x86-64 does not depend on the width of vectors? General registers,
// addresses, jumps and calls (x64/words.cpp).
#pragma once

#include <asmjit/x86.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compile/target.h"
#include "engine/compile/x64/registers.h"
#include "engine/memory/spare.h"

namespace kiln::engine {

namespace x86 = asmjit::x86;
using x86::Gp;
using x86::Mem;

inline Gp x(const Reg& reg) { return reg.as<Gp>().r64(); }
inline Gp w(const Reg& reg) { return reg.as<Gp>().r32(); }
inline Gp sized(const Reg& reg, Number type) { return bytes_of(type) == 8 ? x(reg) : w(reg); }

inline bool is_signed(Number type) { return type == Number::S32 || type == Number::S64; }

// The operand of an instruction that compares floats; none of these raises an exception for a NaN.
x86::VCmpImm float_condition(Comparison comparison);
x86::CondCode word_condition(Comparison comparison, bool sign);

class X64Words : public Target {
 public:
  explicit X64Words(const CodesX64& codes) { cc_.clear(codes); }
  ~X64Words() override {
    if (cc_.size() < NotesX64::kMostKept) Spare<Known>::give_back(std::move(generator_));
  }

  // NotesX64 expects registers to be overwritten from the third of these instructions on.
  void call(const void* handler, Reg warp, const void* op) override {
    cc_.push(x86::rdi);
    cc_.mov(x86::rdi, x(warp));
    cc_.mov(x86::rsi, reinterpret_cast<uint64_t>(op));
    cc_.mov(x86::rax, reinterpret_cast<uint64_t>(handler));
    cc_.vzeroupper();
    cc_.call(x86::rax);
    cc_.pop(x86::rdi);
  }
  void begin() override { end_ = cc_.newLabel(); }
  Reg pass() override { return x86::rdi; }
  bool finish(std::vector<std::byte>* bytes) override;

  Reg new_word() override { return cc_.new_word(); }
  Label label() override { return cc_.newLabel(); }
  Label bare_label() override { return cc_.new_bare_label(); }
  void bind(Label at) override { cc_.bind(at); }
  void jump(Label to) override { cc_.jmp(to); }
  void leave(uint32_t exit) override {
    cc_.mov(x86::eax, exit);
    cc_.jmp(end_);
  }

  // An address holds an offset of 32 bits.
  Mem at(const Reg& base, int64_t offset) {
    if (offset == static_cast<int32_t>(offset))
      return x86::ptr(x(base), static_cast<int32_t>(offset));
    Gp sum = temporary_word();
    cc_.mov(sum, offset);
    cc_.add(sum, x(base));
    return x86::ptr(sum);
  }

  void load_word(Reg to, Reg base, int64_t offset, uint32_t bytes) override {
    if (bytes < 4) return load_small_word(to, base, offset, Number::U16, 2);
    cc_.mov(bytes == 8 ? x(to) : w(to), at(base, offset));
  }
  void store_word(Reg from, Reg base, int64_t offset, uint32_t bytes) override {
    const Mem to = at(base, offset);
    if (bytes == 1)
      cc_.mov(to, x(from).r8());
    else if (bytes == 2)
      cc_.mov(to, x(from).r16());
    else
      cc_.mov(to, bytes == 8 ? x(from) : w(from));
  }
  void ask_for(const Reg& base, const Reg& distance, int64_t offset) override {
    cc_.prefetcht0(x86::ptr(x(base), x(distance), 0, static_cast<int32_t>(offset)));
  }
  void load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                       uint32_t bytes) override;
  void constant_word(Reg to, uint64_t bits) override { cc_.mov(x(to), bits); }

  void round(int64_t how) override;
  void round_as_before() override {
    cc_.vldmxcsr(at(pass(), static_cast<int64_t>(offsetof(Pass, rounded))));
  }

  bool word_unary(Does does, Number type, Reg to, Reg a) override;
  bool word_binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  void word_extend(bool is_signed_value, Reg to, Reg a) override {
    is_signed_value ? cc_.movsxd(x(to), w(a)) : cc_.mov(w(to), w(a));
  }
  void word_add(Reg to, Reg a, int64_t number) override;
  void word_shift(const Reg& to, const Reg& a, uint32_t by) override {
    if (to.id() != a.id()) cc_.mov(x(to), x(a));
    if (by) cc_.shr(x(to), by);
  }
  void word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void word_select(Reg to, Reg condition, Reg a, Reg b) override;
  void load_word_at(const Reg& to, const Reg& base, const Reg& index, int64_t offset,
                    uint32_t bytes) override {
    cc_.mov(bytes == 8 ? x(to) : w(to), at_index(base, index, offset, bytes));
  }
  void store_word_at(const Reg& from, const Reg& base, const Reg& index, int64_t offset,
                     uint32_t bytes) override {
    cc_.mov(at_index(base, index, offset, bytes), bytes == 8 ? x(from) : w(from));
  }
  void load_word_from(const Reg& to, const Reg& base, const Reg& distance,
                      uint32_t bytes) override {
    cc_.mov(bytes == 8 ? x(to) : w(to), x86::ptr(x(base), x(distance)));
  }
  void store_word_from(const Reg& from, const Reg& base, const Reg& distance,
                       uint32_t bytes) override {
    cc_.mov(x86::ptr(x(base), x(distance)), bytes == 8 ? x(from) : w(from));
  }
  void lowest_bit(const Reg& to, const Reg& bits) override { cc_.tzcnt(x(to), x(bits)); }
  void clear_lowest_bit(const Reg& bits) override { cc_.blsr(x(bits), x(bits)); }
  void jump_if(Reg word, bool is_set, Label to) override {
    cc_.test(x(word), x(word));
    is_set ? cc_.jnz(to) : cc_.jz(to);
  }
  void jump_unless(const Reg& value, uint64_t number, const Label& to) override {
    if (static_cast<int64_t>(number) != static_cast<int32_t>(number))
      return Target::jump_unless(value, number, to);
    cc_.cmp(x(value), static_cast<int32_t>(number));
    cc_.jne(to);
  }
  void jump_if_above(Reg a, Reg b, Label to) override {
    cc_.cmp(x(a), x(b));
    cc_.ja(to);
  }
  void jump_if_differ(const Reg& a, const Reg& b, const Label& to) override {
    cc_.cmp(x(a), x(b));
    cc_.jne(to);
  }
  void jump_if_bits(Reg word, uint64_t bits, Label to) override;
  void jump_unless_at(const Reg& base, int64_t offset, uint32_t bytes, uint64_t number,
                      const Label& to) override {
    const auto low = static_cast<int32_t>(number);
    if (bytes == 8 && number != static_cast<uint64_t>(int64_t{low}))
      return Target::jump_unless_at(base, offset, bytes, number, to);
    Mem value = at(base, offset);
    value.setSize(bytes);
    cc_.cmp(value, low);
    cc_.jne(to);
  }
  void jump_if_bits_at(const Reg& base, int64_t offset, uint32_t bits, const Label& to) override {
    Mem value = at(base, offset);
    value.setSize(4);
    cc_.test(value, static_cast<int32_t>(bits));
    cc_.jnz(to);
  }

 protected:
  Gp temporary_word() { return word().as<Gp>(); }
  static Mem at_index(const Reg& base, const Reg& index, int64_t offset, uint32_t bytes) {
    return x86::ptr(x(base), x(index), bytes == 8 ? 3 : 2, static_cast<int32_t>(offset));
  }

  struct Known {
    NotesX64 notes;
    RegistersX64 registers;
  };
  std::unique_ptr<Known> generator_ = Spare<Known>::take();
  NotesX64& cc_ = generator_->notes;
  Label end_;
};

}  // namespace kiln::engine
