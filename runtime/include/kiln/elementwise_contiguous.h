// SPDX-License-Identifier: Apache-2.0
// How is an elementwise loop run when every operand is contiguous? In 16-byte vectors; an input that is not aligned to 16 bytes is read as the
// aligned vectors around it, which are shifted into place.
#pragma once

#include <kiln/elementwise_parts.h>

namespace kiln {
namespace detail {

template <int N, class... In, int K, int... I>
__device__ __forceinline__ void load_vectors(Chunks<N, In...>& to, const Pointers<K>& p, int64_t at, Index<I...>) {
  ((to.template get<I>() = *reinterpret_cast<const Chunk<In, N>*>(p.at[I + 1] + at * sizeof(BitsOf<In>))), ...);
}

template <class Out, class... In, class F, int K, int... I>
__device__ __forceinline__ void compute_single(const F& f, const Pointers<K>& p, int64_t i, Index<I...>) {
  element<Out>(p.at[0], i) = packed<Out>(f(Element<In>::unpack(element<In>(p.at[I + 1], i))...));
}

// A block takes a tile; the last one, when it is not whole, element by element.
template <class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads) contiguous_kernel(F f, Pointers<1 + sizeof...(In)> p, int64_t n) {
  constexpr int kElements = vector_elements<Out, In...>(), kVectors = KILN_ELEMENTWISE_VECTORS;
  constexpr int kTile = kThreads * kVectors * kElements;
  constexpr IndexUpTo<sizeof...(In)> kInputs{};
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  if (n - first < kTile) {
    const int left = static_cast<int>(n - first);
    for (int i = static_cast<int>(threadIdx.x); i < left; i += kThreads)
      compute_single<Out, In...>(f, p, first + i, kInputs);
    return;
  }
  Chunks<kElements, In...> in[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; v++) load_vectors(in[v], p, first + (v * kThreads + threadIdx.x) * kElements, kInputs);
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    Chunk<Out, kElements> result;
#pragma unroll
    for (int i = 0; i < kElements; i++) result.at[i] = apply<Out>(f, in[v], i, kInputs);
    const int64_t at = first + (v * kThreads + threadIdx.x) * kElements;
    *reinterpret_cast<Chunk<Out, kElements>*>(p.at[0] + at * sizeof(BitsOf<Out>)) = result;
  }
}

}  // namespace detail
}  // namespace kiln
