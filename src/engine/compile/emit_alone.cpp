// SPDX-License-Identifier: Apache-2.0
// How does one lane of a warp run by itself? Its values are in general registers, as in compiled
// single-threaded code; floats are in vectors that hold one value. In the frame they are among the
// values of the other lanes.
#include "engine/compile/emitter.h"
#include "engine/machine/affine.h"

namespace kiln::engine {

// The frame, moved to the lane's place among values of this size.
Reg Emitter::lanes_of(uint32_t bytes) {
  if (bytes >= 4) return bytes == 8 ? lanes8_ : lanes4_;
  Reg at = t_.word();
  t_.word_binary(Does::Add, Number::U64, at, first_lane_, first_lane_);
  t_.word_binary(Does::Add, Number::U64, at, at, registers_);
  return at;
}

void Emitter::read_alone(uint32_t index) {
  const Variable& v = plan_.variables[index];
  const Reg to = place_of(index, 0, 0);
  const Target::Mark mark = t_.mark();
  if (v.in == Slot::Predicate) {  // all ones or zero
    Reg bits = t_.word(), number = t_.word();
    t_.load_word(bits, registers_, v.slot, 4);
    t_.word_binary(Does::ShiftRight, Number::U32, bits, bits, first_lane_);
    t_.constant_word(number, 1);
    t_.word_binary(Does::And, Number::U64, bits, bits, number);
    t_.constant_word(number, 0);
    t_.word_binary(Does::Sub, Number::U64, to, number, bits);
    t_.release(mark);
    return;
  }
  const int64_t at = int64_t{v.slot} + (v.in == Slot::Header ? kAffineLanes : 0);
  if (v.in == Slot::Header) out_->headers.push_back(v.slot);
  const Reg base = lanes_of(v.bytes);
  if (v.kept == Kept::Splat) {
    t_.load_splat(to, base, at, v.bytes);
  } else {
    t_.load_word(to, base, at, v.bytes);
  }
  t_.release(mark);
}

void Emitter::write_alone(uint32_t index) {
  const Variable& v = plan_.variables[index];
  const Reg word = word_of(index);
  if (v.in != Slot::Predicate) {
    t_.store_word(word, lanes_of(v.bytes), v.slot, v.bytes);
    return;
  }
  Reg own = t_.word(), bits = t_.word(), all = t_.word();
  t_.constant_word(own, 1);
  t_.word_binary(Does::ShiftLeft, Number::U32, own, own, first_lane_);
  t_.word_binary(Does::And, Number::U32, bits, own, word);
  t_.word_unary(Does::Not, Number::U32, own, own);
  t_.load_word(all, registers_, v.slot, 4);
  t_.word_binary(Does::And, Number::U32, all, all, own);
  t_.word_binary(Does::Or, Number::U32, all, all, bits);
  t_.store_word(all, registers_, v.slot, 4);
}

// The handler computes all lanes, into a scratch slot of which only this lane's value is read.
bool Emitter::call_alone(const Step& step) {
  const Op& own = flow_.program().ops[step.index];
  const bool is_plain = own.effect != Effect::MaskAware && own.effect != Effect::Scalar;
  if (!step.d || !is_plain || own.run != step.op.run) return false;
  const Variable& d = plan_.variables[*step.d];
  if (d.in != Slot::Lanes) return false;
  for (const auto& from : {step.a, step.b, step.c}) {
    if (from) put_in_frame(*from);
  }
  out_->calls.push_back(std::make_unique<Op>(own));
  out_->calls.back()->d = kScratch;
  t_.call(reinterpret_cast<const void*>(own.run), warp_, out_->calls.back().get());
  const Reg to = result(*step.d, 0, 0), base = lanes_of(d.bytes);
  if (d.kept == Kept::Word) {
    t_.load_word(to, base, kScratch, d.bytes);
  } else if (d.bytes >= 4) {
    t_.load_splat(to, base, kScratch, d.bytes);
  } else {
    Reg word = t_.word();
    t_.load_word(word, base, kScratch, 2);
    t_.splat(to, word, 4);
  }
  return true;
}

// Extends the value of this type in a 16-bit register to a wider number; the upper bits of the
// register are zero.
void Emitter::extend_small(const Reg& to, const Reg& from, Number type, Number as) {
  const bool is_byte = bytes_of(type) == 1, is_signed = type == Number::S16 || type == Number::S8;
  Reg number = t_.word(), low = from;
  if (is_byte) {
    t_.constant_word(number, 0xff);
    t_.word_binary(Does::And, Number::U32, low = t_.word(), from, number);
  }
  if (!is_signed) return t_.word_extend(false, to, low);
  t_.constant_word(number, is_byte ? 0x80 : 0x8000);
  Reg turned = t_.word();
  t_.word_binary(Does::Xor, Number::U32, turned, low, number);
  t_.word_binary(Does::Sub, as, to, turned, number);
}

// 8 and 16 bits in general registers. Returns false, before anything is emitted, if vectors have to
// do it.
bool Emitter::small_alone(const Step& step) {
  const Meaning& m = step.meaning;
  const bool cuts = bytes_of(m.type) < 4;
  Reg low = t_.word(), number = t_.word();
  switch (m.does) {
    case Does::Add:
    case Does::Sub:
    case Does::Mul:
    case Does::And:
    case Does::Or:
    case Does::Xor:
      if (!cuts || bytes_of(m.from) >= 4) return false;
      t_.word_binary(m.does, Number::U32, low, word_of(*step.a), word_of(*step.b));
      break;
    case Does::Convert:
      if (is_real(m.type) || is_real(m.from)) return false;
      if (!is_small(m.from)) {
        t_.copy(low, word_of(*step.a));
        break;
      }
      extend_small(cuts ? low : result(*step.d, 0, 0), word_of(*step.a), m.from,
                   bytes_of(m.type) == 8 ? Number::U64 : Number::U32);
      if (!cuts) return true;
      break;
    default:
      return false;
  }
  t_.constant_word(number, bytes_of(m.type) == 1 ? 0xff : 0xffff);
  t_.word_binary(Does::And, Number::U32, result(*step.d, 0, 0), low, number);
  return true;
}

// Floats are compared in a vector.
bool Emitter::compare_alone(const Step& step) {
  const Meaning& m = step.meaning;
  if (is_small(m.type)) {
    Reg a = t_.word(), b = t_.word();
    extend_small(a, word_of(*step.a), m.type, Number::U64);
    extend_small(b, word_of(*step.b), m.type, Number::U64);
    t_.word_compare(m.comparison, Number::S64, result(*step.d, 0, 0), a, b);
    return true;
  }
  if (!is_real(m.type)) return on_words(step);
  Reg mask = t_.vector(), word = t_.word();
  if (!compare_to(step, 0, mask)) return false;
  t_.lane_word(word, mask, 0, 4);
  t_.word_extend(true, result(*step.d, 0, 0), word);
  return true;
}

}  // namespace kiln::engine
