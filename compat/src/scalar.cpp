// SPDX-License-Identifier: Apache-2.0
// How does a Scalar become a C++ number? Checked as torch checks it, with its text: what does not
// fit is an error. A bool takes any number.
#include <kiln/compat/float8.h>
#include <kiln/compat/scalar.h>

#include <cmath>
#include <complex>
#include <limits>
#include <stdexcept>

#include "op_call.h"

namespace c10 {
inline namespace kc {

namespace {

template <class T>
constexpr bool kIsComplex = !std::is_same_v<typename scalar_value_type<T>::type, T>;

[[noreturn]] void does_not_fit(const char* type) {
  throw std::runtime_error(
      kiln_detail::join("value cannot be converted to type ", type, " without overflow"));
}

// The largest finite value of a small float.
template <class T>
double largest() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  if constexpr (std::is_same_v<T, BFloat16>) return 3.3895313892515355e38;
  if constexpr (std::is_same_v<T, Float8_e4m3fn>) return 448;
  if constexpr (std::is_same_v<T, Float8_e5m2>) return 57344;
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::max();
}

template <class To>
bool fits(double v) {
  using T = typename scalar_value_type<To>::type;
  if constexpr (std::is_integral_v<T>) {
    // 2^digits is exact, the largest value of a wide type is not.
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return v >= static_cast<double>(std::numeric_limits<T>::lowest()) && v < end;
  } else {
    const bool has_infinity = !std::is_same_v<T, Float8_e4m3fn>;
    return v != v || (has_infinity && std::isinf(v)) || std::fabs(v) <= largest<T>();
  }
}

// Negative numbers wrap in unsigned types, so that `a - b` can be `a + 255 * b`.
template <class To>
bool fits(int64_t v) {
  using T = typename scalar_value_type<To>::type;
  if constexpr (std::is_unsigned_v<T>) {
    constexpr uint64_t most = std::numeric_limits<T>::max();
    return v < 0 ? -static_cast<uint64_t>(v) <= most : static_cast<uint64_t>(v) <= most;
  } else if constexpr (std::is_integral_v<T>) {
    return v >= std::numeric_limits<T>::lowest() && v <= std::numeric_limits<T>::max();
  } else {
    return std::fabs(static_cast<double>(v)) <= largest<T>();
  }
}
template <class To>
bool fits(uint64_t v) {
  using T = typename scalar_value_type<To>::type;
  if constexpr (std::is_integral_v<T>)
    return v <= static_cast<uint64_t>(std::numeric_limits<T>::max());
  else
    return static_cast<double>(v) <= largest<T>();
}

template <class T, class From>
T real_as(From v) {
  if constexpr (std::is_same_v<T, bool>)
    return v != From(0);
  else if constexpr (std::is_same_v<T, uint8_t>)
    return static_cast<uint8_t>(static_cast<int64_t>(v));
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}

template <class T>
T made_of(double re, double im, const char* type) {
  using Part = typename scalar_value_type<T>::type;
  if constexpr (std::is_same_v<T, bool>) {
    return re != 0 || im != 0;
  } else if constexpr (kIsComplex<T>) {
    if (!fits<Part>(re) || !fits<Part>(im)) does_not_fit(type);
    return T(real_as<Part>(re), real_as<Part>(im));
  } else {
    if (im != 0 || !fits<T>(re)) does_not_fit(type);
    return real_as<T>(re);
  }
}

template <class T, class From>
T made_of(From v, const char* type) {
  using Part = typename scalar_value_type<T>::type;
  if constexpr (!std::is_same_v<T, bool>)
    if (!fits<Part>(v)) does_not_fit(type);
  if constexpr (kIsComplex<T>)
    return T(real_as<Part>(v), Part(0));
  else
    return real_as<T>(v);
}

}  // namespace

Scalar::Scalar(Float8_e4m3fn v) : Scalar(static_cast<float>(v)) {}
Scalar::Scalar(Float8_e5m2 v) : Scalar(static_cast<float>(v)) {}
Scalar::Scalar(complex<Half> v)
    : Scalar(complex<float>(static_cast<float>(v.real_), static_cast<float>(v.imag_))) {}

ScalarType Scalar::type() const {
  switch (kind_) {
    case Kind::integer:
      return kLong;
    case Kind::large:
      return kUInt64;
    case Kind::real:
      return kDouble;
    case Kind::complex:
      return kComplexDouble;
    default:
      return kBool;
  }
}

// torch names a type as its list of types does.
#define KILN_ACCESSOR(T, Name, shown)                        \
  T Scalar::to##Name() const {                               \
    switch (kind_) {                                         \
      case Kind::real:                                       \
        return made_of<T>(f_, shown);                        \
      case Kind::complex:                                    \
        return made_of<T>(f_, imaginary_, shown);            \
      case Kind::large:                                      \
        return made_of<T>(static_cast<uint64_t>(i_), shown); \
      default:                                               \
        return made_of<T>(i_, shown);                        \
    }                                                        \
  }
