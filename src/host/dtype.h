// SPDX-License-Identifier: Apache-2.0
// Which element types are there, what are they called here, in torch and in numpy, and how big are
// they? One table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln::host {

enum class Kind : uint8_t { Bool, Unsigned, Signed, Float, Complex };

struct DType {
  int32_t code;            // KILN_F32, ...: torch's own number
  const char* name;        // "f32", as specs and kiln write it
  const char* torch_name;  // "float32"
  const char* npy;         // "f4", the descr of a .npy file without its byte order
  Kind kind;
  uint8_t bytes;
  uint8_t part_bytes;     // of the real part of a complex number; else bytes
  uint8_t mantissa_bits;  // with the hidden one; 0 unless Float or Complex
  uint8_t print_digits;   // significant digits in a summary
  double rtol;            // how far a right result may be off (host/compare.h); 0: not at all
};

std::span<const DType> dtypes();

// Null when there is none.
const DType* find_dtype(int32_t code);
// "f32", "float32", "torch.float32", and torch's other names: "half", "float", "double", "long",
// "int", ...
const DType* find_dtype(std::string_view name);

// "f32", or "dtype 77" for a number that is not in the table.
std::string dtype_name(int32_t code);
// "u8 i8 i16 ...": for messages.
std::string dtype_names();

bool is_integral(Kind kind);  // Bool too

}  // namespace kiln::host
