// SPDX-License-Identifier: Apache-2.0
// How is an elementwise loop run when every operand is contiguous? In 16-byte vectors; an input
// that is not aligned to 16 bytes is read as the aligned vectors around it, which are shifted into
// place.
#pragma once

#include <kiln/elementwise_parts.h>

namespace kiln {
namespace detail {

// N elements that begin `shift` bytes behind an aligned address. load() and get() are apart so that
// all loads come first.
template <class T, int N>
struct Window {
  static constexpr int kBytes = N * static_cast<int>(sizeof(BitsOf<T>));
  uint32_t words[8];
  Chunk<T, N> chunk;

  // Bytes that load() may touch below and above those asked for are inside the vectors they belong
  // to.
  __device__ __forceinline__ void load(const char* from, uint32_t shift) {
    if constexpr (kBytes == 16) {
      const uint4 low = *reinterpret_cast<const uint4*>(from - shift);
      words[0] = low.x, words[1] = low.y, words[2] = low.z, words[3] = low.w;
      if (shift) {
        const uint4 high = *reinterpret_cast<const uint4*>(from - shift + 16);
        words[4] = high.x, words[5] = high.y, words[6] = high.z, words[7] = high.w;
      }
    } else if (shift == 0) {
      chunk = *reinterpret_cast<const Chunk<T, N>*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < N; i++) chunk.at[i] = element<T>(from, i);
    }
  }

  __device__ __forceinline__ Chunk<T, N> get(uint32_t shift) {
    if constexpr (kBytes == 16) {
      if (sizeof(BitsOf<T>) <= 8 && (shift & 8)) shift_words<2>();
      if (sizeof(BitsOf<T>) <= 4 && (shift & 4)) shift_words<1>();
      if (sizeof(BitsOf<T>) <= 2 && (shift & 3)) {
#pragma unroll
        for (int i = 0; i < 4; i++)
          words[i] = static_cast<uint32_t>((static_cast<uint64_t>(words[i + 1]) << 32 | words[i]) >>
                                           (8 * (shift & 3)));
      }
      __builtin_memcpy(&chunk, words, 16);
    }
    return chunk;
  }

 private:
  template <int W>
  __device__ __forceinline__ void shift_words() {
#pragma unroll
    for (int i = 0; i + W < 8; i++) words[i] = words[i + W];
  }
};

template <int N, class... In>
struct Windows;
template <int N>
struct Windows<N> {};
template <int N, class Head, class... Tail>
struct Windows<N, Head, Tail...> {
  Window<Head, N> head;
  Windows<N, Tail...> tail;
};

template <int I, bool kShifted, int N, int K>
__device__ __forceinline__ void load_windows(Windows<N>&, const Pointers<K>&, int64_t) {}
template <int I, bool kShifted, int N, class Head, class... Tail, int K>
__device__ __forceinline__ void load_windows(Windows<N, Head, Tail...>& to, const Pointers<K>& p,
                                             int64_t at) {
  const uint32_t shift = kShifted ? misalignment<Head, N>(p.at[I]) : 0;
  to.head.load(p.at[I] + at * static_cast<int64_t>(sizeof(BitsOf<Head>)), shift);
  load_windows<I + 1, kShifted>(to.tail, p, at);
}

template <int I, bool kShifted, int N, int K>
__device__ __forceinline__ void get_windows(Windows<N>&, Chunks<N>&, const Pointers<K>&) {}
template <int I, bool kShifted, int N, class Head, class... Tail, int K>
__device__ __forceinline__ void get_windows(Windows<N, Head, Tail...>& from,
                                            Chunks<N, Head, Tail...>& to, const Pointers<K>& p) {
  to.head = from.head.get(kShifted ? misalignment<Head, N>(p.at[I]) : 0);
  get_windows<I + 1, kShifted>(from.tail, to.tail, p);
}

template <int N, class... In, int K, int... I>
__device__ __forceinline__ void load_single(Chunks<N, In...>& to, int j, const Pointers<K>& p,
                                            int64_t at, Index<I...>) {
  ((to.template get<I>().at[j] = element<In>(p.at[I + 1], at)), ...);
}

// A tile that is not whole, or touches an end of memory that vectors would cross: element by
// element, a few at a time.
template <class Out, class... In, class F, int K>
__device__ __forceinline__ void compute_edge(const F& f, const Pointers<K>& p, int64_t first,
                                             int count) {
  constexpr IndexUpTo<sizeof...(In)> kInputs{};
  constexpr int kPerThread = KILN_ELEMENTWISE_VECTORS * vector_elements<Out, In...>(),
                kBatch = kPerThread < 8 ? kPerThread : 8;
#pragma unroll 1
  for (int start = static_cast<int>(threadIdx.x); start < count; start += kBatch * kThreads) {
    Chunks<kBatch, In...> in;
#pragma unroll
    for (int j = 0; j < kBatch; j++)
      if (start + j * kThreads < count)
        load_single(in, j, p, first + start + j * kThreads, kInputs);
#pragma unroll
    for (int j = 0; j < kBatch; j++)
      if (start + j * kThreads < count)
        element<Out>(p.at[0], first + start + j * kThreads) = apply<Out>(f, in, j, kInputs);
  }
}

// The output is aligned to its vectors, and the inputs too unless kShifted. A block takes one tile.
template <bool kShifted, class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads)
    contiguous_kernel(F f, Pointers<1 + sizeof...(In)> p, int64_t n) {
  constexpr int N = vector_elements<Out, In...>(), kVectors = KILN_ELEMENTWISE_VECTORS;
  constexpr int kTile = kThreads * kVectors * N;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  // A shifted vector reaches into the ones before and behind it.
  const bool inside = kShifted ? blockIdx.x > 0 && n - first >= kTile + N : n - first >= kTile;
  if (!inside) {
    compute_edge<Out, In...>(f, p, first, static_cast<int>(n - first < kTile ? n - first : kTile));
    return;
  }
  Windows<N, In...> windows[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; v++)
    load_windows<1, kShifted>(windows[v], p, first + (v * kThreads + threadIdx.x) * N);
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    Chunks<N, In...> in;
    get_windows<1, kShifted>(windows[v], in, p);
    Chunk<Out, N> result;
#pragma unroll
    for (int i = 0; i < N; i++) result.at[i] = apply<Out>(f, in, i, IndexUpTo<sizeof...(In)>{});
    const int64_t at = first + (v * kThreads + threadIdx.x) * N;
    *reinterpret_cast<Chunk<Out, N>*>(p.at[0] + at * static_cast<int64_t>(sizeof(BitsOf<Out>))) =
        result;
  }
}

}  // namespace detail
}  // namespace kiln
