// SPDX-License-Identifier: Apache-2.0
// Does each piece of the kernel do its part alone? Ops of one warpgroup for the tests: a tile
// through shared memory by TMA, Q K^T, P V, the way out. They use the same functions as the kernel.
#ifndef FA_PORTABLE_ALONE
#include "epilogue.h"
#include "products.h"
#include "report.h"
#include "softmax.h"
#include "tensor_map.h"

namespace {

using namespace fa;
using kiln::Tensor;

struct PieceWork {
  CUtensorMap first, second;
  const float* weights;
  float* result;
  uint16_t* dump;
  int row, rows;
  int keys;
  float scale;
  unsigned* report;
};

// One thread brings up to two tiles, all wait. The barrier lies at the start of the aligned shared
// memory, tiles after it.
[[maybe_unused]] __device__ __forceinline__ Watch watch_of(const PieceWork& work) {
#if FA_DEBUG_TIMEOUT
  return Watch{work.report};
#else
  (void)work;
  return Watch{};
#endif
}
[[maybe_unused]] __device__ __forceinline__ uint32_t aligned_shared() {
  extern __shared__ char unaligned[];
  return (shared_address(unaligned) + 1023) & ~1023u;
}
[[maybe_unused]] __device__ __forceinline__ void begin_piece(uint32_t barrier) {
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    mbarrier_init_fence();
  }
  __syncthreads();
}

// Accumulators to a row-major matrix of `columns` columns.
template <int N>
__device__ __forceinline__ void write_accumulators(float* to, int columns, const float (&d)[N]) {
  const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4,
                 column = lane % 4 * 2;
  for (int i = 0; i < N; i++)
    to[(row + (i % 4 / 2) * 8) * columns + i / 4 * 8 + column + i % 2] = d[i];
}
template <int N>
__device__ __forceinline__ void read_accumulators(float (&d)[N], const float* from, int columns) {
  const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4,
                 column = lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < N; i++)
    d[i] = from[(row + (i % 4 / 2) * 8) * columns + i / 4 * 8 + column + i % 2];
}

// `rows` rows from `row` on of the first tensor: as they lie in shared memory to `dump`, and by TMA
// to the second tensor.
template <int kHeadDim>
__global__ void __launch_bounds__(128) copy_kernel(const __grid_constant__ PieceWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const uint32_t base = aligned_shared(), tile = base + 1024;
  const int slabs = kHeadDim / kSlabColumns;
  begin_piece(base);
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(base, work.rows * kHeadDim * 2);
    for (int s = 0; s < slabs; s++)
      tma_load(tile + s * work.rows * kRowBytes, &work.first, base, s * kSlabColumns, work.row, 0,
               0);
  }
  mbarrier_wait(base, 0, watch_of(work), kPieceFull);
  for (int i = threadIdx.x; i < work.rows * kHeadDim; i += blockDim.x) {
    uint16_t element;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(element) : "r"(tile + i * 2) : "memory");
    work.dump[i] = element;
  }
  if (threadIdx.x == 0) {
    for (int s = 0; s < slabs; s++)
      tma_store(&work.second, tile + s * work.rows * kRowBytes, s * kSlabColumns, work.row, 0, 0);
    tma_store_commit();
    tma_store_wait_read();
  }
#endif
}

template <class T, int kHeadDim>
__global__ void __launch_bounds__(128) scores_kernel(const __grid_constant__ PieceWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using S = Shape<kHeadDim>;
  const uint32_t base = aligned_shared(), query = base + 1024, key = query + S::kQueryBytes;
  begin_piece(base);
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(base, S::kQueryBytes + S::kKeyBytes);
    tma_load_tile<kRowsPerWarpgroup, kHeadDim>(query, &work.first, base, 0, 0, 0);
    tma_load_tile<S::kBlockN, kHeadDim>(key, &work.second, base, 0, 0, 0);
  }
  mbarrier_wait(base, 0, watch_of(work), kPieceFull);
  float scores[S::kBlockN / 2];
  pin(scores);
  wgmma_fence();
  multiply_query_key<T, S>(scores, query, key);
  wgmma_commit();
  wgmma_wait<0>();
  pin(scores);
  write_accumulators(work.result, S::kBlockN, scores);
#endif
}

