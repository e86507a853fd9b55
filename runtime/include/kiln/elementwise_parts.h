// SPDX-License-Identifier: Apache-2.0
// What do the kernels of an elementwise loop share? Vectors of operands, offsets over many
// dimensions, and the functor applied.
//
// Every kernel loads all operands of all its elements before the first use, so that many bytes are
// under way. None assumes that the output and an input are apart: an input may be the output
// itself.
#pragma once

#include <kiln/element.h>
#include <kiln/layout.h>
#include <kiln/spec.h>

// Threads of a block, 16-byte vectors of each operand a thread has under way in the contiguous and
// in the rows kernel, elements a thread in the strided kernels. The defaults were the best on an
// H200 (benchmarks/kernels.py --sweep).
#ifndef KILN_ELEMENTWISE_THREADS
#define KILN_ELEMENTWISE_THREADS 128
#endif
#ifndef KILN_ELEMENTWISE_VECTORS
#define KILN_ELEMENTWISE_VECTORS 1
#endif
#ifndef KILN_ELEMENTWISE_ROW_VECTORS
#define KILN_ELEMENTWISE_ROW_VECTORS 1
#endif
#ifndef KILN_ELEMENTWISE_STRIDED
#define KILN_ELEMENTWISE_STRIDED 4
#endif

namespace kiln {
namespace detail {

constexpr int kThreads = KILN_ELEMENTWISE_THREADS;
constexpr int kVectorBytes = 16;
constexpr int kTileSide = 32, kTileRows = 8;

template <class T>
using BitsOf = typename Element<T>::Bits;

// Elements of one vector: the widest type fills 16 bytes, the others less.
template <class Out, class... In>
KILN_BOTH constexpr int vector_elements() {
  size_t widest = sizeof(BitsOf<Out>);
  ((widest = sizeof(BitsOf<In>) > widest ? sizeof(BitsOf<In>) : widest), ...);
  return static_cast<int>(kVectorBytes / widest);
}

// Division of numbers below 2^31 by a constant known at launch: a multiplication and a shift
// (Granlund and Montgomery).
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0;
  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    while ((1ull << shift) < divisor) shift++;
    magic = static_cast<uint32_t>(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1);
  }
  __device__ __forceinline__ uint32_t quotient(uint32_t n) const {
    return (__umulhi(n, magic) + n) >> shift;
  }
};

// The dimensions outside of those that a kernel treats itself; offsets are in elements, K is the
// number of operands.
template <int K>
struct Outer {
  int ndim = 0;
  Divider sizes[Sizes::kMost];
  uint32_t strides[Sizes::kMost][K];

  // For U indices at once: the constants of a dimension are read once for all of them.
  template <int U>
  __device__ __forceinline__ void add_offsets(uint32_t (&index)[U],
                                              uint32_t (&offsets)[U][K]) const {
#pragma unroll 1
    for (int d = 0; d < ndim; d++) {
      const Divider size = sizes[d];
#pragma unroll
      for (int u = 0; u < U; u++) {
        const uint32_t next = d == ndim - 1 ? 0 : size.quotient(index[u]);
        const uint32_t at = index[u] - next * size.divisor;
#pragma unroll
        for (int k = 0; k < K; k++) offsets[u][k] += at * strides[d][k];
        index[u] = next;
      }
    }
  }
};

template <int K>
struct Pointers {
  char* at[K];
};

// N elements of one operand.
template <class T, int N>
struct alignas(N * sizeof(BitsOf<T>) > 16 ? 16 : N * sizeof(BitsOf<T>)) Chunk {
  BitsOf<T> at[N];
};

// One chunk for each input.
template <int N, class... In>
struct Chunks;
template <int N>
struct Chunks<N> {};
template <int N, class Head, class... Tail>
struct Chunks<N, Head, Tail...> {
  Chunk<Head, N> head;
  Chunks<N, Tail...> tail;
  template <int K>
  __device__ __forceinline__ auto& get() {
    if constexpr (K == 0)
      return head;
    else
      return tail.template get<K - 1>();
  }
};

template <class T>
__device__ __forceinline__ BitsOf<T>& element(const char* base, int64_t index) {
  return reinterpret_cast<BitsOf<T>*>(const_cast<char*>(base))[index];
}

// By how many bytes an address misses the alignment of a vector of N elements.
template <class T, int N>
__device__ __forceinline__ uint32_t misalignment(const void* at) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at)) %
         (N * static_cast<uint32_t>(sizeof(BitsOf<T>)));
}

template <class Out, class R>
__device__ __forceinline__ BitsOf<Out> packed(const R& result) {
  return Element<Out>::pack(converted<typename Element<Out>::Value>(result));
}

template <class Out, class F, int N, class... In, int... K>
__device__ __forceinline__ BitsOf<Out> apply(const F& f, Chunks<N, In...>& in, int i, Index<K...>) {
  return packed<Out>(f(Element<In>::unpack(in.template get<K>().at[i])...));
}

}  // namespace detail
}  // namespace kiln
