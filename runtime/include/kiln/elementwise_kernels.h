// SPDX-License-Identifier: Apache-2.0
// Which kernels run an elementwise loop? Five, from the fastest to the most general: contiguous, rows, tiles, strided and strided with
// conversion. kiln/elementwise.h chooses among them.
//
// All load every operand of all their elements before the first use, so that many bytes are under way. None assumes that the output
// and an input are apart: an input may be the output itself.
#pragma once

#include <kiln/element.h>
#include <kiln/layout.h>
#include <kiln/spec.h>

// Threads of a block, 16-byte vectors of each operand a thread has under way in the contiguous and in the rows kernel, elements
// a thread in the strided kernels. The defaults were the best on an H200 (benchmarks/kernels.py --sweep).
#ifndef KILN_ELEMENTWISE_THREADS
#define KILN_ELEMENTWISE_THREADS 256
#endif
#ifndef KILN_ELEMENTWISE_VECTORS
#define KILN_ELEMENTWISE_VECTORS 2
#endif
#ifndef KILN_ELEMENTWISE_ROW_VECTORS
#define KILN_ELEMENTWISE_ROW_VECTORS 2
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
constexpr int vector_elements() {
  size_t widest = sizeof(BitsOf<Out>);
  ((widest = sizeof(BitsOf<In>) > widest ? sizeof(BitsOf<In>) : widest), ...);
  return static_cast<int>(kVectorBytes / widest);
}

// Division of numbers below 2^31 by a constant known at launch: a multiplication and a shift (Granlund and Montgomery).
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0;
  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    while ((1ull << shift) < divisor) shift++;
    magic = static_cast<uint32_t>(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1);
  }
  __device__ __forceinline__ uint32_t quotient(uint32_t n) const { return (__umulhi(n, magic) + n) >> shift; }
};

// The dimensions outside of those that a kernel treats itself; offsets are in elements.
template <int K>
struct Outer {
  int ndim = 0;
  Divider sizes[Sizes::kMost];
  uint32_t strides[Sizes::kMost][K];

  __device__ __forceinline__ void add_offsets(uint32_t index, uint32_t (&offsets)[K]) const {
#pragma unroll 1
    for (int d = 0; d < ndim; d++) {
      const uint32_t next = d == ndim - 1 ? 0 : sizes[d].quotient(index);
      const uint32_t at = index - next * sizes[d].divisor;
#pragma unroll
      for (int k = 0; k < K; k++) offsets[k] += at * strides[d][k];
      index = next;
    }
  }
};

template <int K>
struct Pointers {
  char* at[K];
};

// The N elements of one operand that a thread has loaded.
template <class T, int N>
struct alignas(N * sizeof(BitsOf<T>) > 16 ? 16 : N * sizeof(BitsOf<T>)) Chunk {
  BitsOf<T> at[N];
};

// One chunk for each input; get<K>() and a functor applied across them.
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

template <class Out, class R>
__device__ __forceinline__ BitsOf<Out> packed(const R& result) {
  return Element<Out>::pack(converted<typename Element<Out>::Value>(result));
}

template <class Out, class... In, class F, int N, int... K>
__device__ __forceinline__ BitsOf<Out> apply(const F& f, Chunks<N, In...>& in, int i, Index<K...>) {
  return packed<Out>(f(Element<In>::unpack(in.template get<K>().at[i])...));
}

template <class T>
__device__ __forceinline__ const BitsOf<T>* element(const char* base, int64_t index) {
  return reinterpret_cast<const BitsOf<T>*>(base) + index;
}

// out[i] = f(in[i]...) for one element, all operands contiguous.
template <class Out, class... In, class F, int K, int... I>
__device__ __forceinline__ void single(const F& f, const Pointers<K>& p, int64_t i, Index<I...>) {
  *const_cast<BitsOf<Out>*>(element<Out>(p.at[0], i)) =
      packed<Out>(f(Element<In>::unpack(*element<In>(p.at[I + 1], i))...));
}

template <class T, int N>
__device__ __forceinline__ void load_aligned(Chunk<T, N>& to, const char* from) {
  to = *reinterpret_cast<const Chunk<T, N>*>(from);
}

// All operands contiguous, aligned to their vectors. A block takes a tile; the last one, when it is not whole, element by element.
template <class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads) contiguous_kernel(F f, Pointers<1 + sizeof...(In)> p, int64_t n) {
  constexpr int kElements = vector_elements<Out, In...>(), kVectors = KILN_ELEMENTWISE_VECTORS;
  constexpr int kTile = kThreads * kVectors * kElements;
  constexpr auto kInputs = IndexUpTo<sizeof...(In)>{};
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  if (n - first < kTile) {
    const int left = static_cast<int>(n - first);
    for (int i = static_cast<int>(threadIdx.x); i < left; i += kThreads) single<Out, In...>(f, p, first + i, kInputs);
    return;
  }
  Chunks<kElements, In...> in[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    const int64_t at = first + (v * kThreads + threadIdx.x) * kElements;
    [&]<int... K>(Index<K...>) {
      (load_aligned<In>(in[v].template get<K>(), p.at[K + 1] + at * sizeof(BitsOf<In>)), ...);
    }(kInputs);
  }
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    const int64_t at = first + (v * kThreads + threadIdx.x) * kElements;
    Chunk<Out, kElements> result;
#pragma unroll
    for (int i = 0; i < kElements; i++) result.at[i] = apply<Out>(f, in[v], i, kInputs);
    *reinterpret_cast<Chunk<Out, kElements>*>(p.at[0] + at * sizeof(BitsOf<Out>)) = result;
  }
}
