// SPDX-License-Identifier: Apache-2.0
// What do atom, red and the reducing copies do with a place in memory? They apply a function of the
// old value and the operand, in a loop with compare-and-swap, because other threads of the host run
// other blocks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/numbers/numeric.h"
#include "ptx/module.h"

namespace kiln::engine {

// AddFlushed: f32 in global memory, where a GPU takes subnormal operands and sums for zeros of
// their sign. In shared memory it does not, nor do reducing copies.
enum class Rmw : uint8_t { Add, Min, Max, Inc, Dec, Exch, And, Or, Xor, Cas, AddFlushed };

// What an atomic stores, computed from the old value and its operands. There is one function for
// all types, so a GPU's rules for NaN, wrapping and packed pairs hold in shared, global and cluster
// memory.
template <class T>
T apply(Rmw what, T old, T operand, T swap) {
  if constexpr (Packed<T>) {
    return {apply(what, old.low, operand.low, swap.low),
            apply(what, old.high, operand.high, swap.high)};
  } else if constexpr (SmallFloat<T>) {
    float a = old, b = operand;
    switch (what) {
      case Rmw::Add:
        return T::from(a + b);
      case Rmw::Min:
        return a != a || b < a ? operand : old;
      case Rmw::Max:
        return a != a || b > a ? operand : old;
      default:
        return operand;
    }
  } else if constexpr (NativeFloat<T>) {
    switch (what) {
      case Rmw::Add:
        return canonical(old + operand, old, operand);
      case Rmw::AddFlushed:
        return flush(canonical(flush(old) + flush(operand), old, operand));
      case Rmw::Min:
        return old != old || operand < old ? operand : old;
      case Rmw::Max:
        return old != old || operand > old ? operand : old;
      default:
        return operand;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    U a = static_cast<U>(old), b = static_cast<U>(operand);
    switch (what) {
      case Rmw::Add:
        return static_cast<T>(a + b);
      case Rmw::Min:
        return operand < old ? operand : old;
      case Rmw::Max:
        return operand > old ? operand : old;
      case Rmw::Inc:
        return static_cast<T>(a >= b ? 0 : a + 1);
      case Rmw::Dec:
        return static_cast<T>(a == 0 || a > b ? b : a - 1);
      case Rmw::And:
        return static_cast<T>(a & b);
      case Rmw::Or:
        return static_cast<T>(a | b);
      case Rmw::Xor:
        return static_cast<T>(a ^ b);
      case Rmw::Cas:
        return old == operand ? swap : old;
      default:
        return operand;
    }
  }
}

template <class T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t,
                                std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

template <class T>
T exchange(std::byte* at, Rmw what, T operand, T swap) {
  auto* word = reinterpret_cast<Word<T>*>(at);
  Word<T> seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    T old = std::bit_cast<T>(seen);
    Word<T> next = std::bit_cast<Word<T>>(apply(what, old, operand, swap));
    if (__atomic_compare_exchange_n(word, &seen, next, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return old;
  }
}

inline Rmw rmw_of(const ptx::Instruction& ins) {
  constexpr std::pair<std::string_view, Rmw> kNames[] = {
      {"add", Rmw::Add}, {"min", Rmw::Min},   {"max", Rmw::Max}, {"inc", Rmw::Inc},
      {"dec", Rmw::Dec}, {"exch", Rmw::Exch}, {"and", Rmw::And}, {"or", Rmw::Or},
      {"xor", Rmw::Xor}, {"cas", Rmw::Cas}};
  for (auto [name, what] : kNames) {
    if (ins.has(name)) return what;
  }
  return Rmw::Add;
}

}  // namespace kiln::engine
