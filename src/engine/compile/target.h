// SPDX-License-Identifier: Apache-2.0
// What does the compiler ask of a CPU? Operations on an unlimited number of registers, which the
// code generator assigns to those of the CPU. Each CPU has its own implementation.
//
// A vector holds `vector_lanes` lanes of 32 bits, or half as many of 64 bits. The lanes of a mask
// are all ones or zero.
#pragma once

#include <asmjit/core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/scratch.h"
#include "engine/program/meaning.h"

namespace kiln::engine {

using Reg = asmjit::BaseReg;
using Label = asmjit::Label;

constexpr size_t kSpilled = 1024, kSpilledBytes = kSpilled * 32;
constexpr size_t kMostPlaces = 64;

// The argument of machine code: its inputs and outputs, for the lanes of one pass.
struct Pass {
  std::byte* registers;  // the warp's frame
  std::byte* lanes4;     // the same, plus the offset of the first lane, for lanes of 4 bytes
  std::byte* lanes8;     // and of 8 bytes
  const uint64_t* table;
  uint64_t budget;  // backward branches that the code may still take
  uint64_t ran;     // Ops of the loop iterations that ran
  // Savings, if the code weighs itself (Emitted::weighs); for code of one lane: iterations.
  int64_t saved;
  uint32_t first_lane;
  uint32_t mask;  // lanes of the warp that run
  void* warp;     // for handlers
  // For code that checks itself (emit_checks.cpp).
  std::byte* shared;
  uint64_t shared_bytes;
  const void* cache;  // of the worker: the first entry, Worker::cached(nullptr)
  const void* seen;   // Compiled::seen
  uint32_t looked;    // not 0: the caller has looked up the regions
  // Local memory of the first lane, bytes that a lane may access, and distance between two lanes.
  std::byte* local;
  uint64_t local_bytes;
  uint32_t local_stride;
  // For code that continues with the next warps: with how many, and how many of them are left.
  uint32_t followers, left;
  // For code whose lanes diverge: the lanes that wait at each place, and the lanes that run.
  uint32_t waiting[kMostPlaces], here;
  // The CPU's rounding mode before Target::round(), and during it.
  uint32_t rounded, rounds;
  // For code that handles one lane after the other: addresses, values and results.
  alignas(64) std::byte scratch[kWarpSize * (8 + 8 + 8)];
  // These follow the scratch memory, as in LanesAside.
  void* aside_warp;
  uint32_t aside_mask;
  // For lanes of 8 or 16 bits on their way to a vector (Target::insert_small).
  alignas(64) std::byte small[64];
  // Spilled values (places.h). They come last, so that each load can reach the fields before them.
  alignas(64) uint64_t words[kSpilled];
  alignas(64) std::byte vectors[kSpilledBytes];
};
static_assert(offsetof(Pass, aside_warp) - offsetof(Pass, scratch) == offsetof(LanesAside, warp));
static_assert(offsetof(Pass, aside_mask) - offsetof(Pass, scratch) == offsetof(LanesAside, mask));
constexpr int64_t kScratchValues = kWarpSize * 8, kScratchResults = kWarpSize * 16;
// Returned by code that checks itself, if a check fails.
constexpr uint32_t kRefused = ~uint32_t{0};
// Returns the number of the exit that the code took.
using Code = uint32_t (*)(Pass*);

class Target {
 public:
  virtual ~Target() = default;
  virtual uint32_t vector_lanes() const = 0;
  virtual uint32_t vector_count() const = 0;  // registers that the CPU has

  // Begins the function. pass() is valid from here on.
  virtual void begin() = 0;
  virtual Reg pass() = 0;
  // Ends the function and writes its bytes, which do not depend on their address. Returns false on
  // failure.
  virtual bool finish(std::vector<std::byte>* bytes) = 0;