template <class T, int kHeadDim>
__global__ void __launch_bounds__(128) values_kernel(const __grid_constant__ PieceWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using S = Shape<kHeadDim>;
  const uint32_t base = aligned_shared(), value = base + 1024;
  begin_piece(base);
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(base, S::kKeyBytes);
    tma_load_tile<S::kBlockN, kHeadDim>(value, &work.first, base, 0, 0, 0);
  }
  float given[S::kBlockN / 2], out[kHeadDim / 2];
  uint32_t weights[S::kBlockN / 4];
  read_accumulators(given, work.weights, S::kBlockN);
  pack_weights<T>(weights, given);
  mbarrier_wait(base, 0, watch_of(work), kPieceFull);
  pin(out);
  pin(weights);
  wgmma_fence();
  multiply_weights_value<T, S>(out, weights, value, false);
  wgmma_commit();
  wgmma_wait<0>();
  pin(out);
  write_accumulators(work.result, kHeadDim, out);
#endif
}

constexpr int kSoftmaxColumns = 128;

// Weights and LSE of one step, all in one go: scores [64, kSoftmaxColumns] in, of which each row
// sees `keys`.
__global__ void __launch_bounds__(128) softmax_kernel(const __grid_constant__ PieceWork work) {
  constexpr int kHalf = kSoftmaxColumns / 2;  // two steps, so that the decay counts
  float scores[kHalf / 2], earlier[kHalf / 2], decay[2], factor[2], lse[2];
  const int column = threadIdx.x % 4 * 2, limit[2] = {work.keys, work.keys};
  Softmax softmax;
  softmax.scale_log2 = work.scale * 1.44269504088896341f;
  read_accumulators(earlier, work.weights + kHalf, kSoftmaxColumns);
  mask_scores(earlier, column + kHalf, limit);
  softmax.step<true>(earlier, decay);
  read_accumulators(scores, work.weights, kSoftmaxColumns);
  mask_scores(scores, column, limit);
  softmax.step<false>(scores, decay);
  scale_rows(earlier, decay);
  softmax.finish(factor, lse);
  scale_rows(earlier, factor);
  scale_rows(scores, factor);
  write_accumulators(work.result, kSoftmaxColumns, scores);
  write_accumulators(work.result + kHalf, kSoftmaxColumns, earlier);
  const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  if (threadIdx.x % 4 == 0) {
    work.result[64 * kSoftmaxColumns + row] = lse[0];
    work.result[64 * kSoftmaxColumns + row + 8] = lse[1];
  }
}

template <class T, int kHeadDim>
__global__ void __launch_bounds__(128) way_out_kernel(const __grid_constant__ PieceWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const uint32_t tile = aligned_shared();
  float out[kHeadDim / 2];
  read_accumulators(out, work.weights, kHeadDim);
  stage_out<T, kHeadDim>(tile, out);
  store_staged<kHeadDim>(&work.first, tile, 1, work.row, 0, 0);
  if (threadIdx.x == 0) tma_store_wait_read();
#endif
}

struct OrderWork {
  Divisor tiles_per_head, heads;
  Order order;
  int tiles;
  int* result;
};
struct OneRow {
  static constexpr int kBlockM = 1;
};

// How often each tile is taken, then the steps of each block: one for a head's first tile and one
// more for each after it.
__global__ void order_kernel(const __grid_constant__ OrderWork work) {
  int steps = 0;
  for (auto place = Queue<true>::first(); place.exists(work.order); place.advance(work.order)) {
    const Tile tile = Tile::of<OneRow, true, false>(work, place);
    const int head = tile.batch * static_cast<int>(work.heads.d) + tile.head;
    atomicAdd(&work.result[head * static_cast<int>(work.tiles_per_head.d) + tile.row], 1);
    steps += 1 + tile.row;
  }
  work.result[work.tiles + blockIdx.x] = steps;
}

constexpr int kPieceSharedBytes = 2048 + 2 * 128 * 128 * 2;

template <class Kernel>
void launch_piece(Kernel kernel, PieceWork& work, const Tensor& like) {
  Report report(like);
  work.report = report.words();
  kiln::Launch how;
  how.grid = 1;
  how.block = 128;
  how.shared_bytes = kPieceSharedBytes;
  how.stream = kiln::stream(like);
  kiln::launch(kernel, how, work);
  report.check(like);
}

template <class F>
void dispatch_piece(const Tensor& like, int64_t head_dim, F&& f) {
  fa::with_head_dim(head_dim, [&](auto d) {
    if (like.dtype() == kiln::Dtype::bf16)
      f(Bf16{}, d);
    else
      f(Half{}, d);
  });
}

