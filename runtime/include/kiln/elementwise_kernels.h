// SPDX-License-Identifier: Apache-2.0
// Which kernels run an elementwise loop? Five, from the fastest to the most general: contiguous, rows, tiles, strided
// and strided with conversion. kiln/elementwise.h chooses among them.
//
// All load every operand of all their elements before the first use, so that many bytes are under way. None assumes
// that the output and an input are apart: an input may be the output itself.
#pragma once

#include <kiln/element.h>
#include <kiln/layout.h>
#include <kiln/spec.h>

// Threads of a block, 16-byte vectors of each operand a thread has under way in the contiguous and in the rows kernel,
// elements a thread in the strided kernels. The defaults were the best on an H200 (benchmarks/kernels.py --sweep).
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
KILN_BOTH constexpr int vector_elements() {
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

// The dimensions outside of those that a kernel treats itself; offsets are in elements, K is the number of operands.
template <int K>
struct Outer {
  int ndim = 0;
  Divider sizes[Sizes::kMost];
  uint32_t strides[Sizes::kMost][K];

  // For U indices at once: the constants of a dimension are read once for all of them.
  template <int U>
  __device__ __forceinline__ void add_offsets(uint32_t (&index)[U], uint32_t (&offsets)[U][K]) const {
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

template <class Out, class R>
__device__ __forceinline__ BitsOf<Out> packed(const R& result) {
  return Element<Out>::pack(converted<typename Element<Out>::Value>(result));
}

template <class Out, class F, int N, class... In, int... K>
__device__ __forceinline__ BitsOf<Out> apply(const F& f, Chunks<N, In...>& in, int i, Index<K...>) {
  return packed<Out>(f(Element<In>::unpack(in.template get<K>().at[i])...));
}

// ---- contiguous: every operand in order, each aligned to its vectors ----

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

// ---- rows: the innermost dimension has step 1 (or 0, a broadcast value) in every input; any alignment ----

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

// ---- tiles: an input is contiguous along another dimension than the output; both are walked in order through shared
// memory ----

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
  // One more than the side, so that a column lies in 32 banks.
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
__device__ __forceinline__ void load_tiles(Chunks<kTileSteps>&, const Pointers<K>&, const TilesPlan<K>&,
                                           const uint32_t (&)[K], const TilePosition&) {}
template <int I, class Head, class... Tail, int K>
__device__ __forceinline__ void load_tiles(Chunks<kTileSteps, Head, Tail...>& to, const Pointers<K>& p,
                                           const TilesPlan<K>& plan, const uint32_t (&offsets)[K],
                                           const TilePosition& position) {
#pragma unroll
  for (int j = 0; j < kTileSteps; j++) {
    int at[2];
    position.indices(plan.turned[I], j, at);
    if (at[0] < plan.sizes[0] && at[1] < plan.sizes[1])
      to.head.at[j] = element<Head>(p.at[I], offsets[I] + static_cast<uint32_t>(at[0]) * plan.strides[0][I] +
                                                 static_cast<uint32_t>(at[1]) * plan.strides[1][I]);
  }
  load_tiles<I + 1>(to.tail, p, plan, offsets, position);
}

template <int I, bool kStore, int K>
__device__ __forceinline__ void turn_tiles(Chunks<kTileSteps>&, TileMemory<>&, const TilesPlan<K>&) {}
template <int I, bool kStore, class Head, class... Tail, int K>
__device__ __forceinline__ void turn_tiles(Chunks<kTileSteps, Head, Tail...>& in, TileMemory<Head, Tail...>& memory,
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
  const TilePosition position{{static_cast<int>(blockIdx.x - line * plan.tiles[0].divisor) * kTileSide,
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
    raw[u] = load_raw<kSixteenBytes>(from + static_cast<uint64_t>(offset) * static_cast<uint32_t>(bytes), bytes);
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
                                             const StridedPlan<K>& plan, const uint32_t (&offsets)[U][K],
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
    if (exists[u]) element<Out>(p.at[0], offsets[u][0]) = apply<Out>(f, in, u, IndexUpTo<sizeof...(In)>{});
}

}  // namespace detail
}  // namespace kiln