  virtual Reg new_vector() = 0;
  virtual Reg new_word() = 0;  // 64 bits
  // Temporary registers: release() frees all that were taken since mark(). The allocator is faster
  // if there are fewer registers.
  Reg vector() {
    return vectors_.take([this] { return new_vector(); });
  }
  Reg word() {
    return words_.take([this] { return new_word(); });
  }
  struct Mark {
    size_t vectors, words;
  };
  Mark mark() const { return {vectors_.used, words_.used}; }
  void release(const Mark& to) {
    vectors_.used = to.vectors;
    words_.used = to.words;
  }

  virtual Label label() = 0;
  // For a place that reads no values of the code, such as the target of a failed check: a
  // conditional jump to it does not end a block (Spans::new_bare_label).
  virtual Label bare_label() { return label(); }
  virtual void bind(Label at) = 0;
  virtual void jump(Label to) = 0;
  virtual void leave(uint32_t exit) = 0;
  // Runs an Op by calling its handler.
  virtual void call(const void* handler, Reg warp, const void* op) = 0;

  // Memory at base + offset. Words have 2, 4 or 8 bytes there; store_word() also takes 1.
  virtual void load(Reg to, Reg base, int64_t offset) = 0;
  virtual void store(Reg from, Reg base, int64_t offset) = 0;
  // ORs the bits in which `value` and memory differ into `all`. May clobber `value`.
  virtual void differ(const Reg& all, const Reg& value, const Reg& base, int64_t offset) {
    const Reg seen = vector();
    load(seen, base, offset);
    binary(Does::Xor, Number::U32, seen, seen, value);
    binary(Does::Or, Number::U32, all, all, seen);
  }
  virtual void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) = 0;
  virtual void load_word(Reg to, Reg base, int64_t offset, uint32_t bytes) = 0;
  virtual void store_word(Reg from, Reg base, int64_t offset, uint32_t bytes) = 0;

  // Asks for a line of the cache, at base + distance + offset, where the target can (kAsksAhead).
  // The memory need not exist.
  virtual void ask_for(const Reg& base, const Reg& distance, int64_t offset) {
    (void)base, (void)distance, (void)offset;
  }

