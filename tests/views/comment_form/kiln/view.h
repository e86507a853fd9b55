// SPDX-License-Identifier: Apache-2.0
// What did index checks cost as comments? kiln/view.h in the form that travelled in PTX comments,
// kept to compare with: today's form must make the same machine code. A comment costs no
// instruction, but its operands pin values.
#pragma once

#include <kiln/types.h>

namespace kiln {

#ifdef __CUDA_ARCH__
#define KILN_BOUNDS(index, size, dimension)                                       \
  asm volatile("// kiln.bounds %0, %1, %2;" ::"l"(static_cast<long long>(index)), \
               "l"(static_cast<long long>(size)), "n"(dimension))
#else
#define KILN_BOUNDS(index, size, dimension) static_cast<void>(0)
#endif

template <class T, int N>
struct View {
  T* data;
  int64_t sizes[N];
  int64_t strides[N];

  KILN_BOTH int64_t size(int dimension) const { return sizes[dimension]; }
  KILN_BOTH int64_t stride(int dimension) const { return strides[dimension]; }

  template <class... I>
  KILN_BOTH T& operator()(I... index) const {
    static_assert(sizeof...(I) == N, "a View<T, N> takes N indices");
    const int64_t at[N] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int d = 0; d < N; d++) offset += at[d] * strides[d];
    check(at);
    return data[offset];
  }

 private:
  KILN_BOTH void check(const int64_t (&at)[N]) const {
    if constexpr (N > 0) KILN_BOUNDS(at[0], sizes[0], 0);
    if constexpr (N > 1) KILN_BOUNDS(at[1], sizes[1], 1);
    if constexpr (N > 2) KILN_BOUNDS(at[2], sizes[2], 2);
    if constexpr (N > 3) KILN_BOUNDS(at[3], sizes[3], 3);
    if constexpr (N > 4) KILN_BOUNDS(at[4], sizes[4], 4);
    (void)at;
  }
};

#ifdef __CUDACC__
// The index of this thread in a one-dimensional grid. 64 bits: a tensor may have more than 2^31
// elements.
__device__ __forceinline__ int64_t global_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_threads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}
#endif

}  // namespace kiln
