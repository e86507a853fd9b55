// SPDX-License-Identifier: Apache-2.0
// Which small types cross between an op and its caller? Dtype, Device, Span, Str, Optional: no std
// header is behind them, since each one would be paid for in every compile.
#pragma once

#ifdef __CUDACC_RTC__
// NVRTC has no <stdint.h>.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __CUDACC__
#define KILN_BOTH __host__ __device__ __forceinline__
#else
#define KILN_BOTH inline
#endif

// The CUDA half types, complete only after <kiln/half.h> (cuda_bf16.h alone makes a compile 1.65
// times as long).
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace kiln {

// The numbers are those of KILN_U8 ... in kiln/abi.h, which are torch's.
enum class Dtype : int32_t {
  u8 = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  f16 = 5,
  f32 = 6,
  f64 = 7,
  c32 = 8,
  c64 = 9,
  c128 = 10,
  bool8 = 11,
  bf16 = 15,
  f8e5m2 = 23,
  f8e4m3 = 24,
  u16 = 27,
  u32 = 28,
  u64 = 29
};

using half = ::__half;
using bf16 = ::__nv_bfloat16;
using f8e4m3 = ::__nv_fp8_e4m3;
using f8e5m2 = ::__nv_fp8_e5m2;
template <class T>
struct complex;  // complete after <kiln/complex.h>

template <class T>
struct DtypeOf;  // no dtype for this C++ type
template <>
struct DtypeOf<unsigned char> {
  static constexpr Dtype value = Dtype::u8;
};
template <>
struct DtypeOf<signed char> {
  static constexpr Dtype value = Dtype::i8;
};
template <>
struct DtypeOf<short> {
  static constexpr Dtype value = Dtype::i16;
};
template <>
struct DtypeOf<int> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<long> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<long long> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<unsigned short> {
  static constexpr Dtype value = Dtype::u16;
};
template <>
struct DtypeOf<unsigned int> {
  static constexpr Dtype value = Dtype::u32;
};
template <>
struct DtypeOf<unsigned long> {
  static constexpr Dtype value = Dtype::u64;
};
template <>
struct DtypeOf<unsigned long long> {
  static constexpr Dtype value = Dtype::u64;
};
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::bool8;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<half> {
  static constexpr Dtype value = Dtype::f16;
};
template <>
struct DtypeOf<bf16> {
  static constexpr Dtype value = Dtype::bf16;
};
template <>
struct DtypeOf<f8e4m3> {
  static constexpr Dtype value = Dtype::f8e4m3;
};
template <>
struct DtypeOf<f8e5m2> {
  static constexpr Dtype value = Dtype::f8e5m2;
};
template <>
struct DtypeOf<complex<half>> {
  static constexpr Dtype value = Dtype::c32;
};
template <>
struct DtypeOf<complex<float>> {
  static constexpr Dtype value = Dtype::c64;
};
template <>
struct DtypeOf<complex<double>> {
  static constexpr Dtype value = Dtype::c128;
};
template <class T>
struct DtypeOf<const T> : DtypeOf<T> {};

template <class T>
constexpr Dtype dtype_of = DtypeOf<T>::value;

// Bytes of one element; 0 for a number that is not a dtype.
KILN_BOTH constexpr int64_t element_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::bool8:
    case Dtype::f8e5m2:
    case Dtype::f8e4m3:
      return 1;
    case Dtype::i16:
    case Dtype::u16:
    case Dtype::f16:
    case Dtype::bf16:
      return 2;
    case Dtype::i32:
    case Dtype::u32:
    case Dtype::f32:
    case Dtype::c32:
      return 4;
    case Dtype::i64:
    case Dtype::u64:
    case Dtype::f64:
    case Dtype::c64:
      return 8;
    case Dtype::c128:
      return 16;
  }
  return 0;
}

#ifndef __CUDACC_RTC__  // what follows is of the host

enum class DeviceType : int32_t { cpu = 0, cuda = 1 };

struct Device {
  DeviceType type = DeviceType::cpu;
  int32_t index = 0;
  friend constexpr bool operator==(Device a, Device b) {
    return a.type == b.type && a.index == b.index;
  }
  friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }
};

// A borrowed run of values.
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), size_(N) {}
  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  friend constexpr bool operator==(Span a, Span b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; i++)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }
  friend constexpr bool operator!=(Span a, Span b) { return !(a == b); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// A list of sizes given by an author: a braced list, an array, or the sizes() of a tensor.
class Sizes {
 public:
  static constexpr int kMost = 16;
  constexpr Sizes() = default;
  template <class... I>
  constexpr Sizes(int64_t first, I... rest)
      : values_{first, static_cast<int64_t>(rest)...}, size_(1 + sizeof...(I)) {
    static_assert(1 + sizeof...(I) <= kMost, "a tensor has at most 16 dimensions here");
  }
  Sizes(Span<const int64_t> sizes) {
    for (size_t i = 0; i < sizes.size() && i < kMost; i++) values_[size_++] = sizes[i];
  }
  constexpr int64_t& operator[](int i) { return values_[i]; }
  constexpr int64_t operator[](int i) const { return values_[i]; }
  constexpr int size() const { return size_; }
  constexpr void push(int64_t value) { values_[size_++] = value; }
  operator Span<const int64_t>() const { return {values_, static_cast<size_t>(size_)}; }

 private:
  int64_t values_[kMost] = {};
  int size_ = 0;
};

// A borrowed string, which also ends in NUL.
class Str {
 public:
  constexpr Str() = default;
  constexpr Str(const char* text) : data_(text) {
    while (text[size_]) size_++;
  }
  constexpr Str(const char* data, size_t size) : data_(data), size_(size) {}
  constexpr const char* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr char operator[](size_t i) const { return data_[i]; }
  friend constexpr bool operator==(Str a, Str b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; i++)
      if (a.data_[i] != b.data_[i]) return false;
    return true;
  }
  friend constexpr bool operator!=(Str a, Str b) { return !(a == b); }

 private:
  const char* data_ = "";
  size_t size_ = 0;
};

template <class T>
class Optional {
 public:
  Optional() = default;
  Optional(const T& value) : value_(value), present_(true) {}
  explicit operator bool() const { return present_; }
  bool has_value() const { return present_; }
  const T& operator*() const { return value_; }
  T& operator*() { return value_; }
  const T* operator->() const { return &value_; }
  T* operator->() { return &value_; }
  T value_or(T other) const { return present_ ? value_ : other; }

 private:
  T value_{};
  bool present_ = false;
};

#endif  // __CUDACC_RTC__

}  // namespace kiln
