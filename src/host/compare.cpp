// SPDX-License-Identifier: Apache-2.0
#include "host/compare.h"

#include <fmt/format.h>
#include <kiln/abi.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::host {
namespace {

bool same_kind(Kind a, Kind b) {
  const auto is_whole = [](Kind kind) { return kind == Kind::Signed || kind == Kind::Unsigned; };
  return a == b || (is_whole(a) && is_whole(b));
}

Dims coordinate(const Dims& sizes, int64_t linear) {
  Dims index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = linear % sizes[d];
    linear /= sizes[d];
  }
  return index;
}

struct Difference {
  bool equal = false;
  bool finite = false;
  double absolute = 0, relative = 0;
};

// Integers beyond 2^53 differ exactly, not after rounding.
double integer_distance(const Element& a, const Element& b) {
  const auto wide = [](const Element& e) {
    return e.kind == Kind::Signed ? static_cast<__int128>(static_cast<int64_t>(e.integer))
                                  : static_cast<__int128>(e.integer);
  };
  const __int128 distance = wide(a) - wide(b);
  return static_cast<double>(distance < 0 ? -distance : distance);
}

Difference difference(const Element& seen, const Element& wanted, Tolerance tolerance) {
  Difference result;
  const std::complex<double> a = seen.number, b = wanted.number;
  const auto is_nan = [](std::complex<double> z) {
    return std::isnan(z.real()) || std::isnan(z.imag());
  };
  const auto is_finite = [](std::complex<double> z) {
    return std::isfinite(z.real()) && std::isfinite(z.imag());
  };
  if (is_nan(a) || is_nan(b)) {
    result.equal = is_nan(a) && is_nan(b);
    return result;
  }
  if (!is_finite(a) || !is_finite(b)) {
    result.equal = a == b;
    return result;
  }
  result.finite = true;
  const double magnitude = std::abs(b);
  result.absolute = is_integral(seen.kind) && is_integral(wanted.kind)
                        ? integer_distance(seen, wanted)
                        : std::abs(a - b);
  result.relative = magnitude > 0 ? result.absolute / magnitude : 0;
  result.equal = result.absolute <= tolerance.atol + tolerance.rtol * magnitude;
  return result;
}

// Numpy's file of a bf16 tensor holds its bits as u16.
bool holds_bits(const Array& seen, const Array& wanted) {
  return seen.type().npy[0] == 'V' && wanted.type().kind == Kind::Unsigned &&
         wanted.type().bytes == seen.type().bytes;
}

const DType& wanted_type(const Array& seen, const Array& wanted) {
  return holds_bits(seen, wanted) ? seen.type() : wanted.type();
}

// The squares are those of values over the largest one: the square of 1e200 is not finite.
Scale scale_as(const Array& values, const DType& type) {
  std::vector<double> magnitudes;
  size_t finite = 0;
  for_each_element(values.layout, [&](int64_t, int64_t offset) {
    const uint8_t* at = values.storage.data() + static_cast<size_t>(offset) * type.bytes;
    const double magnitude = std::abs(load_element(type, at).number);
    if (!std::isfinite(magnitude)) return;
    ++finite;
    if (magnitude > 0) magnitudes.push_back(magnitude);
  });
  if (magnitudes.empty()) return {};
  const double largest = *std::max_element(magnitudes.begin(), magnitudes.end());
  double squares = 0;
  for (const double one : magnitudes) squares += (one / largest) * (one / largest);
  const auto middle = magnitudes.begin() + static_cast<ptrdiff_t>(magnitudes.size() / 2);
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  return {largest * std::sqrt(squares / static_cast<double>(finite)), *middle};
}

}  // namespace

double Scale::value() const { return std::min(root_mean_square, 10 * median); }

Scale scale_of(const Array& values) { return scale_as(values, values.type()); }

Tolerance tolerance_for(const DType& seen, const DType& wanted, const Scale& scale,
                        std::optional<double> rtol, std::optional<double> atol) {
  if (is_integral(seen.kind)) return {0, atol.value_or(0)};
  const double relative = rtol.value_or(std::max(seen.rtol, wanted.rtol));
  return {relative, atol.value_or(relative * scale.value())};
}

Tolerance tolerance_for(const Array& seen, const Array& wanted, std::optional<double> rtol,
                        std::optional<double> atol) {
  const bool asks_scale = !atol && !is_integral(seen.type().kind);
  const DType& type = wanted_type(seen, wanted);
  return tolerance_for(seen.type(), type, asks_scale ? scale_as(wanted, type) : Scale{}, rtol,
                       atol);
}

Comparison compare(const Array& seen, const Array& wanted, Tolerance tolerance) {
  Comparison result;
  const DType& seen_type = seen.type();
  const DType& type = wanted_type(seen, wanted);
  if (holds_bits(seen, wanted))
    result.note = fmt::format("the expected {} are read as the bits of {}", wanted.type().name,
                              seen_type.name);
  if (seen.layout.sizes != wanted.layout.sizes) {
    result.unlike = fmt::format("got shape {}, expected {}", shape_text(seen.layout.sizes),
                                shape_text(wanted.layout.sizes));
    return result;
  }
  if (!same_kind(seen_type.kind, type.kind)) {
    result.unlike = fmt::format("got dtype {}, expected {}", seen_type.name, type.name);
    return result;
  }
  if (seen_type.code != type.code)
    result.note = fmt::format("compared {} with {}", seen_type.name, type.name);
  const Array values = contiguous(wanted);
  for_each_element(seen.layout, [&](int64_t linear, int64_t offset) {
    const Element a = load_element(
        seen_type, seen.storage.data() + static_cast<size_t>(offset) * seen_type.bytes);
    const Element b =
        load_element(type, values.storage.data() + static_cast<size_t>(linear) * type.bytes);
    const Difference d = difference(a, b, tolerance);
    ++result.count;
    result.max_absolute = std::max(result.max_absolute, d.absolute);
    result.max_relative = std::max(result.max_relative, d.relative);
    if (d.equal) return;
    if (result.mismatches++ > 0) return;
    result.first = coordinate(seen.layout.sizes, linear);
    result.first_seen = element_text(seen_type, a, 0);
    result.first_wanted = element_text(type, b, 0);
  });
  result.equal = result.mismatches == 0;
  return result;
}

std::string coordinate_text(const Dims& index) {
  return fmt::format("({})", fmt::join(index, ", "));
}

}  // namespace kiln::host
