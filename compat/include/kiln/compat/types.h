// SPDX-License-Identifier: Apache-2.0
// What are the small value types of torch's C++ API? Scalar types, devices, layouts, Half and
// BFloat16, as kernel sources use them on host and device.
//
// All of it lives in inline namespaces: the names are torch's, the symbols are not, so that an
// object compiled with torch's own headers does not link with these by mistake, and an exception
// thrown here is not taken for torch's.
#pragma once

#include <kiln/compat/macros.h>
#include <kiln/compat/std.h>

namespace std {
template <class T>
class complex;  // <complex> is too much for sources that do not use it
}

namespace c10 {
inline namespace kc {

// c10::Half: 16 bits of storage, arithmetic in float.
struct alignas(2) Half {
  unsigned short x;
  struct from_bits_t {};
  static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return {}; }
  Half() = default;
  constexpr C10_HOST_DEVICE Half(unsigned short bits, from_bits_t) : x(bits) {}
  inline C10_HOST_DEVICE Half(float value);
  inline C10_HOST_DEVICE operator float() const;
#if defined(__CUDA_FP16_TYPES_EXIST__) && defined(__CUDACC__)  // as torch: nvcc alone
  inline C10_HOST_DEVICE Half(const __half& value) { x = __half_raw(value).x; }
  inline C10_HOST_DEVICE operator __half() const {
    __half_raw raw;
    raw.x = x;
    return __half(raw);
  }
#endif
};

struct alignas(2) BFloat16 {
  unsigned short x;
  struct from_bits_t {};
  static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return {}; }
  BFloat16() = default;
  constexpr C10_HOST_DEVICE BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
  inline C10_HOST_DEVICE BFloat16(float value);
  inline C10_HOST_DEVICE operator float() const;
#if defined(__CUDA_BF16_TYPES_EXIST__) && defined(__CUDACC__)
  inline C10_HOST_DEVICE BFloat16(const __nv_bfloat16& value) { x = __nv_bfloat16_raw(value).x; }
  explicit inline C10_HOST_DEVICE operator __nv_bfloat16() const {
    __nv_bfloat16_raw raw;
    raw.x = x;
    return __nv_bfloat16(raw);
  }
#endif
};