// The dump in the order of shared memory, and a tensor like x that holds the tile's rows and zeros.
kiln::Tensors<2> piece_copy(const Tensor& x, int64_t row, int64_t rows) {
  KILN_CHECK(rows > 0 && rows <= 128 && rows % 8 == 0,
             "rows must be a multiple of 8 up to 128, not ", rows);
  Tensor dump = kiln::empty({rows * x.size(3)}, x.dtype(), x.device());
  Tensor out = kiln::zeros(x.sizes(), x.dtype(), x.device());
  PieceWork work{};
  work.first = tensor_map(x, "x", static_cast<int>(rows));
  work.second = tensor_map(out, "the output", static_cast<int>(rows));
  work.dump = static_cast<uint16_t*>(dump.raw());
  work.row = static_cast<int>(row);
  work.rows = static_cast<int>(rows);
  fa::with_head_dim(x.size(3), [&](auto d) { launch_piece(copy_kernel<d.value>, work, x); });
  return {dump, out};
}

Tensor piece_scores(const Tensor& q, const Tensor& k) {
  Tensor result = kiln::empty({64, keys_a_step(q.size(3))}, kiln::Dtype::f32, q.device());
  PieceWork work{};
  work.first = tensor_map(q, "q", kRowsPerWarpgroup);
  work.second = tensor_map(k, "k", keys_a_step(q.size(3)));
  work.result = result.data<float>();
  dispatch_piece(q, q.size(3), [&](auto t, auto d) {
    launch_piece(scores_kernel<decltype(t), d.value>, work, q);
  });
  return result;
}

Tensor piece_values(const Tensor& weights, const Tensor& v) {
  Tensor result = kiln::empty({64, v.size(3)}, kiln::Dtype::f32, v.device());
  PieceWork work{};
  work.first = tensor_map(v, "v", keys_a_step(v.size(3)));
  work.weights = weights.data<const float>();
  work.result = result.data<float>();
  dispatch_piece(v, v.size(3), [&](auto t, auto d) {
    launch_piece(values_kernel<decltype(t), d.value>, work, v);
  });
  return result;
}

// Row-major weights [64, kSoftmaxColumns], then 64 values of LSE.
Tensor piece_softmax(const Tensor& scores, int64_t keys, double scale) {
  Tensor result = kiln::empty({64 * kSoftmaxColumns + 64}, kiln::Dtype::f32, scores.device());
  PieceWork work{};
  work.weights = scores.data<const float>();
  work.result = result.data<float>();
  work.keys = static_cast<int>(keys);
  work.scale = static_cast<float>(scale);
  launch_piece(softmax_kernel, work, scores);
  return result;
}

Tensor piece_way_out(const Tensor& accumulators, const Tensor& like, int64_t row) {
  Tensor out = kiln::zeros(like.sizes(), like.dtype(), like.device());
  PieceWork work{};
  work.first = tensor_map(out, "the output", kRowsPerWarpgroup);
  work.weights = accumulators.data<const float>();
  work.row = static_cast<int>(row);
  dispatch_piece(like, like.size(3), [&](auto t, auto d) {
    launch_piece(way_out_kernel<decltype(t), d.value>, work, like);
  });
  return out;
}

Tensor piece_order(const Tensor& like, int64_t batch, int64_t heads, int64_t tiles_per_head,
                   int64_t bytes_per_head, int64_t blocks) {
  const int64_t tiles = batch * heads * tiles_per_head;
  Tensor result = kiln::zeros({tiles + blocks}, kiln::Dtype::i32, like.device());
  OrderWork work{};
  work.tiles_per_head = Divisor::of(static_cast<uint32_t>(tiles_per_head));
  work.heads = Divisor::of(static_cast<uint32_t>(heads));
  work.order =
      Order::of(batch * heads, tiles_per_head, bytes_per_head, static_cast<int>(blocks), true);
  work.tiles = static_cast<int>(tiles);
  work.result = static_cast<int*>(result.raw());
  kiln::Launch how;
  how.grid = work.order.count < blocks ? work.order.count : blocks;
  how.block = 1;
  how.stream = kiln::stream(like);
  kiln::launch(order_kernel, how, work);
  return result;
}

}  // namespace

KILN_OP(piece_order, "like, batch, heads, tiles_per_head, bytes_per_head, blocks")
    .doc("Test: how often each tile is taken under a causal mask, then each block's steps.");
KILN_OP(piece_copy, "x, row, rows").doc("Test: a tile by TMA into shared memory and out again.");
KILN_OP(piece_scores, "q, k").doc("Test: Q K^T of one tile.");
KILN_OP(piece_values, "weights, v").doc("Test: P V of one tile.");
KILN_OP(piece_softmax, "scores, keys, scale").doc("Test: softmax of one tile in two steps.");
KILN_OP(piece_way_out, "accumulators, like, row").doc("Test: accumulators to a tensor.");
#endif  // FA_PORTABLE_ALONE
