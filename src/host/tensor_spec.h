// SPDX-License-Identifier: Apache-2.0
// Which tensor does "randn:f32:1024x1024" mean? The grammar of tensors on a command line, and its
// parser.
//
//   tensor = kind ":" dtype ":" shape option* [device]
//          | PATH ".npy" option* [device]
//   kind   = "zeros" | "ones" | "eye" | "rand" | "randn"
//          | "empty"                                       poison: NaN, or the bytes 0xA5 in
//          integers | "full=" number ["," number]                   the second is the imaginary
//          part | "arange" ["=" number ["," number]]            start and step; 0 and 1 when left
//          out | "randint=" integer "," integer                the second is not reached
//   dtype  = "f32" | ...                                   host/dtype.h
//   shape  = "scalar" | size ("x" size)*
//   size   = integer | integer "^" integer                 2^20
//   option = ":seed=" integer
//          | ":strides=" integer ("," integer)*            in elements; 0 repeats a dimension
//          | ":offset=" integer                            the first element is that many elements
//          into its memory | ":t"                                          the last two dimensions
//          are swapped in memory | ":as=" dtype                                  (a file) its bytes
//          are of this dtype
//   device = "@" ("cpu" | "engine" | "cuda" [":" integer])
//
// The shape is always the one that the op sees. What is between the elements of a strided view is
// poison.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/array.h"

namespace kiln::host {

struct Device {
  int32_t type = 0;  // KILN_DEVICE_CPU, KILN_DEVICE_CUDA
  int32_t index = 0;
  bool operator==(const Device&) const = default;
};

enum class Fill { Zeros, Ones, Eye, Rand, Randn, Empty, Full, Arange, RandInt, File };

// A number of a spec, exact in the kind of its dtype.
struct Number {
  uint64_t integer = 0;  // for integral dtypes; two's complement
  double real = 0;
};

struct TensorSpec {
  std::string text;  // as it was written
  Fill fill = Fill::Zeros;
  int32_t dtype = 0;  // for a file: only with :as=
  bool has_dtype = false;
  Dims sizes;  // empty for a file: the file knows
  Number first, second;
  std::string path;
  std::optional<uint64_t> seed;
  std::optional<Dims> strides;
  int64_t offset = 0;
  bool transposed = false;
  std::optional<Device> device;
};

Result<TensorSpec> parse_tensor_spec(std::string_view text);

// Whether it begins as a tensor does (a known kind, or a .npy file), be it right or wrong after
// that.
// How a tensor is written, for a text that is not one; with the kind that was meant.
std::string tensor_fix(std::string_view text);

bool looks_like_tensor(std::string_view text);

// "cpu", "engine", "cuda", "cuda:1".
Result<Device> parse_device(std::string_view text);
std::string device_text(Device device);

// A whole text of decimal digits with a sign, 0x..., or B^E. Nothing otherwise, or when it does not
// fit.
std::optional<int64_t> parse_integer(std::string_view text);
// A whole text that is a number, "inf" or "nan".
std::optional<double> parse_float(std::string_view text);

// Where and how the elements lie, for the sizes and options of the spec.
Result<Layout> layout_of(const TensorSpec& spec, const Dims& sizes);

}  // namespace kiln::host
