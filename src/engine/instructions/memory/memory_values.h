// SPDX-License-Identifier: Apache-2.0
// How does a value in memory become one in a register, and back? M is the type in memory, R that of
// the register's lanes. A narrow value is extended by the sign of M.
#pragma once

#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/lowering.h"
#include "engine/decode/meanings.h"

namespace kiln::engine {

template <class M, class R>
R widen(const std::byte* from) {
  M value;
  std::memcpy(&value, from, sizeof(M));
  return static_cast<R>(value);
}

template <class M, class R>
void narrow(std::byte* to, R value) {
  M kept = static_cast<M>(value);
  std::memcpy(to, &kept, sizeof(M));
}

// Calls `then` with values of the types in memory and in the register. Fails if the register is
// narrower than the memory.
template <class Then>
bool with_memory_types(Lowering& l, uint32_t register_bytes, Then then) {
  return with_type(l.type(), [&](auto m) {
    using Declared = decltype(m);
    if constexpr (Integer<Declared> || NativeFloat<Declared>) {
      using M = std::conditional_t<
          std::is_same_v<Declared, float>, uint32_t,
          std::conditional_t<std::is_same_v<Declared, double>, uint64_t, Declared>>;
      auto as = [&](auto r) {
        using R = decltype(r);
        if constexpr (sizeof(R) == sizeof(M)) {
          return then(R{}, R{});  // the bits are the same, signed or unsigned
        } else if constexpr (sizeof(R) > sizeof(M)) {
          return then(M{}, R{});
        } else {
          return l.refuse("the register is narrower than the value");
        }
      };
      switch (register_bytes) {
        case 1:
          return as(uint8_t{});
        case 2:
          return as(uint16_t{});
        case 4:
          return as(uint32_t{});
        case 8:
          return as(uint64_t{});
        default:
          return l.refuse("unsupported register width");
      }
    } else {
      return l.refuse("no such type for this instruction");
    }
  });
}

// memory/strong.cpp: may other threads observe the access? And the handlers for vectors in this
// case.
bool is_strong(const Lowering& l);
Handler strong_vector_load(Lowering& l, uint32_t register_bytes);
Handler strong_vector_store(Lowering& l, uint32_t register_bytes);

}  // namespace kiln::engine
