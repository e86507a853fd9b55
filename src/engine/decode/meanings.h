// SPDX-License-Identifier: Apache-2.0
// How do the chapters of instructions/ declare what their handlers compute? Each lists the
// templates of its handlers; there is one row per mix of lanes and scalars.
#pragma once

#include <unordered_map>

#include "engine/decode/lanes.h"
#include "engine/program/meaning.h"

namespace kiln::engine {

template <class T>
constexpr Number number_of() {
  if constexpr (std::is_same_v<T, float>) return Number::F32;
  if constexpr (std::is_same_v<T, double>) return Number::F64;
  if constexpr (std::is_same_v<T, uint32_t>) return Number::U32;
  if constexpr (std::is_same_v<T, int32_t>) return Number::S32;
  if constexpr (std::is_same_v<T, uint64_t>) return Number::U64;
  if constexpr (std::is_same_v<T, int64_t>) return Number::S64;
  if constexpr (std::is_same_v<T, uint16_t> || SmallFloat<T>) return Number::U16;
  if constexpr (std::is_same_v<T, int16_t>) return Number::S16;
  if constexpr (std::is_same_v<T, uint8_t>) return Number::U8;
  if constexpr (std::is_same_v<T, int8_t>) return Number::S8;
  if constexpr (Packed<T>) return Number::U32;
  return Number::None;
}

class Meanings {
 public:
  // Not inline, because there are some hundred calls.
  void add(Handler handler, Meaning meaning, const OfFloats& floats = {});
  const Meaning* find(Handler handler) const {
    auto found = rows_.find(handler);
    return found == rows_.end() ? nullptr : &found->second;
  }

  void warpwide(Handler handler, void (*touches)(const Op& op, Touched& out)) {
    Meaning meaning{Does::Warpwide};
    meaning.touches = touches;
    add(handler, meaning);
  }
  // For is_parts().
  void parts(Handler handler, Number type, Number from,
             void (*touches)(const Op& op, Touched& out)) {
    Meaning meaning{Does::Warpwide, type, from};
    meaning.touches = touches;
    add(handler, meaning);
  }
  template <class F, class D, class A = D>
  void unary(Does does, const OfFloats& floats = {}) {
    for (uint8_t lanes : {0, 1}) {
      add(unary_handler<F, D, A>({0, lanes == 0}), {does, number_of<D>(), number_of<A>(), 1, lanes},
          floats);
    }
  }
  template <class F, class D, class A = D, class B = A>
  void binary(Does does, const OfFloats& floats = {}) {
    if constexpr (kIsRare<F, A>) {
      add(binary_handler<F, D, A, B>({0, true}, {0, true}),
          {does, number_of<D>(), number_of<A>(), 2, 0}, floats);
      add(binary_handler<F, D, A, B>({0, false}, {0, false}),
          {does, number_of<D>(), number_of<A>(), 2, kMixedLanes}, floats);
      return;
    }
    for (uint8_t lanes = 0; lanes < 4; ++lanes) {
      add(binary_handler<F, D, A, B>({0, !(lanes & 1)}, {0, !(lanes & 2)}),
          {does, number_of<D>(), number_of<A>(), 2, lanes}, floats);
    }
  }
  template <class F, class D, class A = D, class C = A>
  void ternary(Does does, const OfFloats& floats = {}) {
    if constexpr (kIsRare<F, A>) {
      add(ternary_handler<F, D, A, C>({0, true}, {0, true}, {0, true}),
          {does, number_of<D>(), number_of<A>(), 3, 0}, floats);
      add(ternary_handler<F, D, A, C>({0, false}, {0, false}, {0, false}),
          {does, number_of<D>(), number_of<A>(), 3, kMixedLanes}, floats);
      return;
    }
    for (uint8_t lanes = 0; lanes < 8; ++lanes) {
      add(ternary_handler<F, D, A, C>({0, !(lanes & 1)}, {0, !(lanes & 2)}, {0, !(lanes & 4)}),
          {does, number_of<D>(), number_of<A>(), 3, lanes}, floats);
    }
  }

 private:
  std::unordered_map<Handler, Meaning> rows_;
};

// By chapter.
[[gnu::cold]] void describe_float(Meanings& to);
[[gnu::cold]] void describe_rounded(Meanings& to);
[[gnu::cold]] void describe_integer(Meanings& to);
[[gnu::cold]] void describe_bits(Meanings& to);
[[gnu::cold]] void describe_compare(Meanings& to);
[[gnu::cold]] void describe_select(Meanings& to);
[[gnu::cold]] void describe_convert(Meanings& to);
[[gnu::cold]] void describe_memory(Meanings& to);
[[gnu::cold]] void describe_atomic(Meanings& to);
[[gnu::cold]] void describe_move(Meanings& to);
[[gnu::cold]] void describe_control(Meanings& to);
[[gnu::cold]] void describe_warp(Meanings& to);
[[gnu::cold]] void describe_matrix(Meanings& to);

}  // namespace kiln::engine