namespace kiln_detail {

inline C10_HOST_DEVICE float bits_to_float(uint32_t bits) {
  union {
    uint32_t i;
    float f;
  } u = {bits};
  return u.f;
}
inline C10_HOST_DEVICE uint32_t float_to_bits(float value) {
  union {
    float f;
    uint32_t i;
  } u = {value};
  return u.i;
}

inline C10_HOST_DEVICE float half_to_float(unsigned short h) {
#ifdef __CUDA_ARCH__
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
#else
  // The exponent moves by multiplication, which renormalises subnormals.
  const uint32_t w = static_cast<uint32_t>(h) << 16, sign = w & 0x80000000u, two_w = w + w;
  const float normal = bits_to_float((two_w >> 4) + (0xE0u << 23)) * bits_to_float(0x7800000u);
  const float subnormal = bits_to_float((two_w >> 17) | (126u << 23)) - 0.5f;
  return bits_to_float(sign |
                       (two_w < (1u << 27) ? float_to_bits(subnormal) : float_to_bits(normal)));
#endif
}
inline C10_HOST_DEVICE unsigned short half_from_float(float f) {
#ifdef __CUDA_ARCH__
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
#else
  float base = (bits_to_float(float_to_bits(f) & 0x7fffffffu) * bits_to_float(0x77800000u)) *
               bits_to_float(0x08800000u);
  const uint32_t w = float_to_bits(f), shl1 = w + w, sign = w & 0x80000000u;
  uint32_t bias = shl1 & 0xFF000000u;
  if (bias < 0x71000000u) bias = 0x71000000u;
  base = bits_to_float((bias >> 1) + 0x07800000u) + base;
  const uint32_t bits = float_to_bits(base);
  const uint32_t value = ((bits >> 13) & 0x7C00u) + (bits & 0x0FFFu);
  return static_cast<unsigned short>((sign >> 16) | (shl1 > 0xFF000000u ? 0x7E00u : value));
#endif
}
inline C10_HOST_DEVICE unsigned short bfloat16_from_float(float f) {
  if (f != f) return 0x7FC0;
  const uint32_t bits = float_to_bits(f);
  return static_cast<unsigned short>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace kiln_detail

inline C10_HOST_DEVICE Half::Half(float value) : x(kiln_detail::half_from_float(value)) {}
inline C10_HOST_DEVICE Half::operator float() const { return kiln_detail::half_to_float(x); }
inline C10_HOST_DEVICE BFloat16::BFloat16(float value)
    : x(kiln_detail::bfloat16_from_float(value)) {}
inline C10_HOST_DEVICE BFloat16::operator float() const {
  return kiln_detail::bits_to_float(static_cast<uint32_t>(x) << 16);
}

// Operators of their own, so that `half + half` is a Half and `half + 1` is not ambiguous.
#define KILN_SMALL_FLOAT_WITH(T, U, R)                            \
  inline C10_HOST_DEVICE R operator+(T a, U b) {                  \
    return static_cast<R>(static_cast<R>(a) + static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator-(T a, U b) {                  \
    return static_cast<R>(static_cast<R>(a) - static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator*(T a, U b) {                  \
    return static_cast<R>(static_cast<R>(a) * static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator/(T a, U b) {                  \
    return static_cast<R>(static_cast<R>(a) / static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator+(U a, T b) {                  \
    return static_cast<R>(static_cast<R>(a) + static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator-(U a, T b) {                  \
    return static_cast<R>(static_cast<R>(a) - static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator*(U a, T b) {                  \
    return static_cast<R>(static_cast<R>(a) * static_cast<R>(b)); \
  }                                                               \
  inline C10_HOST_DEVICE R operator/(U a, T b) {                  \
    return static_cast<R>(static_cast<R>(a) / static_cast<R>(b)); \
  }
#define KILN_SMALL_FLOAT(T)                                                                      \
  inline C10_HOST_DEVICE T operator+(T a, T b) {                                                 \
    return static_cast<float>(a) + static_cast<float>(b);                                        \
  }                                                                                              \
  inline C10_HOST_DEVICE T operator-(T a, T b) {                                                 \
    return static_cast<float>(a) - static_cast<float>(b);                                        \
  }                                                                                              \
  inline C10_HOST_DEVICE T operator*(T a, T b) {                                                 \
    return static_cast<float>(a) * static_cast<float>(b);                                        \
  }                                                                                              \
  inline C10_HOST_DEVICE T operator/(T a, T b) {                                                 \
    return static_cast<float>(a) / static_cast<float>(b);                                        \
  }                                                                                              \
  inline C10_HOST_DEVICE T operator-(T a) { return -static_cast<float>(a); }                     \
  inline C10_HOST_DEVICE T& operator+=(T& a, T b) { return a = a + b; }                          \
  inline C10_HOST_DEVICE T& operator-=(T& a, T b) { return a = a - b; }                          \
  inline C10_HOST_DEVICE T& operator*=(T& a, T b) { return a = a * b; }                          \
  inline C10_HOST_DEVICE T& operator/=(T& a, T b) { return a = a / b; }                          \
  inline C10_HOST_DEVICE float& operator+=(float& a, T b) { return a += static_cast<float>(b); } \
  inline C10_HOST_DEVICE float& operator-=(float& a, T b) { return a -= static_cast<float>(b); } \
  inline C10_HOST_DEVICE float& operator*=(float& a, T b) { return a *= static_cast<float>(b); } \
  inline C10_HOST_DEVICE float& operator/=(float& a, T b) { return a /= static_cast<float>(b); } \
  KILN_SMALL_FLOAT_WITH(T, float, float)                                                         \
  KILN_SMALL_FLOAT_WITH(T, double, double)                                                       \
  KILN_SMALL_FLOAT_WITH(T, int, T)                                                               \
  KILN_SMALL_FLOAT_WITH(T, int64_t, T)
KILN_SMALL_FLOAT(Half)
KILN_SMALL_FLOAT(BFloat16)
#ifdef __CUDACC__
// Found by their argument, as CUDA's own are for its types.
inline __device__ Half __ldg(const Half* p) { return Half(::__ldg(&p->x), Half::from_bits()); }
inline __device__ BFloat16 __ldg(const BFloat16* p) {
  return BFloat16(::__ldg(&p->x), BFloat16::from_bits());
}
#endif
// As torch has them: Half compares as float alone, and these take no constants, so that `bfloat16
// > 1.f` has one meaning.
inline C10_HOST_DEVICE bool operator<(BFloat16& a, BFloat16& b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
inline C10_HOST_DEVICE bool operator>(BFloat16& a, BFloat16& b) {
  return static_cast<float>(a) > static_cast<float>(b);
}

// Conversions stand in float8.h, which few sources need.
#define KILN_FLOAT8(T)                                                      \
  struct alignas(1) T {                                                     \
    uint8_t x;                                                              \
    struct from_bits_t {};                                                  \
    static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return {}; } \
    T() = default;                                                          \
    constexpr C10_HOST_DEVICE T(uint8_t bits, from_bits_t) : x(bits) {}     \
    inline C10_HOST_DEVICE T(float value);                                  \
    inline C10_HOST_DEVICE operator float() const;                          \
  };
KILN_FLOAT8(Float8_e4m3fn)
KILN_FLOAT8(Float8_e5m2)
#undef KILN_FLOAT8

template <class T>
struct alignas(2 * sizeof(T)) complex {
  using value_type = T;
  T real_ = T(0), imag_ = T(0);
  constexpr complex() = default;
  constexpr C10_HOST_DEVICE complex(T re, T im = T(0)) : real_(re), imag_(im) {}
  template <class U>
  explicit constexpr C10_HOST_DEVICE complex(const complex<U>& o)
      : real_(static_cast<T>(o.real_)), imag_(static_cast<T>(o.imag_)) {}
  template <class U>
  explicit constexpr complex(const std::complex<U>& o)
      : real_(static_cast<T>(o.real())), imag_(static_cast<T>(o.imag())) {}
  template <class U>
  explicit constexpr operator std::complex<U>() const {
    return std::complex<U>(static_cast<U>(real_), static_cast<U>(imag_));
  }
  constexpr C10_HOST_DEVICE T real() const { return real_; }
  constexpr C10_HOST_DEVICE T imag() const { return imag_; }
  constexpr C10_HOST_DEVICE complex& operator+=(const complex& o) {
    real_ += o.real_;
    imag_ += o.imag_;
    return *this;
  }
  constexpr C10_HOST_DEVICE complex& operator-=(const complex& o) {
    real_ -= o.real_;
    imag_ -= o.imag_;
    return *this;
  }
  constexpr C10_HOST_DEVICE complex& operator*=(const complex& o) {
    const T re = real_ * o.real_ - imag_ * o.imag_;
    imag_ = real_ * o.imag_ + imag_ * o.real_;
    real_ = re;
    return *this;
  }
  friend constexpr C10_HOST_DEVICE complex operator+(complex a, const complex& b) { return a += b; }
  friend constexpr C10_HOST_DEVICE complex operator-(complex a, const complex& b) { return a -= b; }
  friend constexpr C10_HOST_DEVICE complex operator*(complex a, const complex& b) { return a *= b; }
  constexpr C10_HOST_DEVICE complex& operator/=(const complex& o) {
    // Scaled by the larger part of the divisor, whose square may not fit.
    const T a = o.real_ < T(0) ? -o.real_ : o.real_, b = o.imag_ < T(0) ? -o.imag_ : o.imag_;
    if (a >= b) {
      if (a == T(0) && b == T(0)) return *this = complex(real_ / a, imag_ / b);
      const T ratio = o.imag_ / o.real_, scale = T(1) / (o.real_ + o.imag_ * ratio);
      return *this = complex((real_ + imag_ * ratio) * scale, (imag_ - real_ * ratio) * scale);
    }
    const T ratio = o.real_ / o.imag_, scale = T(1) / (o.imag_ + o.real_ * ratio);
    return *this = complex((real_ * ratio + imag_) * scale, (imag_ * ratio - real_) * scale);
  }
  friend constexpr C10_HOST_DEVICE complex operator/(complex a, const complex& b) { return a /= b; }
  constexpr C10_HOST_DEVICE complex operator-() const { return complex(-real_, -imag_); }
  constexpr C10_HOST_DEVICE complex operator+() const { return *this; }
  friend constexpr C10_HOST_DEVICE bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  friend constexpr C10_HOST_DEVICE bool operator!=(const complex& a, const complex& b) {
    return !(a == b);
  }
};

template <class T>
struct scalar_value_type {
  using type = T;
};
template <class T>
struct scalar_value_type<complex<T>> {
  using type = T;
};

// The numbers are torch's own: they cross its C shim as they are.
// clang-format off
#define KILN_SCALAR_TYPES(X) \
  X(uint8_t, Byte, 0) X(int8_t, Char, 1) X(int16_t, Short, 2) \
  X(int, Int, 3) X(int64_t, Long, 4) X(Half, Half, 5) \
  X(float, Float, 6) X(double, Double, 7) X(complex<Half>, ComplexHalf, 8) \
  X(complex<float>, ComplexFloat, 9) X(complex<double>, ComplexDouble, 10) X(bool, Bool, 11) \
  X(BFloat16, BFloat16, 15) X(Float8_e5m2, Float8_e5m2, 23) X(Float8_e4m3fn, Float8_e4m3fn, 24) \
  X(uint16_t, UInt16, 27) X(uint32_t, UInt32, 28) X(uint64_t, UInt64, 29)
// Types of which kiln has the name and no C++ type.
#define KILN_BARE_SCALAR_TYPES(X) \
  X(QInt8, 12) X(QUInt8, 13) X(QInt32, 14) X(QUInt4x2, 16) X(QUInt2x4, 17) X(Bits1x8, 18) \
  X(Bits2x4, 19) X(Bits4x2, 20) X(Bits8, 21) X(Bits16, 22) X(Float8_e5m2fnuz, 25) \
  X(Float8_e4m3fnuz, 26) X(UInt1, 30) X(UInt2, 31) X(UInt3, 32) X(UInt4, 33) X(UInt5, 34) \
  X(UInt6, 35) X(UInt7, 36) X(Int1, 37) X(Int2, 38) X(Int3, 39) X(Int4, 40) X(Int5, 41) \
  X(Int6, 42) X(Int7, 43) X(Float8_e8m0fnu, 44) X(Float4_e2m1fn_x2, 45)
// clang-format on

enum class ScalarType : int8_t {
#define X(type, name, number) name = number,
  KILN_SCALAR_TYPES(X)
#undef X
#define X(name, number) name = number,
      KILN_BARE_SCALAR_TYPES(X)
#undef X
          Undefined = 46,
  NumOptions = 47
};
#define X(type, name, number) constexpr ScalarType k##name = ScalarType::name;
KILN_SCALAR_TYPES(X)
#undef X
#define X(name, number) constexpr ScalarType k##name = ScalarType::name;
KILN_BARE_SCALAR_TYPES(X)
#undef X
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong,
                     kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;

#define KILN_FORALL_7(_) \
  _(uint8_t, Byte) _(int8_t, Char) _(int16_t, Short) _(int, Int) _(int64_t, Long)
#define AT_FORALL_INT_TYPES(_) KILN_FORALL_7(_)
#define AT_FORALL_SCALAR_TYPES(_) KILN_FORALL_7(_) _(float, Float) _(double, Double)
#define AT_FORALL_SCALAR_TYPES_AND(a, _) \
  AT_FORALL_SCALAR_TYPES(_) _(::c10::impl::ScalarTypeToCPPTypeT<::c10::ScalarType::a>, a)
#define AT_FORALL_SCALAR_TYPES_AND2(a, b, _) \
  AT_FORALL_SCALAR_TYPES_AND(a, _) _(::c10::impl::ScalarTypeToCPPTypeT<::c10::ScalarType::b>, b)
#define AT_FORALL_SCALAR_TYPES_AND3(a, b, c, _) \
  AT_FORALL_SCALAR_TYPES_AND2(a, b, _)          \
  _(::c10::impl::ScalarTypeToCPPTypeT<::c10::ScalarType::c>, c)
#define AT_FORALL_COMPLEX_TYPES(_) \
  _(::c10::complex<float>, ComplexFloat) _(::c10::complex<double>, ComplexDouble)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(_) \
  AT_FORALL_SCALAR_TYPES(_)                    \
  _(::c10::Half, Half)                         \
  _(::c10::complex<::c10::Half>, ComplexHalf)  \
  AT_FORALL_COMPLEX_TYPES(_)                   \
  _(bool, Bool)                                \
  _(::c10::BFloat16, BFloat16)                 \
  _(::c10::Float8_e5m2, Float8_e5m2) _(::c10::Float8_e4m3fn, Float8_e4m3fn)

const char* toString(ScalarType type);  // "Float"
int64_t elementSize(ScalarType type);
constexpr bool isQIntType(ScalarType t) {
  return t == ScalarType::QInt8 || t == ScalarType::QUInt8 || t == ScalarType::QInt32 ||
         t == ScalarType::QUInt4x2 || t == ScalarType::QUInt2x4;
}
constexpr bool isFloatingType(ScalarType t) {
  return t == kFloat || t == kDouble || t == kHalf || t == kBFloat16 ||
         (t >= ScalarType::Float8_e5m2 && t <= ScalarType::Float8_e4m3fnuz) ||
         t == ScalarType::Float8_e8m0fnu || t == ScalarType::Float4_e2m1fn_x2;
}
constexpr bool isIntegralType(ScalarType t, bool include_bool) {
  return (static_cast<int>(t) <= 4) || (t >= kUInt16 && t <= kUInt64) ||
         (include_bool && t == kBool);
}
constexpr bool isIntegralType(ScalarType t) { return isIntegralType(t, false); }
constexpr bool isComplexType(ScalarType t) { return t >= kComplexHalf && t <= kComplexDouble; }
constexpr bool isFloat8Type(ScalarType t) {
  return (t >= ScalarType::Float8_e5m2 && t <= ScalarType::Float8_e4m3fnuz) ||
         t == ScalarType::Float8_e8m0fnu;
}
constexpr bool isReducedFloatingType(ScalarType t) {
  return t == kHalf || t == kBFloat16 || isFloat8Type(t) || t == ScalarType::Float4_e2m1fn_x2;
}
bool isSignedType(ScalarType type);
ScalarType toQIntType(ScalarType type);
ScalarType toUnderlying(ScalarType type);
ScalarType toComplexType(ScalarType type);
ScalarType toRealValueType(ScalarType type);
bool canCast(ScalarType from, ScalarType to);

template <class T>
struct CppTypeToScalarType;
namespace impl {
template <ScalarType N>
struct ScalarTypeToCPPType;
}
#define X(cpp, name, number)                                                                 \
  template <>                                                                                \
  struct CppTypeToScalarType<cpp> : std::integral_constant<ScalarType, ScalarType::name> {}; \
  namespace impl {                                                                           \
  template <>                                                                                \
  struct ScalarTypeToCPPType<ScalarType::name> {                                             \
    using type = cpp;                                                                        \
  };                                                                                         \
  }
KILN_SCALAR_TYPES(X)
#undef X
template <>
struct CppTypeToScalarType<long long> : std::integral_constant<ScalarType, ScalarType::Long> {};
namespace impl {
template <ScalarType N>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<N>::type;
}

enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  MKLDNN = 2,
  OPENGL = 3,
  OPENCL = 4,
  IDEEP = 5,
  HIP = 6,
  FPGA = 7,
  MAIA = 8,
  XLA = 9,
  Vulkan = 10,
  Metal = 11,
  XPU = 12,
  MPS = 13,
  Meta = 14,
  HPU = 15,
  VE = 16,
  Lazy = 17,
  IPU = 18,
  MTIA = 19,
  PrivateUse1 = 20,
  COMPILE_TIME_MAX_DEVICE_TYPES = 21
};
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta,
                     kHIP = DeviceType::HIP, kXPU = DeviceType::XPU, kMPS = DeviceType::MPS,
                     kXLA = DeviceType::XLA, kHPU = DeviceType::HPU, kVE = DeviceType::VE,
                     kLazy = DeviceType::Lazy, kIPU = DeviceType::IPU, kMTIA = DeviceType::MTIA,
                     kMAIA = DeviceType::MAIA, kFPGA = DeviceType::FPGA, kMetal = DeviceType::Metal,
                     kVulkan = DeviceType::Vulkan, kPrivateUse1 = DeviceType::PrivateUse1;
constexpr int COMPILE_TIME_MAX_DEVICE_TYPES =
    static_cast<int>(DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);
using DeviceIndex = int8_t;

class Device {
 public:
  using Type = DeviceType;
  constexpr Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {
    if (index < -1 || (type == kCPU && index > 0)) refuse_index();
  }
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}
  constexpr DeviceType type() const { return type_; }
  constexpr DeviceIndex index() const { return index_; }
  void set_index(DeviceIndex index) { index_ = index; }
  constexpr bool has_index() const { return index_ != -1; }
  constexpr bool is_cuda() const { return type_ == kCUDA; }
  constexpr bool is_cpu() const { return type_ == kCPU; }
  constexpr bool is_meta() const { return type_ == kMeta; }
  constexpr bool is_hip() const { return type_ == kHIP; }
  constexpr bool is_xpu() const { return type_ == kXPU; }
  constexpr bool is_mps() const { return type_ == kMPS; }
  constexpr bool is_xla() const { return type_ == kXLA; }
  constexpr bool is_privateuseone() const { return type_ == kPrivateUse1; }
  constexpr bool operator==(const Device& o) const {
    return type_ == o.type_ && index_ == o.index_;
  }
  constexpr bool operator!=(const Device& o) const { return !(*this == o); }
  std::string str() const;  // "cuda:0"

 private:
  [[noreturn]] void refuse_index() const;
  DeviceType type_;
  DeviceIndex index_;
};
std::string DeviceTypeName(DeviceType type, bool lower_case = false);

enum class Layout : int8_t {
  Strided,
  Sparse,
  SparseCsr,
  Mkldnn,
  SparseCsc,
  SparseBsr,
  SparseBsc,
  Jagged
};
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
inline MemoryFormat get_contiguous_memory_format() { return MemoryFormat::Contiguous; }
#define LEGACY_CONTIGUOUS_MEMORY_FORMAT c10::get_contiguous_memory_format()

}  // namespace kc
}  // namespace c10

namespace caffe2 {
inline namespace kc {

// What Tensor::dtype() gives: a scalar type under another name.
class TypeMeta {
 public:
  constexpr TypeMeta(c10::ScalarType type = c10::ScalarType::Undefined) : type_(type) {}
  constexpr c10::ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return static_cast<size_t>(c10::elementSize(type_)); }
  const char* name() const;  // "float"
  template <class T>
  static constexpr TypeMeta Make() {
    return TypeMeta(c10::CppTypeToScalarType<T>::value);
  }
  template <class T>
  bool Match() const {
    return *this == Make<T>();
  }
  friend constexpr bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend constexpr bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }
  friend constexpr bool operator==(TypeMeta a, c10::ScalarType b) { return a.type_ == b; }
  friend constexpr bool operator!=(TypeMeta a, c10::ScalarType b) { return a.type_ != b; }
  friend constexpr bool operator==(c10::ScalarType a, TypeMeta b) { return a == b.type_; }
  friend constexpr bool operator!=(c10::ScalarType a, TypeMeta b) { return a != b.type_; }

 private:
  c10::ScalarType type_;
};

}  // namespace kc
}  // namespace caffe2

namespace c10 {
inline namespace kc {
using caffe2::TypeMeta;
constexpr ScalarType typeMetaToScalarType(TypeMeta type) { return type.toScalarType(); }
constexpr TypeMeta scalarTypeToTypeMeta(ScalarType type) { return type; }
ScalarType promoteTypes(ScalarType a, ScalarType b);
}  // namespace kc
using std::in_place;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::string_view;
}  // namespace c10

namespace at {
using namespace c10;
}
namespace torch {
using namespace at;
using namespace c10;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt,
               kInt64 = at::kLong, kFloat16 = at::kHalf, kFloat32 = at::kFloat,
               kFloat64 = at::kDouble, kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32,
               kI64 = kInt64, kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64;
}  // namespace torch

namespace std {
#define KILN_LIMITS(T, DIGITS, MAX, MIN, LOWEST, EPS, INF, NAN_, DENORM)                  \
  template <>                                                                             \
  class numeric_limits<T> {                                                               \
   public:                                                                                \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false,    \
                          is_exact = false, has_infinity = true, has_quiet_NaN = true;    \
    static constexpr int digits = DIGITS, radix = 2;                                      \
    static constexpr C10_HOST_DEVICE T max() { return T(MAX, T::from_bits()); }           \
    static constexpr C10_HOST_DEVICE T min() { return T(MIN, T::from_bits()); }           \
    static constexpr C10_HOST_DEVICE T lowest() { return T(LOWEST, T::from_bits()); }     \
    static constexpr C10_HOST_DEVICE T epsilon() { return T(EPS, T::from_bits()); }       \
    static constexpr C10_HOST_DEVICE T infinity() { return T(INF, T::from_bits()); }      \
    static constexpr C10_HOST_DEVICE T quiet_NaN() { return T(NAN_, T::from_bits()); }    \
    static constexpr C10_HOST_DEVICE T denorm_min() { return T(DENORM, T::from_bits()); } \
  };
KILN_LIMITS(c10::Half, 11, 0x7BFF, 0x0400, 0xFBFF, 0x1400, 0x7C00, 0x7E00, 0x0001)
KILN_LIMITS(c10::BFloat16, 8, 0x7F7F, 0x0080, 0xFF7F, 0x3C00, 0x7F80, 0x7FC0, 0x0001)
#undef KILN_LIMITS
template <class T>
class numeric_limits<c10::complex<T>> : public numeric_limits<T> {};
}  // namespace std
