// SPDX-License-Identifier: Apache-2.0
// What does a kernel compute, by C++ alone? g++ compiles the source of a CUDA program with this
// header in front of it: a launch is a loop over blocks and threads, one after the other. For
// kernels whose threads do not wait for each other, and for the functions that the generators in
// tools/ use; what C++ leaves open is decided here as the PTX manual decides it.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#define ON_HOST 1
#define __global__ static
#define __device__ static
#define __constant__ static
#define __host__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;
using std::isnan;

template <class... Arguments>
struct HostLaunch {
  void (*kernel)(Arguments...);
  dim3 grid, block;

  void operator()(Arguments... arguments) const {
    gridDim = grid, blockDim = block;
    dim3 b, t;
    for (b.z = 0; b.z < grid.z; ++b.z)
      for (b.y = 0; b.y < grid.y; ++b.y)
        for (b.x = 0; b.x < grid.x; ++b.x) {
          blockIdx = b;
          for (t.z = 0; t.z < block.z; ++t.z)
            for (t.y = 0; t.y < block.y; ++t.y)
              for (t.x = 0; t.x < block.x; ++t.x) {
                threadIdx = t;
                kernel(arguments...);
              }
        }
  }
};
template <class... Arguments>
HostLaunch<Arguments...> on_host(void (*kernel)(Arguments...), dim3 grid, dim3 block) {
  return {kernel, grid, block};
}
#define LAUNCH(kernel, grid, block) on_host(kernel, grid, block)

static inline unsigned linear_thread() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
static inline unsigned lane_of_warp() { return linear_thread() % 32; }
static inline unsigned warp_of_block() { return linear_thread() / 32; }

// Values of 16 bits are only copied here; arithmetic on them is not for this header.
template <int kExponentBits>
struct SmallFloat {
  uint16_t bits;
  SmallFloat() = default;
  explicit SmallFloat(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    constexpr int kDropped = 8 + kExponentBits;  // of 23 bits
    if constexpr (kExponentBits == 8) {
      bits = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
    } else {
      const float size = std::fabs(value);
      const uint16_t sign = static_cast<uint16_t>(word >> 16 & 0x8000);
      if (size >= 65520.0f) {
        bits = sign | 0x7c00;
      } else if (size < 6.103515625e-5f) {  // a multiple of 2^-24
        bits = sign | static_cast<uint16_t>(std::nearbyint(size * 16777216.0f));
      } else {
        const uint32_t low = std::bit_cast<uint32_t>(size) - ((127u - 15u) << 23);
        bits = sign | static_cast<uint16_t>((low + 0xfff + (low >> kDropped & 1)) >> kDropped);
      }
    }
  }
  explicit operator float() const {
    if constexpr (kExponentBits == 8) return std::bit_cast<float>(uint32_t{bits} << 16);
    const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    const float sign = bits & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
};
using __half = SmallFloat<5>;
using __nv_bfloat16 = SmallFloat<8>;

#define VECTOR(T, kind, count)             \
  struct alignas(sizeof(T) * count) kind { \
    T VECTOR_PARTS_##count;                \
  };                                       \
  template <class... Parts>                \
  kind make_##kind(Parts... parts) {       \
    return {static_cast<T>(parts)...};     \
  }
#define VECTOR_PARTS_2 x, y
#define VECTOR_PARTS_4 x, y, z, w
VECTOR(float, float2, 2)
VECTOR(float, float4, 4)
VECTOR(double, double2, 2)
VECTOR(int, int4, 4)
VECTOR(unsigned, uint2, 2)
VECTOR(unsigned char, uchar4, 4)
VECTOR(short, short2, 2)
#undef VECTOR
#undef VECTOR_PARTS_2
#undef VECTOR_PARTS_4

// ---- memory -------------------------------------------------------------------------------------

using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
static inline const char* cudaGetErrorString(cudaError_t) { return "out of memory"; }
static inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
template <class T>
cudaError_t cudaMalloc(T** at, size_t bytes) {
  *at = static_cast<T*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  return *at ? cudaSuccess : 2;
}
template <class T>
cudaError_t cudaMallocManaged(T** at, size_t bytes) {
  return cudaMalloc(at, bytes);
}
static inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

// ---- conversions --------------------------------------------------------------------------------

