// SPDX-License-Identifier: Apache-2.0
// How does a kernel reach the elements of a tensor? Through a View, passed by value: pointer,
// sizes, strides.
#pragma once

#include <kiln/types.h>

namespace kiln {

// An index check is code that nothing reads: ptxas drops it, kiln's engine runs it
// (src/ptx/view_check.h). A comment would be cheaper to write, but fatbinary strips comments. It
// is in operator() itself, one level of inlining away from the author's line, because PTX names
// the lines of no other caller for certain.
#if defined(__CUDA_ARCH__) && !defined(KILN_NO_CHECKS)
#define KILN_CHECK_INDEX(d)                                                                    \
  if constexpr (N > d)                                                                         \
  asm volatile("{.reg .pred kiln_bounds_" #d                                                   \
               "; .reg .b64 kiln_base; "                                                       \
               "setp.ge.u64 kiln_bounds_" #d ", %0, %1; mov.b64 kiln_base, %2;}" ::"l"(at[d]), \
               "l"(sizes[d]), "l"(data))
#else
#define KILN_CHECK_INDEX(d) static_cast<void>(0)
#endif

template <class T, int N>
struct View {
  static_assert(N <= 16, "a View has at most 16 dimensions");
  T* data;
  int64_t sizes[N];
  int64_t strides[N];

  KILN_BOTH int64_t size(int dimension) const { return sizes[dimension]; }
  KILN_BOTH int64_t stride(int dimension) const { return strides[dimension]; }

  template <class... I>
  KILN_BOTH T& operator()(I... index) const {
    static_assert(sizeof...(I) == N, "View<T, N>: wrong number of indices. Give N of them");
    const int64_t at[N] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int d = 0; d < N; d++) offset += at[d] * strides[d];
    KILN_CHECK_INDEX(0);
    KILN_CHECK_INDEX(1);
    KILN_CHECK_INDEX(2);
    KILN_CHECK_INDEX(3);
    KILN_CHECK_INDEX(4);
    KILN_CHECK_INDEX(5);
    KILN_CHECK_INDEX(6);
    KILN_CHECK_INDEX(7);
    KILN_CHECK_INDEX(8);
    KILN_CHECK_INDEX(9);
    KILN_CHECK_INDEX(10);
    KILN_CHECK_INDEX(11);
    KILN_CHECK_INDEX(12);
    KILN_CHECK_INDEX(13);
    KILN_CHECK_INDEX(14);
    KILN_CHECK_INDEX(15);
    return data[offset];
  }
};
#undef KILN_CHECK_INDEX

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
