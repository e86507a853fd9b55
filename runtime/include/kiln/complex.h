// SPDX-License-Identifier: Apache-2.0
// How does a kernel compute with complex numbers? kiln::complex<T>: torch's layout (real, then
// imaginary, aligned as one), the arithmetic of torch's c10::complex, abs and sqrt; on the host and
// on the device, with no header of libstdc++.
#pragma once

#include <kiln/types.h>

namespace kiln {

template <class T>
struct alignas(2 * sizeof(T)) complex {
  T re, im;

  complex() = default;
  KILN_BOTH constexpr complex(T real) : re(real), im(0) {}
  KILN_BOTH constexpr complex(T real, T imag) : re(real), im(imag) {}
  template <class U>
  KILN_BOTH constexpr explicit complex(const complex<U>& other)
      : re(static_cast<T>(other.re)), im(static_cast<T>(other.im)) {}

  KILN_BOTH constexpr T real() const { return re; }
  KILN_BOTH constexpr T imag() const { return im; }

  KILN_BOTH constexpr complex& operator+=(complex o) { return *this = *this + o; }
  KILN_BOTH constexpr complex& operator-=(complex o) { return *this = *this - o; }
  KILN_BOTH constexpr complex& operator*=(complex o) { return *this = *this * o; }
  KILN_BOTH constexpr complex& operator/=(complex o) { return *this = *this / o; }

  friend KILN_BOTH constexpr complex operator+(complex a) { return a; }
  friend KILN_BOTH constexpr complex operator-(complex a) { return {-a.re, -a.im}; }
  friend KILN_BOTH constexpr complex operator+(complex a, complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend KILN_BOTH constexpr complex operator-(complex a, complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend KILN_BOTH constexpr complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Scaled by the larger part of the divisor (Smith), so that |b|^2 cannot overflow.
  friend KILN_BOTH constexpr complex operator/(complex a, complex b) {
    const T re_size = b.re < 0 ? -b.re : b.re, im_size = b.im < 0 ? -b.im : b.im;
    if (re_size >= im_size) {
      if (re_size == 0 && im_size == 0) return {a.re / re_size, a.im / im_size};
      const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = T(1) / (b.re * ratio + b.im);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
  }
  friend KILN_BOTH constexpr bool operator==(complex a, complex b) {
    return a.re == b.re && a.im == b.im;
  }
  friend KILN_BOTH constexpr bool operator!=(complex a, complex b) { return !(a == b); }
};

// Two halves as they are in memory; kernels compute with complex<float> (kiln/element.h).
template <>
struct alignas(4) complex<half> {
  uint16_t re_bits, im_bits;
};

template <class T>
KILN_BOTH constexpr complex<T> conj(complex<T> a) {
  return {a.re, -a.im};
}

// The norm without undue overflow: the larger part times sqrt(1 + ratio^2).
template <class T>
KILN_BOTH T abs(complex<T> a) {
  T large = a.re < 0 ? -a.re : a.re, small = a.im < 0 ? -a.im : a.im;
  if (large < small) {
    const T swap = large;
    large = small;
    small = swap;
  }
  const T infinity = T(1) / T(0);
  if (large == infinity || small == infinity) return infinity;
  if (large == 0) return small;  // small is 0 or not a number
  const T ratio = small / large;
  return large * static_cast<T>(::sqrt(T(1) + ratio * ratio));
}

// The root with a real part >= 0; its imaginary part has the sign of a's (C99, annex G.6.4.2).
template <class T>
KILN_BOTH complex<T> sqrt(complex<T> a) {
  const T infinity = T(1) / T(0);
  const T re_size = a.re < 0 ? -a.re : a.re, im_size = a.im < 0 ? -a.im : a.im;
  if (re_size == 0 && im_size == 0) return {T(0), a.im};
  if (im_size == infinity) return {infinity, a.im};
  if (re_size == infinity) {
    const T other = im_size == im_size ? T(0) : a.im;  // not a number stays so
    if (a.re > 0) return {a.re, other == other ? static_cast<T>(::copysign(T(0), a.im)) : other};
    return {other, static_cast<T>(::copysign(infinity, a.im))};
  }
  // Near the top of the range |a| + |re| would overflow: halve twice, double the root.
  const T most = sizeof(T) == 4 ? T(8.5070587e37) : T(4.4942328371557898e307);
  const bool huge = re_size > most || im_size > most;
  const complex<T> b = huge ? complex<T>(a.re / 4, a.im / 4) : a;
  T root = static_cast<T>(::sqrt((abs(b) + re_size / (huge ? 4 : 1)) / 2));
  T other = (b.im < 0 ? -b.im : b.im) / (2 * root);
  if (huge) root *= 2, other *= 2;
  if (a.re >= 0) return {root, static_cast<T>(::copysign(other, a.im))};
  return {other, static_cast<T>(::copysign(root, a.im))};
}

}  // namespace kiln
