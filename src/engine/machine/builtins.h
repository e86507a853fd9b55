// SPDX-License-Identifier: Apache-2.0
// Which functions may a kernel call that no PTX defines? printf, assert, malloc and free of device
// code.
#pragma once

#include <cstring>
#include <string_view>
#include <vector>

#include "engine/machine/warp.h"

namespace kiln::engine {

struct BuiltinCall {
  Warp& warp;
  const Op* op;
  const std::vector<Program::Passed>& arguments;
  const std::vector<Program::Passed>& results;

  template <class T>
  T argument(size_t index, uint32_t lane) const {
    T value{};
    std::memcpy(&value,
                warp.registers + arguments[index].offset + size_t{lane} * arguments[index].bytes,
                std::min<size_t>(sizeof(T), arguments[index].bytes));
    return value;
  }
  template <class T>
  void result(uint32_t lane, T value) const {
    std::memcpy(warp.registers + results[0].offset + size_t{lane} * results[0].bytes, &value,
                std::min<size_t>(sizeof(T), results[0].bytes));
  }
};

struct Builtin {
  std::string_view name;
  uint32_t arguments, results;
  const Op* (*run)(const BuiltinCall&);
};

extern const Builtin kBuiltins[];
int builtin_named(std::string_view name);  // -1: none

}  // namespace kiln::engine
