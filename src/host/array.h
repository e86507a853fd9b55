// SPDX-License-Identifier: Apache-2.0
// What is a tensor in host memory? Bytes, and a strided view of them.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/dtype.h"

namespace kiln::host {

using Dims = std::vector<int64_t>;

// The most dimensions that a tensor of torch can have.
inline constexpr size_t kMaxDims = 64;

struct Layout {
  Dims sizes;
  Dims strides;        // in elements, never negative; as many as sizes
  int64_t offset = 0;  // of the first element from the start of the storage, in elements
};

struct Array {
  int32_t dtype = 0;  // one of host/dtype.h
  Layout layout;
  std::vector<uint8_t> storage;

  const DType& type() const { return *find_dtype(dtype); }
};

Dims contiguous_strides(const Dims& sizes);
// As torch says it: dimensions of size 1 and empty tensors do not count.
bool is_contiguous(const Layout& layout);
// Nothing when a size is negative or the product is beyond any memory (2^58).
std::optional<int64_t> element_count(const Dims& sizes);
int64_t element_count(const Array& array);
// Elements of storage up to the last one that the view reaches (the offset alone if it is empty);
// -1 when they overflow.
int64_t storage_elements(const Layout& layout);

// Room for a contiguous array, zeroed.
Result<Array> make_array(int32_t dtype, Dims sizes);
// Room for the layout, zeroed. Fails when there is not enough memory.
Result<Array> make_array(int32_t dtype, Layout layout);
// The same values, contiguous.
Array contiguous(const Array& array);

// One element, by what its kind can hold exactly.
struct Element {
  Kind kind = Kind::Float;
  uint64_t integer = 0;         // Bool, Unsigned; Signed as two's complement
  std::complex<double> number;  // every kind; rounded for integers above 2^53
};
Element load_element(const DType& type, const uint8_t* bytes);
// Floats round to nearest even, integers wrap, Bool is "not zero".
void store_number(const DType& type, uint8_t* bytes, std::complex<double> number);
void store_integer(const DType& type, uint8_t* bytes, uint64_t integer);

// "4x5", "scalar" for no dimension.
std::string shape_text(const Dims& sizes);
// "3.25", "-7", "true", "1+2j". Significant digits: 0 for as many as it takes to read the same
// element again.
std::string element_text(const DType& type, const Element& element, int digits);
std::string number_text(double value, int digits);

// Calls visit(linear index, storage offset in elements) for each element in row-major order. At
// most kMaxDims dimensions.
template <class Visit>
void for_each_element(const Layout& layout, Visit&& visit) {
  const int64_t count = element_count(layout.sizes).value_or(0);
  const size_t rank = layout.sizes.size();
  const int64_t row = rank ? layout.sizes[rank - 1] : 1, step = rank ? layout.strides[rank - 1] : 0;
  std::array<int64_t, kMaxDims> index{};
  int64_t offset = layout.offset;
  for (int64_t linear = 0; linear < count;) {
    for (int64_t i = 0; i < row; ++i) visit(linear++, offset + i * step);
    for (size_t d = rank ? rank - 1 : 0; d-- > 0;) {
      offset += layout.strides[d];
      if (++index[d] < layout.sizes[d]) break;
      offset -= layout.strides[d] * layout.sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace kiln::host
