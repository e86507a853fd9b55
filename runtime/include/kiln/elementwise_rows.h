// SPDX-License-Identifier: Apache-2.0
// How is an elementwise loop run when every input steps by 1, or by 0 (a broadcast value), along
// the output's innermost dimension? In vectors along the rows, whatever their alignment.
#pragma once

#include <kiln/elementwise_contiguous.h>

namespace kiln {
namespace detail {

template <int K>
struct RowsPlan {
  uint32_t chunks;  // of all rows
  Divider chunks_per_row;
  int row_elements;
  bool has_heads;        // some row of the output does not start on a vector boundary
  bool spread[K];        // operand k is one value along the row
  const char* begin[K];  // operand k's memory: loads stay inside
  const char* end[K];
  Outer<K> outer;
};

// How a thread has read its chunk of one input.
enum class Reading : uint32_t { spread, singly, window };

template <class T, int N>
struct RowChunk {
  Window<T, N> window;
  Reading reading;
  uint32_t shift;

  // Elements low to high - 1 of the chunk at `from` exist; a window must be inside the operand's
  // memory.
  __device__ __forceinline__ void load(const char* from, int low, int high, const char* begin,
                                       const char* end) {
    constexpr int kBytes = Window<T, N>::kBytes;
    shift = misalignment<T, N>(from);
    const char* below = from - shift;
    const bool fits = kBytes < 16 || (below >= begin && below + (shift ? 32 : 16) <= end);
    if (low == 0 && high == N && fits) {
      reading = Reading::window;
      window.load(from, shift);
      return;
    }
    reading = Reading::singly;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (i >= low && i < high) window.chunk.at[i] = element<T>(from, i);
  }
  __device__ __forceinline__ void load_value(const char* from) {
    reading = Reading::spread;
    window.chunk.at[0] = element<T>(from, 0);
  }

  __device__ __forceinline__ Chunk<T, N> get() {
    if (reading == Reading::window) return window.get(shift);
    if (reading == Reading::spread) {
#pragma unroll
      for (int i = 1; i < N; i++) window.chunk.at[i] = window.chunk.at[0];
    }
    return window.chunk;
  }
};

template <int N, class... In>
struct RowChunks;
template <int N>
struct RowChunks<N> {};
template <int N, class Head, class... Tail>
struct RowChunks<N, Head, Tail...> {
  RowChunk<Head, N> head;
  RowChunks<N, Tail...> tail;
};

template <int I, int N, int K>
__device__ __forceinline__ void load_row(RowChunks<N>&, const Pointers<K>&, const RowsPlan<K>&,
                                         const uint32_t (&)[K], int, int, int) {}
template <int I, int N, class Head, class... Tail, int K>
__device__ __forceinline__ void load_row(RowChunks<N, Head, Tail...>& to, const Pointers<K>& p,
                                         const RowsPlan<K>& plan, const uint32_t (&offsets)[K],
                                         int first, int low, int high) {
  const char* row = p.at[I] + static_cast<uint64_t>(offsets[I]) * sizeof(BitsOf<Head>);
  if (plan.spread[I])
    to.head.load_value(row);
  else
    to.head.load(row + static_cast<int64_t>(first) * static_cast<int>(sizeof(BitsOf<Head>)), low,
                 high, plan.begin[I], plan.end[I]);
  load_row<I + 1>(to.tail, p, plan, offsets, first, low, high);
}

template <int N>
__device__ __forceinline__ void get_row(RowChunks<N>&, Chunks<N>&) {}
template <int N, class Head, class... Tail>
__device__ __forceinline__ void get_row(RowChunks<N, Head, Tail...>& from,
                                        Chunks<N, Head, Tail...>& to) {
  to.head = from.head.get();
  get_row(from.tail, to.tail);
}

// Chunks begin where the output is aligned: a row that does not start there has a short first
// chunk.
template <class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(F f, Pointers<1 + sizeof...(In)> p, RowsPlan<1 + sizeof...(In)> plan) {
  constexpr int K = 1 + sizeof...(In), N = vector_elements<Out, In...>(),
                kVectors = KILN_ELEMENTWISE_ROW_VECTORS;
  constexpr IndexUpTo<sizeof...(In)> kInputs{};
  RowChunks<N, In...> chunks[kVectors];
  uint32_t row[kVectors], chunk[kVectors], offsets[kVectors][K] = {};
  int low[kVectors], high[kVectors];
  char* to[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    const uint32_t index = (blockIdx.x * kVectors + v) * kThreads + threadIdx.x;
    row[v] = plan.chunks_per_row.quotient(index);
    chunk[v] = index - row[v] * plan.chunks_per_row.divisor;
    high[v] = index < plan.chunks;
  }
  plan.outer.add_offsets(row, offsets);
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    char* out_row = p.at[0] + static_cast<uint64_t>(offsets[v][0]) * sizeof(BitsOf<Out>);
    const int head =
        plan.has_heads
            ? static_cast<int>(reinterpret_cast<uintptr_t>(out_row) / sizeof(BitsOf<Out>) % N)
            : 0;
    const int first = static_cast<int>(chunk[v]) * N - head;
    low[v] = first < 0 ? -first : 0;
    const int left = plan.row_elements - first;
    high[v] = high[v] == 0 ? 0 : left < N ? left : N;
    to[v] = out_row + static_cast<int64_t>(first) * static_cast<int>(sizeof(BitsOf<Out>));
    if (low[v] < high[v]) load_row<1>(chunks[v], p, plan, offsets[v], first, low[v], high[v]);
  }
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    if (low[v] >= high[v]) continue;
    Chunks<N, In...> in;
    get_row(chunks[v], in);
    Chunk<Out, N> result;
#pragma unroll
    for (int i = 0; i < N; i++) result.at[i] = apply<Out>(f, in, i, kInputs);
    if (low[v] == 0 && high[v] == N) {
      *reinterpret_cast<Chunk<Out, N>*>(to[v]) = result;
    } else {
#pragma unroll
      for (int i = 0; i < N; i++)
        if (i >= low[v] && i < high[v]) element<Out>(to[v], i) = result.at[i];
    }
  }
}

}  // namespace detail
}  // namespace kiln
