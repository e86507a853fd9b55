// SPDX-License-Identifier: Apache-2.0
// Which op does "my_add randn:f32:4 ones:f32:4 alpha=2" call, and with what? Texts become arguments
// by the types of the op's parameters; among overloads the one that fits best is taken.
//
//   argument = value | NAME "=" value          NAME is a parameter's
//   value    = tensor                          host/tensor_spec.h
//            | "[" tensor ("," tensor)* "]"    a comma before a digit or '-' belongs to the tensor:
//            randint=0,10 | integer | float | "true" | "false" | dtype | device | "none" | ["["]
//            number ("," number)* ["]"] | "[]" | text, with or without quotes
#pragma once

#include <kiln/abi.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/tensor_spec.h"

namespace kiln::host {

// A value that is not a tensor, as it comes from an op or goes to it.
struct Scalar {
  uint32_t type = KILN_TYPE_NONE;  // KilnType
  int64_t integer = 0;             // INT, BOOL, DTYPE
  double number = 0;               // FLOAT
  std::string string;              // STR
  std::vector<int64_t> integers;   // INT_LIST
  std::vector<double> numbers;     // FLOAT_LIST
  Device device;                   // DEVICE
};
std::string scalar_text(const Scalar& scalar);

struct Argument {
  Scalar scalar;                    // its type is the argument's type in every case
  std::vector<TensorSpec> tensors;  // TENSOR: one; TENSOR_LIST: any number
  bool is_default = false;          // the parameter's default_value is passed as it is
};

struct BoundCall {
  uint32_t op = 0;  // index among the library's ops
  std::vector<Argument> arguments;
};

// `name` is OP or OP.OVERLOAD.
Result<BoundCall> bind_call(std::span<const KilnOpInfo> ops, std::string_view name,
                            std::span<const std::string> texts);

// "Tensor", "int?", "float[]": as a schema writes it.
std::string type_name(const KilnParameter& parameter);

}  // namespace kiln::host
