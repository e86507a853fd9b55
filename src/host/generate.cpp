// SPDX-License-Identifier: Apache-2.0
#include "host/generate.h"

#include <kiln/abi.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "host/npy.h"
#include "host/random.h"

namespace kiln::host {
namespace {

// Below this a thread costs more than it brings.
constexpr int64_t kElementsPerThread = 1 << 18;

// Splits [0, count) over the cores.
template <class Body>
void in_parallel(int64_t count, Body&& body) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t parts = std::clamp<int64_t>(count / kElementsPerThread, 1, cores);
  std::vector<std::thread> threads;
  for (int64_t part = 1; part < parts; ++part)
    threads.emplace_back(
        [&body, count, part, parts] { body(count * part / parts, count * (part + 1) / parts); });
  body(0, count / parts);
  for (std::thread& thread : threads) thread.join();
}

// Fills `bytes` with element `index` of the spec's sequence.
void store_value(const TensorSpec& spec, const DType& type, uint64_t seed, uint64_t index,
                 uint8_t* bytes) {
  const bool complex = type.kind == Kind::Complex;
  switch (spec.fill) {
    case Fill::Zeros:
    case Fill::Eye:  // its ones are set afterwards
    case Fill::File:
      return;
    case Fill::Ones:
      return store_integer(type, bytes, 1);
    case Fill::Empty:
      return;  // the poison is in place
    case Fill::Full:
      if (is_integral(type.kind)) return store_integer(type, bytes, spec.first.integer);
      return store_number(type, bytes, {spec.first.real, spec.second.real});
    case Fill::Arange:
      if (is_integral(type.kind))
        return store_integer(type, bytes, spec.first.integer + index * spec.second.integer);
      return store_number(type, bytes,
                          spec.first.real + static_cast<double>(index) * spec.second.real);
    case Fill::RandInt: {
      const auto low = static_cast<int64_t>(spec.first.integer),
                 high = static_cast<int64_t>(spec.second.integer);
      return store_integer(
          type, bytes, static_cast<uint64_t>(random_integer(random_bits(seed, index), low, high)));
    }
    case Fill::Rand: {
      const int bits = type.mantissa_bits;
      if (!complex) return store_number(type, bytes, uniform(random_bits(seed, index), bits));
      return store_number(type, bytes,
                          {uniform(random_bits(seed, 2 * index), bits),
                           uniform(random_bits(seed, 2 * index + 1), bits)});
    }
    case Fill::Randn: {
      if (!complex) return store_number(type, bytes, normal(random_bits(seed, index)));
      // Half of the variance each, as torch.randn does it.
      constexpr double kScale = 0.7071067811865476;
      return store_number(type, bytes,
                          {kScale * normal(random_bits(seed, 2 * index)),
                           kScale * normal(random_bits(seed, 2 * index + 1))});
    }
  }
}

// A dimension of stride 0 repeats: it does not count in the numbering of the elements.
Dims distinct_sizes(const Layout& layout) {
  Dims sizes = layout.sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (layout.strides[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  return sizes;
}

void set_diagonal(Array& array) {
  const Dims& sizes = array.layout.sizes;
  const size_t rank = sizes.size();
  const DType& type = array.type();
  for_each_element(array.layout, [&](int64_t linear, int64_t offset) {
    const int64_t column = linear % sizes[rank - 1],
                  row = linear / sizes[rank - 1] % sizes[rank - 2];
    if (row == column)
      store_integer(type, array.storage.data() + static_cast<size_t>(offset) * type.bytes, 1);
  });
}

// Lays the values of `source` out anew, with poison between them.
Result<Array> lay_out(const Array& source, Layout layout) {
  TRY(Array array, make_array(source.dtype, std::move(layout)));
  fill_with_poison(array);
  const Array values = contiguous(source);
  const size_t bytes = array.type().bytes;
  for_each_element(array.layout, [&](int64_t linear, int64_t offset) {
    std::memcpy(array.storage.data() + static_cast<size_t>(offset) * bytes,
                values.storage.data() + static_cast<size_t>(linear) * bytes, bytes);
  });
  return array;
}

Result<Array> read_file(const TensorSpec& spec) {
  TRY(Array array, read_npy(spec.path, spec.has_dtype ? std::optional(spec.dtype) : std::nullopt));
  if (!spec.strides && !spec.transposed && spec.offset == 0) return array;
  TRY(Layout layout, layout_of(spec, array.layout.sizes));
  return lay_out(array, std::move(layout));
}

}  // namespace

void fill_with_poison(Array& array) {
  const DType& type = array.type();
  if (is_integral(type.kind)) {
    std::fill(array.storage.begin(), array.storage.end(), type.kind == Kind::Bool ? 1 : 0xA5);
    return;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  uint8_t one[16];
  store_number(type, one, {nan, nan});
  for (size_t at = 0; at < array.storage.size(); at += type.bytes)
    std::memcpy(array.storage.data() + at, one, type.bytes);
}

Result<Array> make_array(const TensorSpec& spec, uint64_t default_seed) {
  if (spec.fill == Fill::File) return read_file(spec);
  const uint64_t seed = spec.seed.value_or(default_seed);
  TRY(Layout layout, layout_of(spec, spec.sizes));
  TRY(Array array, make_array(spec.dtype, std::move(layout)));
  const DType& type = array.type();
  const size_t bytes = type.bytes;
  uint8_t* base = array.storage.data();
  const bool dense = is_contiguous(array.layout);
  if (spec.fill == Fill::Empty || !dense || array.layout.offset) fill_with_poison(array);
  const bool zeros = spec.fill == Fill::Zeros || spec.fill == Fill::Eye;
  auto store = [&](int64_t index, int64_t offset) {
    uint8_t* at = base + static_cast<size_t>(offset) * bytes;
    if (zeros) return std::memset(at, 0, bytes), void();
    store_value(spec, type, seed, static_cast<uint64_t>(index), at);
  };
  if (dense) {
    const int64_t first = array.layout.offset;
    in_parallel(element_count(array), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) store(i, first + i);
    });
  } else {
    Layout distinct = array.layout;
    distinct.sizes = distinct_sizes(array.layout);
    for_each_element(distinct, store);
  }
  if (spec.fill == Fill::Eye) set_diagonal(array);
  return array;
}

}  // namespace kiln::host