  // Loads neighbouring values of 8 or 16 bits, and extends them by their type to lanes of 32 bits.
  // store_small() stores the low `bytes` of such lanes.
  virtual void load_small(const Reg& to, const Reg& base, int64_t offset, Number from) = 0;
  virtual void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) = 0;
  // insert_small() loads one such value for one lane; widen_small() extends all of them once they
  // are there. Callers must check gathers_small() first.
  virtual bool gathers_small() const { return false; }
  virtual void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                            uint32_t bytes) {
    (void)to, (void)base, (void)offset, (void)lane, (void)bytes;
  }
  virtual void widen_small(const Reg& to, const Reg& a, Number from) {
    (void)to, (void)a, (void)from;
  }
  // Loads one such value into a word, extended by its type to `bytes` (2 or 4), with zeros above.
  virtual void load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                               uint32_t bytes) = 0;

  virtual void copy(Reg to, Reg from) = 0;
  virtual void splat(Reg to, Reg word, uint32_t bytes) = 0;
  virtual void constant(Reg to, uint64_t bits, uint32_t bytes) = 0;  // in all lanes of a vector
  // Lane l of a vector becomes l * step.
  virtual void steps(Reg to, uint64_t step, uint32_t bytes) = 0;
  // Lane l becomes that of `a` plus first + l * step. Callers must check adds_steps() first: it is
  // false if constants cost more than words.
  virtual bool adds_steps() const { return false; }
  virtual void add_steps(const Reg& to, const Reg& a, int64_t first, int64_t step, uint32_t bytes) {
    (void)to, (void)a, (void)first, (void)step, (void)bytes;
  }
  virtual void constant_word(Reg to, uint64_t bits) = 0;
  virtual void lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) = 0;
  virtual void set_lane(Reg to, Reg word, uint32_t lane, uint32_t bytes) = 0;
  // Lane 0 has to be loaded first, because that may overwrite the other lanes.
  virtual void load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) = 0;

  // Loads each lane from base + offset + a distance of 64 bits. Lanes of 4 bytes take their
  // distances from two vectors, lanes of 8 bytes only from `low`. Returns false if the CPU has no
  // such operation.
  virtual bool gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low,
                      const Reg& high, uint32_t bytes) {
    (void)to, (void)base, (void)offset, (void)low, (void)high, (void)bytes;
    return false;
  }
  // Loads each lane of 4 bytes from base + offset + a signed distance of 32 bits, scaled by 1, 2,
  // 4 or 8 (`shift` is 0 to 3). Callers must check gathers_narrow() first.
  virtual bool gathers_narrow() const { return false; }
  virtual void gather_narrow(const Reg& to, const Reg& base, int64_t offset, const Reg& distances,
                             uint32_t shift) {
    (void)to, (void)base, (void)offset, (void)distances, (void)shift;
  }
  // Lane l is at base + offset + l * step. store_apart() with 1 or 2 bytes stores the low bits of
  // 32-bit lanes. These return false if the CPU has no such operation.
  virtual bool load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step,
                          uint32_t bytes) {
    (void)to, (void)base, (void)offset, (void)step, (void)bytes;
    return false;
  }
  virtual bool store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                           uint32_t bytes) {
    (void)from, (void)base, (void)offset, (void)step, (void)bytes;
    return false;
  }

  // Two or four elements of 4 bytes per lane: those of one lane are neighbours in memory, and
  // those of the next lane follow. There is one vector per element. These return false if the CPU
  // has no such operation.
  virtual bool load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
    (void)to, (void)base, (void)offset;
    return false;
  }
  virtual bool store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
    (void)from, (void)base, (void)offset;
    return false;
  }

  // Loads the first lane; the others become 0.
  virtual void load_first(const Reg& to, const Reg& base, int64_t offset, uint32_t bytes) {
    Reg value = word();
    load_word(value, base, offset, bytes);
    constant(to, 0, 4);
    set_lane(to, value, 0, bytes);
  }

  // Vectors. These return false, without emitting anything, if the CPU has no such operation.
  virtual bool unary(Does does, Number type, Reg to, Reg a) = 0;
  virtual bool binary(Does does, Number type, Reg to, Reg a, Reg b) = 0;
  virtual bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) = 0;
  // Do the minimum and the maximum of f32 return a NaN if one operand is a signaling NaN?
  virtual bool needs_quiet_operands() const { return false; }
  virtual bool shift(Does does, Number type, Reg to, Reg a,
                     uint32_t by) = 0;  // less than the width
  // Shifts the 64 bits of `high` and `low` by 1 to 31 bits; the result has 32 bits.
  virtual void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) = 0;
  virtual bool convert(Number to_type, Number from, Reg to, Reg a) = 0;  // to the same width
  // These read the low or the high half of the lanes of 32 bits.
  virtual void widen(bool is_signed, bool high, Reg to, Reg a) = 0;
  virtual void mul_wide(bool is_signed, bool high, Reg to, Reg a, Reg b) = 0;
  // The same, if all lanes of b are equal.
  virtual void mul_wide_by_one(bool is_signed, bool high, const Reg& to, const Reg& a,
                               const Reg& b) {
    mul_wide(is_signed, high, to, a, b);
  }
  virtual void narrow(Reg to, Reg low, Reg high) = 0;
  // Lanes of 32 bits exchange values. exchange(): each lane reads the lane whose number differs in
  // these bits.
  virtual void exchange(const Reg& to, const Reg& from, uint32_t bits) {
    (void)to, (void)from, (void)bits;
  }
  // permute(): each lane reads any lane of the vector, by the lane numbers that order() puts into
  // a vector. join(): the lanes whose bits are set come from b, the others from a.
  virtual void order(const Reg& to, const uint8_t* lanes) { (void)to, (void)lanes; }
  virtual void permute(const Reg& to, const Reg& from, const Reg& order) {
    (void)to, (void)from, (void)order;
  }
  virtual void join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) {
    (void)to, (void)a, (void)b, (void)lanes;
  }
  virtual void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) = 0;
  virtual void select(Reg to, Reg mask, Reg a, Reg b) = 0;
  // Replaces the lanes in the mask.
  virtual void blend(const Reg& to, const Reg& from, const Reg& mask) {
    select(to, mask, from, to);
  }
  // Replaces the lanes that are not in the mask.
  virtual void blend_others(const Reg& to, const Reg& from, const Reg& mask) {
    select(to, mask, to, from);
  }
  // Loads the lanes in the mask; the others come from `from`.
  virtual void load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                            const Reg& from) {
    load(to, base, offset);
    blend_others(to, from, mask);
  }
  // Stores only the lanes in the mask, of `bytes` each. Returns false if the CPU has no such
  // operation.
  virtual bool store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                          uint32_t bytes) {
    (void)from, (void)base, (void)offset, (void)mask, (void)bytes;
    return false;
  }
  // Loads only the lanes in the mask, of 4 bytes each; the others become 0, and their memory need
  // not exist. Callers must check loads_some() first.
  virtual bool loads_some() const { return false; }
  virtual bool loads_some_at_once() const { return true; }  // by one instruction
  virtual void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) {
    (void)to, (void)base, (void)offset, (void)mask;
  }
  virtual void select_bits(Reg to, Reg bits, Reg a, Reg b) = 0;  // bit by bit
  virtual void canonicalize(Reg value, Reg nan) = 0;             // f32: all NaNs become `nan`
  // Gives NaNs that f64 arithmetic created the bits of a GPU's NaN. Does nothing if the CPU
  // creates the same ones.
  virtual void canonicalize_wide(const Reg&) {}
  // Subnormal f32 become zeros with the same sign.
  virtual void flush(const Reg& to, const Reg& a) { (void)to, (void)a; }
  // Sets the CPU's rounding mode, a number of <cfenv>, until round_as_before().
  virtual void round(int64_t how) { (void)how; }
  virtual void round_as_before() {}
  // Floats of 16 bits to f32, and back. A pair becomes two vectors (`part` is 0 or 1), with the
  // lanes in an order that depends on the CPU. pack() turns NaNs into a GPU's NaN.
  virtual void unpack(Small small, uint32_t part, const Reg& to, const Reg& a) {
    (void)small, (void)part, (void)to, (void)a;
  }
  virtual void pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) {
    (void)small, (void)to, (void)parts;
  }
  // From the two halves of a strip of f64 to a vector of 32 bits, and back. Integers are
  // truncated.
  virtual bool from_double(Number to_type, Reg to, Reg low, Reg high) = 0;
  virtual bool to_double(Number from, bool high, Reg to, Reg a) = 0;
  virtual void bits_to_mask(Reg to, Reg word, uint32_t first) = 0;
  // The same for several vectors with consecutive lanes.
  virtual void bits_to_masks(const List<Reg>& to, const Reg& word) {
    for (size_t i = 0; i < to.size(); ++i)
      bits_to_mask(to[i], word, static_cast<uint32_t>(i) * vector_lanes());
  }
  // ORs the lanes of a mask into the bits of a word, from bit `first` on.
  virtual void mask_to_bits(Reg word, Reg mask, uint32_t first) = 0;

  // Of masks: `any` becomes nonzero if any lane is set, `differ` if not all lanes are equal.
  virtual void any_and_differ(Reg any, Reg differ, const List<Reg>& masks) = 0;

  // Jumps if any of these bits is set in any lane of `bytes`.
  virtual void jump_if_lanes(const Reg& vector_value, uint64_t bits, uint32_t bytes,
                             const Label& to) {
    const Number type = bytes == 8 ? Number::U64 : Number::U32;
    Reg own = vector(), none = vector(), any = word(), differ = word();
    constant(own, bits, bytes);
    constant(none, 0, bytes);
    binary(Does::And, type, own, own, vector_value);
    compare(Comparison::Ne, type, own, own, none);
    any_and_differ(any, differ, {own});
    jump_if(any, true, to);
  }

  // Words. The type says whether they have 32 or 64 bits.
  virtual bool word_unary(Does does, Number type, Reg to, Reg a) = 0;
  virtual bool word_binary(Does does, Number type, Reg to, Reg a, Reg b) = 0;
  virtual void word_extend(bool is_signed, Reg to, Reg a) = 0;  // from 32 bits
  virtual void word_add(Reg to, Reg a, int64_t number) = 0;
  // Unsigned shift to the right.
  virtual void word_shift(const Reg& to, const Reg& a, uint32_t by) {
    const Reg count = word();
    constant_word(count, by);
    word_binary(Does::ShiftRight, Number::U64, to, a, count);
  }
  virtual void word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) = 0;
  virtual void word_select(Reg to, Reg condition, Reg a, Reg b) = 0;
  // At base + offset + index * bytes.
  virtual void load_word_at(const Reg& to, const Reg& base, const Reg& index, int64_t offset,
                            uint32_t bytes) = 0;
  virtual void store_word_at(const Reg& from, const Reg& base, const Reg& index, int64_t offset,
                             uint32_t bytes) = 0;
  // At base + distance.
  virtual void load_word_from(const Reg& to, const Reg& base, const Reg& distance, uint32_t bytes) {
    Reg sum = word();
    word_binary(Does::Add, Number::U64, sum, base, distance);
    load_word(to, sum, 0, bytes);
  }
  virtual void store_word_from(const Reg& from, const Reg& base, const Reg& distance,
                               uint32_t bytes) {
    Reg sum = word();
    word_binary(Does::Add, Number::U64, sum, base, distance);
    store_word(from, sum, 0, bytes);
  }
  // The number of the lowest bit that is set; there must be one.
  virtual void lowest_bit(const Reg& to, const Reg& bits) = 0;
  virtual void clear_lowest_bit(const Reg& bits) = 0;
  virtual void jump_if(Reg word, bool is_set, Label to) = 0;  // if (word != 0) == is_set
  virtual void jump_if_above(Reg a, Reg b, Label to) = 0;     // unsigned
  virtual void jump_if_differ(const Reg& a, const Reg& b, const Label& to) {
    const Reg bits = word();
    word_binary(Does::Xor, Number::U64, bits, a, b);
    jump_if(bits, true, to);
  }
  virtual void jump_unless(const Reg& value, uint64_t number, const Label& to) {
    Reg differs = word();
    word_add(differs, value, -static_cast<int64_t>(number));
    jump_if(differs, true, to);
  }
  virtual void jump_if_bits(Reg word, uint64_t bits, Label to) = 0;  // if any of them is set
  // The same for a word in memory.
  virtual void jump_unless_at(const Reg& base, int64_t offset, uint32_t bytes, uint64_t number,
                              const Label& to) {
    Reg value = word();
    load_word(value, base, offset, bytes);
    number == 0 ? jump_if(value, true, to) : jump_unless(value, number, to);
  }
  virtual void jump_if_bits_at(const Reg& base, int64_t offset, uint32_t bits, const Label& to) {
    Reg value = word();
    load_word(value, base, offset, 4);
    jump_if_bits(value, bits, to);
  }

 private:
  struct Some {
    List<Reg> all;
    size_t used = 0;
    template <class Make>
    Reg take(const Make& make) {
      if (used == all.size()) all.push_back(make());
      return all[used++];
    }
  };
  Some vectors_, words_;
};

bool has_target();           // for this CPU
uint32_t least_row_lanes();  // lanes of the narrowest vector: a vector holds lanes of one row
// The target with the widest vectors of at most `row_lanes` lanes, or with the narrowest ones if
// all are wider. Null if this CPU has no target.
std::unique_ptr<Target> make_target(uint32_t row_lanes = least_row_lanes());

}  // namespace kiln::engine
