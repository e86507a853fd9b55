// SPDX-License-Identifier: Apache-2.0
#include "host/compare.h"

#include <fmt/format.h>
#include <kiln/abi.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

Tolerance tolerance_for(const DType& seen, const DType& wanted, std::optional<double> rtol,
                        std::optional<double> atol) {
  if (rtol || atol) return {rtol.value_or(0), atol.value_or(0)};
  return {std::max(seen.rtol, wanted.rtol), std::max(seen.atol, wanted.atol)};
}

Comparison compare(const Array& seen, const Array& wanted, Tolerance tolerance) {
  Comparison result;
  const DType& seen_type = seen.type();
  const DType* wanted_type = &wanted.type();
  if (seen_type.npy[0] == 'V' && wanted_type->kind == Kind::Unsigned &&
      wanted_type->bytes == seen_type.bytes) {
    result.note = fmt::format("the expected {} are taken as the bits of {}", wanted_type->name,
                              seen_type.name);
    wanted_type = &seen_type;
  }
  if (seen.layout.sizes != wanted.layout.sizes) {
    result.unlike = fmt::format("shape {}, wanted {}", shape_text(seen.layout.sizes),
                                shape_text(wanted.layout.sizes));
    return result;
  }
  if (!same_kind(seen_type.kind, wanted_type->kind)) {
    result.unlike = fmt::format("dtype {}, wanted {}", seen_type.name, wanted_type->name);
    return result;
  }
  if (seen_type.code != wanted_type->code)
    result.note = fmt::format("compared {} with {}", seen_type.name, wanted_type->name);
  const Array values = contiguous(wanted);
  for_each_element(seen.layout, [&](int64_t linear, int64_t offset) {
    const Element a = load_element(
        seen_type, seen.storage.data() + static_cast<size_t>(offset) * seen_type.bytes);
    const Element b = load_element(
        *wanted_type, values.storage.data() + static_cast<size_t>(linear) * wanted_type->bytes);
    const Difference d = difference(a, b, tolerance);
    ++result.count;
    result.max_absolute = std::max(result.max_absolute, d.absolute);
    result.max_relative = std::max(result.max_relative, d.relative);
    if (d.equal) return;
    if (result.mismatches++ > 0) return;
    result.first = coordinate(seen.layout.sizes, linear);
    result.first_seen = element_text(seen_type, a, 0);
    result.first_wanted = element_text(*wanted_type, b, 0);
  });
  result.equal = result.mismatches == 0;
  return result;
}

std::string coordinate_text(const Dims& index) {
  return fmt::format("({})", fmt::join(index, ", "));
}

}  // namespace kiln::host
