// SPDX-License-Identifier: Apache-2.0
// What is one element of a dtype in memory, and what does a functor compute with? Element<T>::Bits
// is in memory, Element<T>::Value is the operand: half and bf16 (alone or inside complex) are
// computed in float, as torch does.
//
// The two 16-bit formats are converted by PTX on their bits, so that no CUDA half header is
// compiled.
#pragma once

#include <kiln/complex.h>
#include <kiln/types.h>

namespace kiln {

#ifdef __CUDACC__
namespace detail {

__device__ __forceinline__ float from_f16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ __forceinline__ uint16_t to_f16(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ __forceinline__ float from_bf16(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ __forceinline__ uint16_t to_bf16(float value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}

}  // namespace detail

template <class T>
struct Element {
  using Bits = T;
  using Value = T;
  static __device__ __forceinline__ Value unpack(Bits bits) { return bits; }
  static __device__ __forceinline__ Bits pack(Value value) { return value; }
};
template <class T>
struct Element<const T> : Element<T> {};
template <>
struct Element<half> {
  using Bits = uint16_t;
  using Value = float;
  static __device__ __forceinline__ Value unpack(Bits bits) { return detail::from_f16(bits); }
  static __device__ __forceinline__ Bits pack(Value value) { return detail::to_f16(value); }
};
template <>
struct Element<bf16> {
  using Bits = uint16_t;
  using Value = float;
  static __device__ __forceinline__ Value unpack(Bits bits) { return detail::from_bf16(bits); }
  static __device__ __forceinline__ Bits pack(Value value) { return detail::to_bf16(value); }
};
template <>
struct Element<complex<half>> {
  using Bits = uint32_t;
  using Value = complex<float>;
  static __device__ __forceinline__ Value unpack(Bits bits) {
    return {detail::from_f16(static_cast<uint16_t>(bits)),
            detail::from_f16(static_cast<uint16_t>(bits >> 16))};
  }
  static __device__ __forceinline__ Bits pack(Value value) {
    return detail::to_f16(value.re) | static_cast<uint32_t>(detail::to_f16(value.im)) << 16;
  }
};
// Any byte but 0 is true, as in torch; what is written is 0 or 1.
template <>
struct Element<bool> {
  using Bits = uint8_t;
  using Value = bool;
  static __device__ __forceinline__ Value unpack(Bits bits) { return bits != 0; }
  static __device__ __forceinline__ Bits pack(Value value) { return value; }
};

// A value as it would be after a store and a load: half and bf16 lose the bits that float has and
// they have not.
template <class T>
__device__ __forceinline__ typename Element<T>::Value rounded_to(typename Element<T>::Value value) {
  return Element<T>::unpack(Element<T>::pack(value));
}

namespace detail {

template <class T>
struct IsComplex {
  static constexpr bool value = false;
};
template <class T>
struct IsComplex<complex<T>> {
  static constexpr bool value = true;
};

template <class To, class From>
struct Converted {
  static __device__ __forceinline__ To from(const From& v) { return static_cast<To>(v); }
};
template <class To, class From>
struct Converted<complex<To>, From> {
  static __device__ __forceinline__ complex<To> from(const From& v) {
    return {static_cast<To>(v), To(0)};
  }
};
template <class To, class From>
struct Converted<complex<To>, complex<From>> {
  static __device__ __forceinline__ complex<To> from(const complex<From>& v) {
    return complex<To>(v);
  }
};
template <class To, class From>
__device__ __forceinline__ To converted(const From& v) {
  return Converted<To, From>::from(v);
}

// An element of a dtype known at run time, first as bits (so that several loads are under way
// before one is used), then as the Value of T. Only conversions upwards (bool, integer, real,
// complex) are compiled: the host refuses others.
struct RawBits {
  uint64_t low, high;
};

template <bool kSixteenBytes>
__device__ __forceinline__ RawBits load_raw(const char* at, int bytes) {
  RawBits raw{0, 0};
  switch (bytes) {
    case 1:
      raw.low = *reinterpret_cast<const uint8_t*>(at);
      break;
    case 2:
      raw.low = *reinterpret_cast<const uint16_t*>(at);
      break;
    case 4:
      raw.low = *reinterpret_cast<const uint32_t*>(at);
      break;
    case 16:
      if constexpr (kSixteenBytes) raw.high = *reinterpret_cast<const uint64_t*>(at + 8);
      [[fallthrough]];
    default:
      raw.low = *reinterpret_cast<const uint64_t*>(at);
  }
  return raw;
}

template <class V>
__device__ __forceinline__ V value_from_raw(Dtype dtype, RawBits raw) {
  constexpr bool is_complex = IsComplex<V>::value;
  constexpr bool is_real = !is_complex && V(0.5) != V(0) && V(2) != V(1);
  const auto low = raw.low;
  switch (dtype) {
    case Dtype::bool8:
      return converted<V>(static_cast<uint8_t>(low) != 0);
    case Dtype::i8:
      return converted<V>(static_cast<int8_t>(low));
    case Dtype::i16:
      return converted<V>(static_cast<int16_t>(low));
    case Dtype::i32:
      return converted<V>(static_cast<int32_t>(low));
    case Dtype::i64:
      return converted<V>(static_cast<int64_t>(low));
    case Dtype::u8:
    case Dtype::u16:
    case Dtype::u32:
      return converted<V>(static_cast<uint32_t>(low));
    case Dtype::u64:
      return converted<V>(low);
    default:
      break;
  }
  if constexpr (is_real || is_complex) {
    switch (dtype) {
      case Dtype::f16:
        return converted<V>(from_f16(static_cast<uint16_t>(low)));
      case Dtype::bf16:
        return converted<V>(from_bf16(static_cast<uint16_t>(low)));
      case Dtype::f32:
        return converted<V>(__uint_as_float(static_cast<uint32_t>(low)));
      case Dtype::f64:
        return converted<V>(__longlong_as_double(static_cast<long long>(low)));
      default:
        break;
    }
  }
  if constexpr (is_complex) {
    switch (dtype) {
      case Dtype::c32:
        return converted<V>(Element<complex<half>>::unpack(static_cast<uint32_t>(low)));
      case Dtype::c64:
        return converted<V>(complex<float>(__uint_as_float(static_cast<uint32_t>(low)),
                                           __uint_as_float(static_cast<uint32_t>(low >> 32))));
      case Dtype::c128:
        return converted<V>(
            complex<double>(__longlong_as_double(static_cast<long long>(low)),
                            __longlong_as_double(static_cast<long long>(raw.high))));
      default:
        break;
    }
  }
  return V{};
}

template <class T>
__device__ __forceinline__ typename Element<T>::Value value_of_raw(Dtype dtype, RawBits raw) {
  return rounded_to<T>(value_from_raw<typename Element<T>::Value>(dtype, raw));
}

}  // namespace detail
#endif

}  // namespace kiln
