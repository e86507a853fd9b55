// SPDX-License-Identifier: Apache-2.0
// Which functions of complex numbers does c10/util/complex.h offer? Those of the standard library
// for c10::complex. In CUDA sources they are thrust's, as in torch: both round differently, and
// results shall be torch's to the bit.
#pragma once

#include <kiln/compat/types.h>

#include <cmath>
#include <complex>
#include <type_traits>

#ifdef __CUDACC__
#include <thrust/complex.h>
#define KILN_COMPLEX thrust
#else
#define KILN_COMPLEX std
#endif

namespace c10_complex_math {
namespace kiln_detail {
template <class T>
C10_HOST_DEVICE inline KILN_COMPLEX::complex<T> theirs(const c10::complex<T>& x) {
  return KILN_COMPLEX::complex<T>(x.real(), x.imag());
}
template <class T>
C10_HOST_DEVICE inline c10::complex<T> ours(const KILN_COMPLEX::complex<T>& x) {
  return c10::complex<T>(x.real(), x.imag());
}
template <class T>
using IfNumber = std::enable_if_t<std::is_arithmetic_v<T>>;
}  // namespace kiln_detail

#define KILN_COMPLEX_FUNCTION(name)                                          \
  template <class T>                                                         \
  C10_HOST_DEVICE inline c10::complex<T> name(const c10::complex<T>& x) {    \
    return kiln_detail::ours<T>(KILN_COMPLEX::name(kiln_detail::theirs(x))); \
  }
KILN_COMPLEX_FUNCTION(exp)
KILN_COMPLEX_FUNCTION(log)
KILN_COMPLEX_FUNCTION(log10)
KILN_COMPLEX_FUNCTION(sqrt)
KILN_COMPLEX_FUNCTION(sin)
KILN_COMPLEX_FUNCTION(cos)
KILN_COMPLEX_FUNCTION(tan)
KILN_COMPLEX_FUNCTION(asin)
KILN_COMPLEX_FUNCTION(acos)
KILN_COMPLEX_FUNCTION(atan)
KILN_COMPLEX_FUNCTION(sinh)
KILN_COMPLEX_FUNCTION(cosh)
KILN_COMPLEX_FUNCTION(tanh)
KILN_COMPLEX_FUNCTION(asinh)
KILN_COMPLEX_FUNCTION(acosh)
KILN_COMPLEX_FUNCTION(atanh)
#undef KILN_COMPLEX_FUNCTION

template <class T>
C10_HOST_DEVICE inline c10::complex<T> log2(const c10::complex<T>& x) {
  return log(x) / c10::complex<T>(static_cast<T>(::log(2.0)), T(0));
}
template <class T>
C10_HOST_DEVICE inline c10::complex<T> pow(const c10::complex<T>& x, const c10::complex<T>& y) {
  return kiln_detail::ours<T>(KILN_COMPLEX::pow(kiln_detail::theirs(x), kiln_detail::theirs(y)));
}
template <class T, class U, class = kiln_detail::IfNumber<U>>
C10_HOST_DEVICE inline auto pow(const c10::complex<T>& x, const U& y) {
  return kiln_detail::ours<decltype(T() * U())>(KILN_COMPLEX::pow(kiln_detail::theirs(x), y));
}
template <class T, class U, class = kiln_detail::IfNumber<T>>
C10_HOST_DEVICE inline auto pow(const T& x, const c10::complex<U>& y) {
  return kiln_detail::ours<decltype(T() * U())>(KILN_COMPLEX::pow(x, kiln_detail::theirs(y)));
}
}  // namespace c10_complex_math

namespace std {
template <class T>
constexpr C10_HOST_DEVICE T real(const c10::complex<T>& x) {
  return x.real();
}
template <class T>
constexpr C10_HOST_DEVICE T imag(const c10::complex<T>& x) {
  return x.imag();
}
template <class T>
C10_HOST_DEVICE inline T abs(const c10::complex<T>& x) {
  return KILN_COMPLEX::abs(c10_complex_math::kiln_detail::theirs(x));
}
template <class T>
C10_HOST_DEVICE inline T arg(const c10::complex<T>& x) {
  return std::atan2(x.imag(), x.real());
}
template <class T>
constexpr C10_HOST_DEVICE T norm(const c10::complex<T>& x) {
  return x.real() * x.real() + x.imag() * x.imag();
}
template <class T>
constexpr C10_HOST_DEVICE c10::complex<T> conj(const c10::complex<T>& x) {
  return c10::complex<T>(x.real(), -x.imag());
}
using c10_complex_math::acos;
using c10_complex_math::acosh;
using c10_complex_math::asin;
using c10_complex_math::asinh;
using c10_complex_math::atan;
using c10_complex_math::atanh;
using c10_complex_math::cos;
using c10_complex_math::cosh;
using c10_complex_math::exp;
using c10_complex_math::log;
using c10_complex_math::log10;
using c10_complex_math::log2;
using c10_complex_math::pow;
using c10_complex_math::sin;
using c10_complex_math::sinh;
using c10_complex_math::sqrt;
using c10_complex_math::tan;
using c10_complex_math::tanh;
}  // namespace std

namespace c10 {
inline namespace kc {
template <class T>
C10_HOST_DEVICE inline complex<T> polar(const T& r, const T& theta = T()) {
#ifdef __CUDACC__
  return c10_complex_math::kiln_detail::ours<T>(thrust::polar(r, theta));
#else
  return complex<T>(r * std::cos(theta), r * std::sin(theta));
#endif
}
}  // namespace kc
}  // namespace c10
#undef KILN_COMPLEX
