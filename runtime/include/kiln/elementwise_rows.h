// SPDX-License-Identifier: Apache-2.0
// How is an elementwise loop run when every input steps by 1, or by 0 (a broadcast value), along the output's innermost dimension? In vectors
// along the rows, whatever their alignment.
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

// N elements from any address. Where they make 16 bytes: the aligned vector below and, if needed, the one above, both
// inside the operand's memory, then shifted into place; else one by one. load() and align() are apart so that all loads
// come first.
template <class T, int N>
struct Gathered {
  uint32_t words[8];
  Chunk<T, N> chunk;
  uint32_t shift_bytes;

  static constexpr int kBytes = N * static_cast<int>(sizeof(BitsOf<T>));

  __device__ __forceinline__ void load(const char* from, int low, int high, const char* begin, const char* end) {
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from)) % kBytes;
    shift_bytes = 0;
    bool whole = low == 0 && high == N;
    if constexpr (kBytes == 16) {
      const char* below = from - misaligned;
      whole = whole && below >= begin && below + (misaligned ? 32 : 16) <= end;
      if (whole) {
        const uint4 a = *reinterpret_cast<const uint4*>(below);
        words[0] = a.x, words[1] = a.y, words[2] = a.z, words[3] = a.w;
        if (misaligned) {
          const uint4 b = *reinterpret_cast<const uint4*>(below + 16);
          words[4] = b.x, words[5] = b.y, words[6] = b.z, words[7] = b.w;
        }
        shift_bytes = 16 + misaligned;
        return;
      }
    } else if (whole && misaligned == 0) {
      chunk = *reinterpret_cast<const Chunk<T, N>*>(from);
      return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
      if (i >= low && i < high) chunk.at[i] = element<T>(from, i);
  }

  __device__ __forceinline__ void align() {
    if constexpr (kBytes == 16) {
      if (shift_bytes == 0) return;
      if (sizeof(BitsOf<T>) <= 8 && (shift_bytes & 8)) shift_words<2>();
      if (sizeof(BitsOf<T>) <= 4 && (shift_bytes & 4)) shift_words<1>();
      if (sizeof(BitsOf<T>) <= 2 && (shift_bytes & 3)) {
#pragma unroll
        for (int i = 0; i < 4; i++)
          words[i] =
              static_cast<uint32_t>((static_cast<uint64_t>(words[i + 1]) << 32 | words[i]) >> (8 * (shift_bytes & 3)));
      }
      __builtin_memcpy(&chunk, words, 16);
    }
  }

 private:
  template <int W>
  __device__ __forceinline__ void shift_words() {
#pragma unroll
    for (int i = 0; i + W < 8; i++) words[i] = words[i + W];
  }
};

template <int N, class... In>
struct GatheredAll;
template <int N>
struct GatheredAll<N> {};
template <int N, class Head, class... Tail>
struct GatheredAll<N, Head, Tail...> {
  Gathered<Head, N> head;
  GatheredAll<N, Tail...> tail;
};

template <int I, int N, int K>
__device__ __forceinline__ void gather(GatheredAll<N>&, const Pointers<K>&, const RowsPlan<K>&, const uint32_t (&)[K],
                                       int, int, int) {}
template <int I, int N, class Head, class... Tail, int K>
__device__ __forceinline__ void gather(GatheredAll<N, Head, Tail...>& to, const Pointers<K>& p, const RowsPlan<K>& plan,
                                       const uint32_t (&offsets)[K], int first, int low, int high) {
  const char* row = p.at[I] + static_cast<uint64_t>(offsets[I]) * sizeof(BitsOf<Head>);
  if (plan.spread[I]) {
    to.head.chunk.at[0] = element<Head>(row, 0);
    to.head.shift_bytes = 0;
  } else {
    to.head.load(row + static_cast<int64_t>(first) * static_cast<int>(sizeof(BitsOf<Head>)), low, high, plan.begin[I],
                 plan.end[I]);
  }
  gather<I + 1>(to.tail, p, plan, offsets, first, low, high);
}

template <int I, int N, int K>
__device__ __forceinline__ void align(GatheredAll<N>&, Chunks<N>&, const RowsPlan<K>&) {}
template <int I, int N, class Head, class... Tail, int K>
__device__ __forceinline__ void align(GatheredAll<N, Head, Tail...>& from, Chunks<N, Head, Tail...>& to,
                                      const RowsPlan<K>& plan) {
  from.head.align();
  to.head = from.head.chunk;
  if (plan.spread[I]) {
#pragma unroll
    for (int i = 1; i < N; i++) to.head.at[i] = to.head.at[0];
  }
  align<I + 1>(from.tail, to.tail, plan);
}

// Chunks begin where the output is aligned: a row that does not start there has a short first chunk.
template <class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(F f, Pointers<1 + sizeof...(In)> p, RowsPlan<1 + sizeof...(In)> plan) {
  constexpr int K = 1 + sizeof...(In), N = vector_elements<Out, In...>(), kVectors = KILN_ELEMENTWISE_ROW_VECTORS;
  constexpr IndexUpTo<sizeof...(In)> kInputs{};
  GatheredAll<N, In...> gathered[kVectors];
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
        plan.has_heads ? static_cast<int>(reinterpret_cast<uintptr_t>(out_row) / sizeof(BitsOf<Out>) % N) : 0;
    const int first = static_cast<int>(chunk[v]) * N - head;
    low[v] = first < 0 ? -first : 0;
    const int left = plan.row_elements - first;
    high[v] = high[v] == 0 ? 0 : left < N ? left : N;
    to[v] = out_row + static_cast<int64_t>(first) * static_cast<int>(sizeof(BitsOf<Out>));
    if (low[v] < high[v]) gather<1>(gathered[v], p, plan, offsets[v], first, low[v], high[v]);
  }
#pragma unroll
  for (int v = 0; v < kVectors; v++) {
    if (low[v] >= high[v]) continue;
    Chunks<N, In...> in;
    align<1>(gathered[v], in, plan);
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
