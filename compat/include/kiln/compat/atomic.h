// SPDX-License-Identifier: Apache-2.0
// What does ATen/cuda/Atomic.cuh give to device code? Atomic sums, products, minima and maxima of
// every type, by comparing and swapping the word around the value where CUDA has no instruction for
// it.
#pragma once

#include <kiln/compat/types.h>

#ifdef __CUDACC__
namespace kiln_compat_detail {

// Puts f(what is there) at `address`; gives what was there.
template <class T, class F>
__device__ __forceinline__ T atomically(T* address, const F& f) {
  if constexpr (sizeof(T) == 8) {
    auto* word = reinterpret_cast<unsigned long long*>(address);
    unsigned long long old = *word, seen;
    do {
      seen = old;
      T value;
      memcpy(&value, &seen, sizeof value);
      value = f(value);
      unsigned long long wanted;
      memcpy(&wanted, &value, sizeof value);
      old = atomicCAS(word, seen, wanted);
    } while (old != seen);
    T before;
    memcpy(&before, &old, sizeof before);
    return before;
  } else {
    auto* word = reinterpret_cast<unsigned*>(reinterpret_cast<size_t>(address) & ~size_t(3));
    const unsigned shift = 8 * (reinterpret_cast<size_t>(address) & 3);
    const unsigned mask = sizeof(T) == 4 ? ~0u : ((1u << (8 * sizeof(T) % 32)) - 1) << shift;
    unsigned old = *word, seen;
    T value, before;
    do {
      seen = old;
      unsigned bits = (seen & mask) >> shift;
      memcpy(&before, &bits, sizeof before);
      value = f(before);
      bits = 0;
      memcpy(&bits, &value, sizeof value);
      old = atomicCAS(word, seen, (seen & ~mask) | (bits << shift));
    } while (old != seen);
    return before;
  }
}

template <class T>
__device__ __forceinline__ T larger(T a, T b) {  // a NaN is larger than all
  return a != a ? a : b != b ? b : a < b ? b : a;
}
template <class T>
__device__ __forceinline__ T smaller(T a, T b) {
  return a != a ? a : b != b ? b : b < a ? b : a;
}

}  // namespace kiln_compat_detail

#define KILN_ATOMIC(T, name, expression)                                                      \
  inline __device__ T gpuAtomic##name(T* address, T value) {                                  \
    return kiln_compat_detail::atomically(address,                                            \
                                          [=](T old) { return static_cast<T>(expression); }); \
  }
#define KILN_ATOMICS(T)                                          \
  KILN_ATOMIC(T, Mul, old* value)                                \
  KILN_ATOMIC(T, Max, kiln_compat_detail::larger<T>(old, value)) \
  KILN_ATOMIC(T, Min, kiln_compat_detail::smaller<T>(old, value))
// Those that CUDA has no atomicAdd for, under both names.
#define KILN_ATOMIC_ADD(T)         \
  KILN_ATOMIC(T, Add, old + value) \
  inline __device__ T atomicAdd(T* address, T value) { return gpuAtomicAdd(address, value); }
KILN_ATOMIC_ADD(c10::Half)
KILN_ATOMIC_ADD(c10::BFloat16)
KILN_ATOMIC_ADD(uint8_t)
KILN_ATOMIC_ADD(int8_t)
KILN_ATOMIC_ADD(int16_t)
inline __device__ void gpuAtomicAdd(bool* address, bool value) {
  kiln_compat_detail::atomically(address, [=](bool old) { return old || value; });
}
inline __device__ void atomicAdd(bool* address, bool value) { gpuAtomicAdd(address, value); }
inline __device__ float gpuAtomicAdd(float* address, float value) {
  return atomicAdd(address, value);
}
inline __device__ double gpuAtomicAdd(double* address, double value) {
  return atomicAdd(address, value);
}
inline __device__ int gpuAtomicAdd(int* address, int value) { return atomicAdd(address, value); }
inline __device__ void gpuAtomicAdd(int64_t* address, int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value));
}
inline __device__ void atomicAdd(int64_t* address, int64_t value) { gpuAtomicAdd(address, value); }
template <class T>
inline __device__ void gpuAtomicAdd(c10::complex<T>* address, c10::complex<T> value) {
  gpuAtomicAdd(&address->real_, value.real_);
  gpuAtomicAdd(&address->imag_, value.imag_);
}
template <class T>
inline __device__ void gpuAtomicAddNoReturn(T* address, T value) {
  gpuAtomicAdd(address, value);
}
KILN_ATOMICS(c10::Half)
KILN_ATOMICS(c10::BFloat16)
KILN_ATOMICS(float)
KILN_ATOMICS(double)
KILN_ATOMICS(uint8_t)
KILN_ATOMICS(int8_t)
KILN_ATOMICS(int16_t)
KILN_ATOMICS(int)
KILN_ATOMICS(int64_t)
#undef KILN_ATOMICS
#undef KILN_ATOMIC_ADD
#undef KILN_ATOMIC
#endif
