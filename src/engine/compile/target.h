// SPDX-License-Identifier: Apache-2.0
// What does the compiler ask of a CPU? Operations on registers without a limit to their number; the
// code generator finds places for them. One implementation for each CPU.
//
// A vector holds `vector_lanes` lanes of 32 bits, or half as many of 64. A mask is a vector whose
// lanes are all ones or zero.
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

// What a piece of machine code is given, for the lanes of one pass.
struct Pass {
  std::byte* registers;  // of the frame
  std::byte* lanes4;     // the same, moved by the pass's first lane of 4 bytes
  std::byte* lanes8;     // and of 8
  const uint64_t* table;
  uint64_t budget;  // backward branches that may be taken; what is left of them
  uint64_t ran;     // Ops of the loops that were taken
  int64_t saved;    // of code that weighs what it does (cost.cpp)
  uint32_t first_lane;
  uint32_t mask;  // of the warp: lanes that run
  void* warp;     // for handlers
  // For code that checks itself (emit_checks.cpp).
  std::byte* shared;
  uint64_t shared_bytes;
  const void* cache;  // of the worker: the first entry of what Worker::cached() gives
  const void* seen;   // Compiled::seen
  uint32_t looked;    // not 0: regions have been looked for
  // Local memory: that of the first lane, what each may touch, and how far they are apart.
  std::byte* local;
  uint64_t local_bytes;
  uint32_t local_stride;
  // Of code that goes on as the warps behind it: how many it may, and how many are left of those.
  uint32_t followers, left;
  // Of code whose lanes go apart: those that wait at each of its places, and those that run.
  uint32_t waiting[kMostPlaces], here;
  // How the CPU rounds: as it did before, and now (Target::round).
  uint32_t rounded, rounds;
  // Where code that goes from lane to lane in a loop puts addresses, values and results.
  alignas(64) std::byte scratch[kWarpSize * (8 + 8 + 8)];
  // Behind them, as in LanesAside.
  void* aside_warp;
  uint32_t aside_mask;
  // Lanes of 8 or 16 bits on their way to a vector (Target::insert_small).
  alignas(64) std::byte small[64];
  // And values that have no register (places.h): what is nearer is within reach of every load.
  alignas(64) uint64_t words[kSpilled];
  alignas(64) std::byte vectors[kSpilledBytes];
};
static_assert(offsetof(Pass, aside_warp) - offsetof(Pass, scratch) == offsetof(LanesAside, warp));
static_assert(offsetof(Pass, aside_mask) - offsetof(Pass, scratch) == offsetof(LanesAside, mask));
constexpr int64_t kScratchValues = kWarpSize * 8, kScratchResults = kWarpSize * 16;
// What such code returns where something does not hold.
constexpr uint32_t kRefused = ~uint32_t{0};
// Returns the number of the exit taken.
using Code = uint32_t (*)(Pass*);

class Target {
 public:
  virtual ~Target() = default;
  virtual uint32_t vector_lanes() const = 0;
  virtual uint32_t vector_count() const = 0;  // registers of the CPU

  // Of the function; pass() holds from here.
  virtual void begin() = 0;
  virtual Reg pass() = 0;
  // Ends the function and makes its bytes, which may lie anywhere; false: that failed.
  virtual bool finish(std::vector<std::byte>* bytes) = 0;

  virtual Reg new_vector() = 0;
  virtual Reg new_word() = 0;  // 64 bits
  // For a moment: what is taken after mark() is free again with release(). The fewer registers
  // there are to find places for, the faster that is.
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
  // Of a place that is only jumped to on a condition, and that reads no value of the code.
  virtual Label bare_label() { return label(); }
  virtual void bind(Label at) = 0;
  virtual void jump(Label to) = 0;
  virtual void leave(uint32_t exit) = 0;
  // Runs an Op by its handler.
  virtual void call(const void* handler, Reg warp, const void* op) = 0;