// PTX ISA 9.7.9.22, cvt: a float that does not fit becomes the nearest integer; NaN becomes 0, or
// the lowest or highest value of 64 bits. Narrower types are reached through 32 bits.
template <class T, class S>
static inline T as(S value) {
  if constexpr (std::is_floating_point_v<S> && std::is_integral_v<T>) {
    using Wide = std::conditional_t<(sizeof(T) < 4), int, T>;
    using Limits = std::numeric_limits<Wide>;
    if (value != value) {
      if constexpr (sizeof(Wide) < 8) return 0;
      return static_cast<T>(uint64_t{1} << 63);
    }
    const S top = std::ldexp(S{1}, Limits::digits);
    if (value >= top) return static_cast<T>(Limits::max());
    if (value <= static_cast<S>(Limits::min())) return static_cast<T>(Limits::min());
    return static_cast<T>(static_cast<Wide>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class To, class From>
static inline To bits_of(From value) {
  return std::bit_cast<To>(value);
}
static inline float __uint_as_float(unsigned bits) { return bits_of<float>(bits); }
static inline unsigned __float_as_uint(float value) { return bits_of<unsigned>(value); }
static inline float __int_as_float(int bits) { return bits_of<float>(bits); }
static inline int __float_as_int(float value) { return bits_of<int>(value); }
static inline double __longlong_as_double(long long bits) { return bits_of<double>(bits); }
static inline long long __double_as_longlong(double value) { return bits_of<long long>(value); }

// ---- integers -----------------------------------------------------------------------------------

#define KILN_INTEGER(T)                                   \
  static inline T min(T a, T b) { return a < b ? a : b; } \
  static inline T max(T a, T b) { return a > b ? a : b; }
KILN_INTEGER(int)
KILN_INTEGER(unsigned)
KILN_INTEGER(long)
KILN_INTEGER(unsigned long)
KILN_INTEGER(long long)
KILN_INTEGER(unsigned long long)
#undef KILN_INTEGER

static inline int __popc(unsigned a) { return std::popcount(a); }
static inline int __popcll(unsigned long long a) { return std::popcount(a); }
static inline int __clz(int a) { return std::countl_zero(static_cast<unsigned>(a)); }
static inline int __clzll(long long a) {
  return std::countl_zero(static_cast<unsigned long long>(a));
}
static inline int __ffs(int a) { return a ? std::countr_zero(static_cast<unsigned>(a)) + 1 : 0; }
static inline int __ffsll(long long a) {
  return a ? std::countr_zero(static_cast<unsigned long long>(a)) + 1 : 0;
}
static inline unsigned __brev(unsigned a) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (a >> i & 1) << (31 - i);
  return out;
}
static inline unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
         __brev(static_cast<unsigned>(a >> 32));
}
static inline int __mulhi(int a, int b) { return static_cast<int>(int64_t{a} * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
static inline int low24(int a) { return static_cast<int>(static_cast<unsigned>(a) << 8) >> 8; }
static inline int __mul24(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(low24(a)) * static_cast<unsigned>(low24(b)));
}
static inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
static inline int __hadd(int a, int b) { return static_cast<int>((int64_t{a} + b) >> 1); }
static inline int __rhadd(int a, int b) { return static_cast<int>((int64_t{a} + b + 1) >> 1); }
static inline unsigned __sad(int a, int b, unsigned c) {
  const int64_t difference = int64_t{a} - b;
  return c + static_cast<unsigned>(difference < 0 ? -difference : difference);
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i)
    out |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return out;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>(((uint64_t{high} << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  const uint64_t both = uint64_t{high} << 32 | low;
  return by >= 32 ? low : static_cast<unsigned>(both << by >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (by & 31));
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  const uint64_t both = uint64_t{high} << 32 | low;
  return by >= 32 ? high : static_cast<unsigned>(both >> by);
}
// Shifts by any amount, as PTX has them: 32 and more leave no bit, or the sign.
static inline unsigned shl_any(unsigned a, unsigned by) { return by < 32 ? a << by : 0; }
static inline int shr_any(int a, unsigned by) { return a >> (by < 32 ? by : 31); }
static inline int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned>(static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i));
  return static_cast<int>(sum);
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}
static inline int __dp2a_lo(int a, int b, int c) {
  const auto part = [&](int i) {
    return static_cast<unsigned>(static_cast<int16_t>(a >> 16 * i) *
                                 static_cast<int8_t>(b >> 8 * i));
  };
  return static_cast<int>(static_cast<unsigned>(c) + part(0) + part(1));
}

// Parts of 8 or 16 bits, each by itself.
template <class Part, class Compute>
static inline unsigned in_parts(unsigned a, unsigned b, Compute compute) {
  constexpr int kBits = sizeof(Part) * 8;
  unsigned out = 0;
  for (int i = 0; i < 32; i += kBits) {
    const auto value = compute(static_cast<Part>(a >> i), static_cast<Part>(b >> i));
    out |= (static_cast<unsigned>(value) & ((1u << kBits) - 1)) << i;
  }
  return out;
}
static inline unsigned __vadd4(unsigned a, unsigned b) {
  return in_parts<uint8_t>(a, b, [](int x, int y) { return x + y; });
}
static inline unsigned __vsub2(unsigned a, unsigned b) {
  return in_parts<uint16_t>(a, b, [](int x, int y) { return x - y; });
}
static inline unsigned __vmaxu4(unsigned a, unsigned b) {
  return in_parts<uint8_t>(a, b, [](int x, int y) { return x > y ? x : y; });
}
static inline unsigned __vmins2(unsigned a, unsigned b) {
  return in_parts<int16_t>(a, b, [](int x, int y) { return x < y ? x : y; });
}
static inline unsigned __vcmpgtu4(unsigned a, unsigned b) {
  return in_parts<uint8_t>(a, b, [](int x, int y) { return x > y ? 0xff : 0; });
}
static inline unsigned __vabsdiffu4(unsigned a, unsigned b) {
  return in_parts<uint8_t>(a, b, [](int x, int y) { return x > y ? x - y : y - x; });
}
static inline unsigned __vavgu4(unsigned a, unsigned b) {
  return in_parts<uint8_t>(a, b, [](int x, int y) { return (x + y + 1) >> 1; });
}
static inline unsigned __vaddss4(unsigned a, unsigned b) {
  return in_parts<int8_t>(a, b, [](int x, int y) { return std::clamp(x + y, -128, 127); });
}
static inline unsigned __vsetltu4(unsigned a, unsigned b) {
  return in_parts<uint8_t>(a, b, [](int x, int y) { return x < y ? 1 : 0; });
}

// ---- floats -------------------------------------------------------------------------------------

// -0 is less than 0; of a number and a NaN, the number.
template <class T>
static inline T lesser(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
static inline T greater(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
#define fminf lesser<float>
#define fmaxf greater<float>
#define fmin lesser<double>
#define fmax greater<double>
static inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

// g++ -O2 moves arithmetic across fesetround(), volatile operands or not; memory that an asm may
// change holds it in place.
template <class Compute>
[[gnu::noinline]] static float rounded(int mode, float a, float b, Compute compute) {
  const int before = std::fegetround();
  std::fesetround(mode);
  asm volatile("" : "+m"(a), "+m"(b) : : "memory");
  float out = compute(a, b);
  asm volatile("" : "+m"(out) : : "memory");
  std::fesetround(before);
  return out;
}
static inline float __fadd_rz(float a, float b) {
  return rounded(FE_TOWARDZERO, a, b, [](float x, float y) { return x + y; });
}
static inline float __fmul_ru(float a, float b) {
  return rounded(FE_UPWARD, a, b, [](float x, float y) { return x * y; });
}
static inline float __fsub_rd(float a, float b) {
  return rounded(FE_DOWNWARD, a, b, [](float x, float y) { return x - y; });
}

// ---- atomics: one thread runs at a time ---------------------------------------------------------

#define KILN_ATOMIC(name, ...)                   \
  template <class T>                             \
  T name(T* at, std::type_identity_t<T> value) { \
    const T before = *at;                        \
    *at = __VA_ARGS__;                           \
    return before;                               \
  }
KILN_ATOMIC(atomicAdd, before + value)
KILN_ATOMIC(atomicSub, before - value)
KILN_ATOMIC(atomicMin, before < value ? before : value)
KILN_ATOMIC(atomicMax, before > value ? before : value)
KILN_ATOMIC(atomicAnd, before& value)
KILN_ATOMIC(atomicOr, before | value)
KILN_ATOMIC(atomicXor, before ^ value)
KILN_ATOMIC(atomicExch, value)
#undef KILN_ATOMIC
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  const T before = *at;
  if (before == compare) *at = value;
  return before;
}
