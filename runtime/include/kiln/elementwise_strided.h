// SPDX-License-Identifier: Apache-2.0
// How is an elementwise loop run when the innermost dimension is not contiguous in every operand?
// Through tiles in shared memory where an input is contiguous along another dimension (a transposed
// one); element by element otherwise, with or without conversion.
#pragma once

#include <kiln/elementwise_parts.h>

namespace kiln {
namespace detail {

template <int K>
struct TilesPlan {
  int sizes[2];      // of the output's innermost dimension and of that input's
  Divider tiles[2];  // along each
  uint32_t strides[2][K];
  bool turned[K];  // operand k is walked along the second dimension
  Outer<K> outer;
};

template <class... In>
struct TileMemory;
template <>
struct TileMemory<> {};
template <class Head, class... Tail>
struct TileMemory<Head, Tail...> {
  // One more than the side, so that a column is in 32 banks.
  BitsOf<Head> head[kTileSide][kTileSide + 1];
  TileMemory<Tail...> tail;
};

struct TilePosition {
  int first[2];
  __device__ __forceinline__ void indices(bool turned, int j, int (&at)[2]) const {
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y) + j * kTileRows;
    at[0] = first[0] + (turned ? y : x);
    at[1] = first[1] + (turned ? x : y);
  }
};

constexpr int kTileSteps = kTileSide / kTileRows;

template <int I, int K>
__device__ __forceinline__ void load_tiles(Chunks<kTileSteps>&, const Pointers<K>&,
                                           const TilesPlan<K>&, const uint32_t (&)[K],
                                           const TilePosition&) {}
template <int I, class Head, class... Tail, int K>
__device__ __forceinline__ void load_tiles(Chunks<kTileSteps, Head, Tail...>& to,
                                           const Pointers<K>& p, const TilesPlan<K>& plan,
                                           const uint32_t (&offsets)[K],
                                           const TilePosition& position) {
#pragma unroll
  for (int j = 0; j < kTileSteps; j++) {
    int at[2];
    position.indices(plan.turned[I], j, at);
    if (at[0] < plan.sizes[0] && at[1] < plan.sizes[1])
      to.head.at[j] =
          element<Head>(p.at[I], offsets[I] + static_cast<uint32_t>(at[0]) * plan.strides[0][I] +
                                     static_cast<uint32_t>(at[1]) * plan.strides[1][I]);
  }
  load_tiles<I + 1>(to.tail, p, plan, offsets, position);
}

template <int I, bool kStore, int K>
__device__ __forceinline__ void turn_tiles(Chunks<kTileSteps>&, TileMemory<>&,
                                           const TilesPlan<K>&) {}
template <int I, bool kStore, class Head, class... Tail, int K>
__device__ __forceinline__ void turn_tiles(Chunks<kTileSteps, Head, Tail...>& in,
                                           TileMemory<Head, Tail...>& memory,
                                           const TilesPlan<K>& plan) {
  if (plan.turned[I]) {
#pragma unroll
    for (int j = 0; j < kTileSteps; j++) {
      if (kStore)
        memory.head[threadIdx.y + j * kTileRows][threadIdx.x] = in.head.at[j];
      else
        in.head.at[j] = memory.head[threadIdx.x][threadIdx.y + j * kTileRows];
    }
  }
  turn_tiles<I + 1, kStore>(in.tail, memory.tail, plan);
}

template <class F, class Out, class... In>
__global__ void __launch_bounds__(kTileSide* kTileRows)
    tiles_kernel(F f, Pointers<1 + sizeof...(In)> p, TilesPlan<1 + sizeof...(In)> plan) {
  constexpr int K = 1 + sizeof...(In);
  __shared__ TileMemory<In...> memory;
  const uint32_t line = plan.tiles[0].quotient(blockIdx.x);
  uint32_t batch[1] = {plan.tiles[1].quotient(line)}, offsets[1][K] = {};
  const TilePosition position{
      {static_cast<int>(blockIdx.x - line * plan.tiles[0].divisor) * kTileSide,
       static_cast<int>(line - batch[0] * plan.tiles[1].divisor) * kTileSide}};
  plan.outer.add_offsets(batch, offsets);
  Chunks<kTileSteps, In...> in;
  load_tiles<1>(in, p, plan, offsets[0], position);
  turn_tiles<1, true>(in, memory, plan);
  __syncthreads();
  turn_tiles<1, false>(in, memory, plan);
#pragma unroll
  for (int j = 0; j < kTileSteps; j++) {
    int at[2];
    position.indices(false, j, at);
    if (at[0] < plan.sizes[0] && at[1] < plan.sizes[1])
      element<Out>(p.at[0], offsets[0][0] + static_cast<uint32_t>(at[0]) * plan.strides[0][0] +
                                static_cast<uint32_t>(at[1]) * plan.strides[1][0]) =
          apply<Out>(f, in, j, IndexUpTo<sizeof...(In)>{});
  }
}

// ---- strided: anything; the second form converts each input from the dtype it has ----

template <int K>
struct StridedPlan {
  uint32_t elements;
  Outer<K> all;
  Dtype dtypes[K];
  int element_bytes[K];
};

template <class T, bool kConvert, int U>
struct StridedLoad {
  Chunk<T, U> chunk;
  __device__ __forceinline__ void load(int u, const char* from, uint32_t offset, int, Dtype) {
    chunk.at[u] = element<T>(from, offset);
  }
  __device__ __forceinline__ void convert(Dtype) {}
};
template <class T, int U>
struct StridedLoad<T, true, U> {
  RawBits raw[U];
  Chunk<T, U> chunk;
  static constexpr bool kSixteenBytes = IsComplex<typename Element<T>::Value>::value;
  __device__ __forceinline__ void load(int u, const char* from, uint32_t offset, int bytes, Dtype) {
    raw[u] = load_raw<kSixteenBytes>(
        from + static_cast<uint64_t>(offset) * static_cast<uint32_t>(bytes), bytes);
  }
  __device__ __forceinline__ void convert(Dtype dtype) {
#pragma unroll
    for (int u = 0; u < U; u++)
      chunk.at[u] = Element<T>::pack(value_from_raw<typename Element<T>::Value>(dtype, raw[u]));
  }
};

template <int I, bool kConvert, int U, int K>
__device__ __forceinline__ void load_strided(Chunks<U>&, const Pointers<K>&, const StridedPlan<K>&,
                                             const uint32_t (&)[U][K], const bool (&)[U]) {}
template <int I, bool kConvert, int U, class Head, class... Tail, int K>
__device__ __forceinline__ void load_strided(Chunks<U, Head, Tail...>& to, const Pointers<K>& p,
                                             const StridedPlan<K>& plan,
                                             const uint32_t (&offsets)[U][K],
                                             const bool (&exists)[U]) {
  StridedLoad<Head, kConvert, U> mine;
#pragma unroll
  for (int u = 0; u < U; u++)
    if (exists[u]) mine.load(u, p.at[I], offsets[u][I], plan.element_bytes[I], plan.dtypes[I]);
  load_strided<I + 1, kConvert>(to.tail, p, plan, offsets, exists);
  mine.convert(plan.dtypes[I]);
  to.head = mine.chunk;
}

template <bool kConvert, class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads)
    strided_kernel(F f, Pointers<1 + sizeof...(In)> p, StridedPlan<1 + sizeof...(In)> plan) {
  constexpr int K = 1 + sizeof...(In), U = KILN_ELEMENTWISE_STRIDED;
  uint32_t index[U], offsets[U][K] = {};
  bool exists[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    index[u] = (blockIdx.x * U + u) * kThreads + threadIdx.x;
    exists[u] = index[u] < plan.elements;
  }
  plan.all.add_offsets(index, offsets);
  Chunks<U, In...> in;
  load_strided<1, kConvert>(in, p, plan, offsets, exists);
#pragma unroll
  for (int u = 0; u < U; u++)
    if (exists[u])
      element<Out>(p.at[0], offsets[u][0]) = apply<Out>(f, in, u, IndexUpTo<sizeof...(In)>{});
}

}  // namespace detail
}  // namespace kiln