KILN_ACCESSOR(uint8_t, Byte, "uint8_t")
KILN_ACCESSOR(int8_t, Char, "int8_t")
KILN_ACCESSOR(int16_t, Short, "int16_t")
KILN_ACCESSOR(int, Int, "int")
KILN_ACCESSOR(int64_t, Long, "int64_t")
KILN_ACCESSOR(Half, Half, "c10::Half")
KILN_ACCESSOR(float, Float, "float")
KILN_ACCESSOR(double, Double, "double")
KILN_ACCESSOR(complex<Half>, ComplexHalf, "c10::complex<c10::Half>")
KILN_ACCESSOR(complex<float>, ComplexFloat, "c10::complex<float>")
KILN_ACCESSOR(complex<double>, ComplexDouble, "c10::complex<double>")
KILN_ACCESSOR(bool, Bool, "bool")
KILN_ACCESSOR(BFloat16, BFloat16, "c10::BFloat16")
KILN_ACCESSOR(Float8_e5m2, Float8_e5m2, "c10::Float8_e5m2")
KILN_ACCESSOR(Float8_e4m3fn, Float8_e4m3fn, "c10::Float8_e4m3fn")
KILN_ACCESSOR(uint16_t, UInt16, "uint16_t")
KILN_ACCESSOR(uint32_t, UInt32, "uint32_t")
KILN_ACCESSOR(uint64_t, UInt64, "uint64_t")
#undef KILN_ACCESSOR

Scalar Scalar::operator-() const {
  TORCH_CHECK(!isBoolean(), "torch boolean negative, the `-` operator, is not supported.");
  if (isFloatingPoint()) return Scalar(-f_);
  if (isComplex()) return Scalar(-complex<double>(f_, imaginary_));
  return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(i_)));
}
Scalar Scalar::conj() const {
  return isComplex() ? Scalar(complex<double>(f_, -imaginary_)) : *this;
}
Scalar Scalar::log() const {
  if (isIntegral(false)) return Scalar(std::log(static_cast<double>(i_)));
  if (!isComplex()) return Scalar(std::log(toDouble()));
  const std::complex<double> found = std::log(std::complex<double>(f_, imaginary_));
  return Scalar(complex<double>(found.real(), found.imag()));
}
// By value: a boolean equals only booleans.
bool Scalar::equals(const Scalar& o) const {
  if (isBoolean() || o.isBoolean()) return isBoolean() && o.isBoolean() && i_ == o.i_;
  if (isIntegral(false) && o.isIntegral(false)) return kind_ == o.kind_ && i_ == o.i_;
  const complex<double> a = toComplexDouble(), b = o.toComplexDouble();
  return a == b;
}

}  // namespace kc
}  // namespace c10

namespace kiln::compat {
// An integer above the signed ones is marked by f, as Caster<uint64_t> does.
at::Scalar Caster<at::Scalar>::take(Value& v) {
  switch (v.kind) {
    case Value::Kind::real:
      return at::Scalar(v.f);
    case Value::Kind::complex:
      return at::Scalar(c10::complex<double>(v.f, v.imaginary));
    case Value::Kind::boolean:
      return at::Scalar(v.i != 0);
    default:
      return v.f != 0 ? at::Scalar(static_cast<uint64_t>(v.i)) : at::Scalar(v.i);
  }
}
void Caster<at::Scalar>::give(Value& v, const at::Scalar& value) {
  if (value.isComplex()) {
    const auto number = value.toComplexDouble();
    v.kind = Value::Kind::complex;
    v.f = number.real();
    v.imaginary = number.imag();
  } else if (value.isFloatingPoint()) {
    v.kind = Value::Kind::real;
    v.f = value.toDouble();
  } else {
    v.kind = value.isBoolean() ? Value::Kind::boolean : Value::Kind::integer;
    v.f = value.type() == at::kUInt64;
    v.i = v.f != 0 ? static_cast<int64_t>(value.toUInt64()) : value.toLong();
  }
}
}  // namespace kiln::compat