  // Memory at base + offset; of a word 2 bytes as well, and 1 to be stored.
  virtual void load(Reg to, Reg base, int64_t offset) = 0;
  virtual void store(Reg from, Reg base, int64_t offset) = 0;
  // What differs between a value, which is gone then, and memory goes to the bits of `all` as well.
  virtual void differ(const Reg& all, const Reg& value, const Reg& base, int64_t offset) {
    const Reg seen = vector();
    load(seen, base, offset);
    binary(Does::Xor, Number::U32, seen, seen, value);
    binary(Does::Or, Number::U32, all, all, seen);
  }
  virtual void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) = 0;
  virtual void load_word(Reg to, Reg base, int64_t offset, uint32_t bytes) = 0;
  virtual void store_word(Reg from, Reg base, int64_t offset, uint32_t bytes) = 0;

  // Neighbours of 8 or 16 bits, by their type, to lanes of 32; and the low bits of such lanes back.
  virtual void load_small(const Reg& to, const Reg& base, int64_t offset, Number from) = 0;
  virtual void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) = 0;
  // One of those neighbours from elsewhere; widened once all are there. False: this CPU has no such
  // operation, and is not asked for it.
  virtual bool gathers_small() const { return false; }
  virtual void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                            uint32_t bytes) {
    (void)to, (void)base, (void)offset, (void)lane, (void)bytes;
  }
  virtual void widen_small(const Reg& to, const Reg& a, Number from) {
    (void)to, (void)a, (void)from;
  }
  // One of them, to a register of so many bytes (2 or 4), with zeros above.
  virtual void load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                               uint32_t bytes) = 0;

  virtual void copy(Reg to, Reg from) = 0;
  virtual void splat(Reg to, Reg word, uint32_t bytes) = 0;
  virtual void constant(Reg to, uint64_t bits, uint32_t bytes) = 0;  // all lanes of a vector
  // Lane l of a vector becomes l * step.
  virtual void steps(Reg to, uint64_t step, uint32_t bytes) = 0;
  // Lane l becomes that of a and first + l * step. False: constants cost more than words here.
  virtual bool adds_steps() const { return false; }
  virtual void add_steps(const Reg& to, const Reg& a, int64_t first, int64_t step, uint32_t bytes) {
    (void)to, (void)a, (void)first, (void)step, (void)bytes;
  }
  virtual void constant_word(Reg to, uint64_t bits) = 0;
  virtual void lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) = 0;
  virtual void set_lane(Reg to, Reg word, uint32_t lane, uint32_t bytes) = 0;
  // The first lane comes first: what the others hold by then does not count.
  virtual void load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) = 0;

  // A lane from each address, which is `base`, offset and a distance of 64 bits: of 4 bytes all
  // lanes of a vector by two vectors of distances, of 8 bytes by one. False: this CPU has no such
  // operation.
  virtual bool gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low,
                      const Reg& high, uint32_t bytes) {
    (void)to, (void)base, (void)offset, (void)low, (void)high, (void)bytes;
    return false;
  }
  // A lane of 4 bytes from `base` + offset + a distance of 32 bits each, which has a sign, and by
  // which 1, 2, 4 or 8 bytes are meant. False: as above, and asked first.
  virtual bool gathers_narrow() const { return false; }
  virtual void gather_narrow(const Reg& to, const Reg& base, int64_t offset, const Reg& distances,
                             uint32_t shift) {
    (void)to, (void)base, (void)offset, (void)distances, (void)shift;
  }
  // Lane l is at base + offset + l * step; false as above. Of lanes of 32 bits also the low 8 or
  // 16 are stored.
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

  // Two or four neighbours of 4 bytes for each lane, those of one lane behind those of the one
  // before: a vector of each. False: as above.
  virtual bool load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
    (void)to, (void)base, (void)offset;
    return false;
  }
  virtual bool store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
    (void)from, (void)base, (void)offset;
    return false;
  }

  // The first lane; the others become 0.
  virtual void load_first(const Reg& to, const Reg& base, int64_t offset, uint32_t bytes) {
    Reg value = word();
    load_word(value, base, offset, bytes);
    constant(to, 0, 4);
    set_lane(to, value, 0, bytes);
  }

  // Vectors. False: this CPU has no such operation, and nothing was emitted.
  virtual bool unary(Does does, Number type, Reg to, Reg a) = 0;
  virtual bool binary(Does does, Number type, Reg to, Reg a, Reg b) = 0;
  virtual bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) = 0;
  // Do the least and the most of f32 give a NaN where one operand is a signaling one?
  virtual bool needs_quiet_operands() const { return false; }
  virtual bool shift(Does does, Number type, Reg to, Reg a,
                     uint32_t by) = 0;  // less than the width
  // Of two words, by 1 to 31 bits.
  virtual void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) = 0;
  virtual bool convert(Number to_type, Number from, Reg to, Reg a) = 0;  // of the same width
  // Of the low or the high half of the lanes of 32 bits.
  virtual void widen(bool is_signed, bool high, Reg to, Reg a) = 0;
  virtual void mul_wide(bool is_signed, bool high, Reg to, Reg a, Reg b) = 0;
  // The same where all lanes of b are alike.
  virtual void mul_wide_by_one(bool is_signed, bool high, const Reg& to, const Reg& a,
                               const Reg& b) {
    mul_wide(is_signed, high, to, a, b);
  }
  virtual void narrow(Reg to, Reg low, Reg high) = 0;
  // Of kExchangesLanes: each word from the lane whose number differs in these bits.
  virtual void exchange(const Reg& to, const Reg& from, uint32_t bits) {
    (void)to, (void)from, (void)bits;
  }
  // The same from any lane of the vector, by an order of lanes; the lanes whose bits are set from
  // b.
  virtual void order(const Reg& to, const uint8_t* lanes) { (void)to, (void)lanes; }
  virtual void permute(const Reg& to, const Reg& from, const Reg& order) {
    (void)to, (void)from, (void)order;
  }
  virtual void join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) {
    (void)to, (void)a, (void)b, (void)lanes;
  }
  virtual void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) = 0;
  virtual void select(Reg to, Reg mask, Reg a, Reg b) = 0;
  // The lanes of the mask; the others stay.
  virtual void blend(const Reg& to, const Reg& from, const Reg& mask) {
    select(to, mask, from, to);
  }
  // The same of the lanes that are not in the mask.
  virtual void blend_others(const Reg& to, const Reg& from, const Reg& mask) {
    select(to, mask, to, from);
  }
  // What memory has in the lanes of the mask, and the others of `from`.
  virtual void load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                            const Reg& from) {
    load(to, base, offset);
    blend_others(to, from, mask);
  }
  // To memory, the lanes of the mask alone, which have so many bytes; false: this CPU has no such
  // operation.
  virtual bool store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                          uint32_t bytes) {
    (void)from, (void)base, (void)offset, (void)mask, (void)bytes;
    return false;
  }
  // The same from memory, of lanes of 4 bytes: the others become 0, and what they would touch need
  // not be there. False: as above, and asked first.
  virtual bool loads_some() const { return false; }
  virtual bool loads_some_at_once() const { return true; }  // by an instruction
  virtual void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) {
    (void)to, (void)base, (void)offset, (void)mask;
  }
  virtual void select_bits(Reg to, Reg bits, Reg a, Reg b) = 0;  // each by itself
  virtual void canonicalize(Reg value, Reg nan) = 0;             // NaNs of f32 become `nan`
  // NaNs that f64 arithmetic made, as a GPU has them; where the CPU's are the same, nothing.
  virtual void canonicalize_wide(const Reg&) {}
  // Of a CPU for which instructions/meanings.cpp keeps such meanings: what is subnormal as zero;
  virtual void flush(const Reg& to, const Reg& a) { (void)to, (void)a; }
  // how the CPU rounds, as a number of <cfenv>, until it does so as before;
  virtual void round(int64_t how) { (void)how; }
  virtual void round_as_before() {}
  // a vector of f32 of those that a register holds, and back: of a pair there are two of them, with
  // the lanes in an order of this CPU's own. NaNs become nan_of(), and then as a GPU has them.
  virtual void unpack(Small small, uint32_t part, const Reg& to, const Reg& a) {
    (void)small, (void)part, (void)to, (void)a;
  }
  virtual void pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) {
    (void)small, (void)to, (void)parts;
  }
  // f64 to 32 bits, of both halves of a strip, and back; integers are truncated.
  virtual bool from_double(Number to_type, Reg to, Reg low, Reg high) = 0;
  virtual bool to_double(Number from, bool high, Reg to, Reg a) = 0;
  virtual void bits_to_mask(Reg to, Reg word, uint32_t first) = 0;
  // The same of several vectors, whose lanes follow each other.
  virtual void bits_to_masks(const List<Reg>& to, const Reg& word) {
    for (size_t i = 0; i < to.size(); ++i)
      bits_to_mask(to[i], word, static_cast<uint32_t>(i) * vector_lanes());
  }
  // The lanes of a mask as bits of a word, moved to `first`, joined to what is there.
  virtual void mask_to_bits(Reg word, Reg mask, uint32_t first) = 0;

  // Of masks: not zero if any lane is set; not zero if not all lanes are alike.
  virtual void any_and_differ(Reg any, Reg differ, const List<Reg>& masks) = 0;

  // Any of these bits is set in any lane, which has so many bytes.
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

  // Words, of 32 or 64 bits by the type.
  virtual bool word_unary(Does does, Number type, Reg to, Reg a) = 0;
  virtual bool word_binary(Does does, Number type, Reg to, Reg a, Reg b) = 0;
  virtual void word_extend(bool is_signed, Reg to, Reg a) = 0;  // of 32 bits
  virtual void word_add(Reg to, Reg a, int64_t number) = 0;
  // By so many bits to the right, without sign.
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
  virtual void lowest_bit(const Reg& to, const Reg& bits) = 0;  // its number; some bit is set
  virtual void clear_lowest_bit(const Reg& bits) = 0;
  virtual void jump_if(Reg word, bool is_set, Label to) = 0;  // not zero
  virtual void jump_if_above(Reg a, Reg b, Label to) = 0;     // without sign
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
  virtual void jump_if_bits(Reg word, uint64_t bits, Label to) = 0;  // any of them is set
  // The same of a word in memory.
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
uint32_t least_row_lanes();  // a vector is of one row
// Vectors of at most so many lanes, each of one row. Null: there is no such target.
std::unique_ptr<Target> make_target(uint32_t row_lanes = least_row_lanes());

}  // namespace kiln::engine
