// SPDX-License-Identifier: Apache-2.0
// What do ATen/cuda/DeviceUtils.cuh and detail/KernelUtils.h give to device code? Shuffles by THC's
// names, a loop over more elements than there are threads, and the number of blocks for it.
#pragma once

#include <kiln/compat/check.h>

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                              \
  int64_t kiln_first_##i = ((int64_t)blockIdx.x) * blockDim.x + threadIdx.x; \
  for (index_type i = kiln_first_##i; kiln_first_##i < (n);                  \
       kiln_first_##i += blockDim.x * gridDim.x, i = kiln_first_##i)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace at {
namespace cuda {
namespace detail {
inline namespace kc {
constexpr int CUDA_NUM_THREADS = 1024;
inline int GET_BLOCKS(int64_t n, int64_t threads = CUDA_NUM_THREADS) {
  TORCH_INTERNAL_ASSERT(n > 0, "CUDA kernel launch blocks must be positive, but got N=", n);
  const int64_t blocks = (n - 1) / threads + 1;
  TORCH_INTERNAL_ASSERT(blocks <= INT32_MAX, "Can't schedule too many blocks on CUDA device");
  return static_cast<int>(blocks);
}
}  // namespace kc
}  // namespace detail
}  // namespace cuda
}  // namespace at

#ifdef __CUDACC__
inline namespace kiln_compat_device {
template <class T>
__device__ __forceinline__ T WARP_SHFL(T value, int lane, int width = 32,
                                       unsigned mask = 0xffffffff) {
  return __shfl_sync(mask, value, lane, width);
}
template <class T>
__device__ __forceinline__ T WARP_SHFL_XOR(T value, int lane, int width = 32,
                                           unsigned mask = 0xffffffff) {
  return __shfl_xor_sync(mask, value, lane, width);
}
template <class T>
__device__ __forceinline__ T WARP_SHFL_DOWN(T value, unsigned delta, int width = 32,
                                            unsigned mask = 0xffffffff) {
  return __shfl_down_sync(mask, value, delta, width);
}
template <class T>
__device__ __forceinline__ c10::complex<T> WARP_SHFL_DOWN(c10::complex<T> value, unsigned delta,
                                                          int width = 32,
                                                          unsigned mask = 0xffffffff) {
  return c10::complex<T>(__shfl_down_sync(mask, value.real_, delta, width),
                         __shfl_down_sync(mask, value.imag_, delta, width));
}
template <class T>
__device__ __forceinline__ T WARP_SHFL_UP(T value, unsigned delta, int width = 32,
                                          unsigned mask = 0xffffffff) {
  return __shfl_up_sync(mask, value, delta, width);
}
__device__ __forceinline__ unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff) {
  return __ballot_sync(mask, predicate);
}
}  // namespace kiln_compat_device
#endif
