// SPDX-License-Identifier: Apache-2.0
// What does ATen/NumericUtils.h offer? Tests for NaN and infinity of every scalar type, in kernels
// and in host code.
#pragma once

#include <kiln/compat/types.h>

#include <cmath>
#include <type_traits>

namespace at {
inline namespace kc {
template <class T>
inline C10_HOST_DEVICE bool _isnan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return std::isnan(static_cast<float>(value));
}
template <class T>
inline C10_HOST_DEVICE bool _isnan(c10::complex<T> value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}
template <class T>
inline C10_HOST_DEVICE bool _isinf(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else if constexpr (std::is_floating_point_v<T>)
    return std::isinf(value);
  else
    return std::isinf(static_cast<float>(value));
}
}  // namespace kc
}  // namespace at
