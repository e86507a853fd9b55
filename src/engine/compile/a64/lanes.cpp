// SPDX-License-Identifier: Apache-2.0
// How does aarch64 load and store lanes at separate addresses, and move values between lanes?
#if defined(__aarch64__)
#include "engine/compile/a64/target.h"

namespace kiln::engine {

// For lanes of 4 bytes, the distances are in two vectors.
bool A64::gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low, const Reg& high,
                 uint32_t bytes) {
  const Vec all = temporary();
  const Gp from = temporary_word(), far = temporary_word();
  word_add(from, base, offset);
  for (uint32_t lane = 0; lane < 16 / bytes; ++lane) {
    const Mark mark = this->mark();
    cc_.umov(far, v(lane < 2 ? low : high).d(lane % 2));
    cc_.add(far, far, from);
    load_lane(all, far, lane, bytes);
    release(mark);
  }
  copy(to, all);
  return true;
}

void A64::gather_narrow(const Reg& to, const Reg& base, int64_t offset, const Reg& distances,
                        uint32_t shift) {
  const Vec all = temporary();
  const Gp from = temporary_word(), far = temporary_word();
  word_add(from, base, offset);
  for (uint32_t lane = 0; lane < 4; ++lane) {
    const Mark mark = this->mark();
    cc_.smov(far, v(distances).s(lane));
    cc_.add(far, from, far, a64::lsl(shift));
    load_lane(all, far, lane, 4);
    release(mark);
  }
  copy(to, all);
}

bool A64::load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step, uint32_t bytes) {
  const Gp from = temporary_word();
  const Vec all = temporary();
  for (uint32_t lane = 0; lane < 16 / bytes; ++lane) {
    const Mark mark = this->mark();
    word_add(from, base, offset + step * lane);
    load_lane(all, from, lane, bytes);
    release(mark);
  }
  copy(to, all);
  return true;
}

bool A64::store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                      uint32_t bytes) {
  for (uint32_t lane = 0; lane < (bytes == 8 ? 2u : 4u); ++lane) {
    const Mark mark = this->mark();
    const Gp value = temporary_word();
    lane_word(value, from, lane, bytes == 8 ? 8 : 4);
    store_word(value, base, offset + step * lane, bytes);
    release(mark);
  }
  return true;
}

// Transposes four rows of four words.
void A64::turn(const std::array<Vec, 4>& rows, const std::array<Vec, 4>& to) {
  const Vec even = temporary(), odd = temporary(), more_even = temporary(), more_odd = temporary();
  cc_.trn1(even.s4(), rows[0].s4(), rows[1].s4());
  cc_.trn2(odd.s4(), rows[0].s4(), rows[1].s4());
  cc_.trn1(more_even.s4(), rows[2].s4(), rows[3].s4());
  cc_.trn2(more_odd.s4(), rows[2].s4(), rows[3].s4());
  cc_.trn1(to[0].d2(), even.d2(), more_even.d2());
  cc_.trn1(to[1].d2(), odd.d2(), more_odd.d2());
  cc_.trn2(to[2].d2(), even.d2(), more_even.d2());
  cc_.trn2(to[3].d2(), odd.d2(), more_odd.d2());
}

bool A64::load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
  std::array<Vec, 4> rows;
  for (uint32_t i = 0; i < to.size(); ++i) {
    rows[i] = temporary();
    load(rows[i], base, offset + int64_t{i} * 16);
  }
  if (to.size() == 2) {
    cc_.uzp1(v(to[0]).s4(), rows[0].s4(), rows[1].s4());
    cc_.uzp2(v(to[1]).s4(), rows[0].s4(), rows[1].s4());
  } else {
    turn(rows, {v(to[0]), v(to[1]), v(to[2]), v(to[3])});
  }
  return true;
}

bool A64::store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
  std::array<Vec, 4> rows;
  for (uint32_t i = 0; i < from.size(); ++i) rows[i] = temporary();
  if (from.size() == 2) {
    cc_.zip1(rows[0].s4(), v(from[0]).s4(), v(from[1]).s4());
    cc_.zip2(rows[1].s4(), v(from[0]).s4(), v(from[1]).s4());
  } else {
    turn({v(from[0]), v(from[1]), v(from[2]), v(from[3])}, rows);
  }
  for (uint32_t i = 0; i < from.size(); ++i) store(rows[i], base, offset + int64_t{i} * 16);
  return true;
}

// Lanes that are not in the mask read the start of the Pass, which always exists.
void A64::load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) {
  const Vec all = temporary();
  const Gp far = temporary_word(), own = temporary_word();
  word_add(far, base, offset);
  cc_.sub(far, far, x(pass()));
  for (uint32_t lane = 0; lane < 4; ++lane) {
    const Mark inner = this->mark();
    cc_.smov(own, v(mask).s(lane));
    cc_.and_(own, own, far);
    cc_.add(own, own, x(pass()));
    load_lane(all, own, lane, 4);
    release(inner);
    cc_.add(far, far, 4);
  }
  cc_.and_(v(to).b16(), all.b16(), v(mask).b16());
}

void A64::insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                       uint32_t bytes) {
  const Gp word = temporary_word();
  if (bytes == 1) {
    cc_.ldrb(word.w(), at(base, offset, 1));
    cc_.ins(v(to).b(lane), word.w());
  } else {
    cc_.ldrh(word.w(), at(base, offset, 2));
    cc_.ins(v(to).h(lane), word.w());
  }
}

void A64::exchange(const Reg& to, const Reg& from, uint32_t bits) {
  if (bits & 1) cc_.rev64(v(to).s4(), v(from).s4());
  const Vec now = v(bits & 1 ? to : from);
  if (bits & 2) cc_.ext(v(to).b16(), now.b16(), now.b16(), 8);
}

// TBL selects bytes.
void A64::order(const Reg& to, const uint8_t* lanes) {
  std::array<uint64_t, 2> both{};
  for (uint32_t lane = 0; lane < 4; ++lane) {
    const uint64_t bytes = 0x03020100u + (lanes[lane] % 4) * 0x04040404u;
    both[lane / 2] |= bytes << lane % 2 * 32;
  }
  constant_lanes(v(to), both[0], both[1]);
}

void A64::join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) {
  const auto two = [&](uint32_t lane) {
    return (lanes >> lane & 1 ? uint64_t{0xffffffff} : 0) |
           (lanes >> (lane + 1) & 1 ? uint64_t{0xffffffff} << 32 : 0);
  };
  Vec mask = temporary();
  constant_lanes(mask, two(0), two(2));
  cc_.bsl(mask.b16(), v(b).b16(), v(a).b16());
  copy(to, mask);
}

}  // namespace kiln::engine
#endif
