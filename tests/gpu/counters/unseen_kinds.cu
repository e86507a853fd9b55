// SPDX-License-Identifier: Apache-2.0
// Do the rules hold for kinds of kernels that no rule was made with? Each is written as it is
// usually found in public code, and neither side is changed for them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

#include <cub/block/block_scan.cuh>

#include "patterns.cuh"

namespace cg = cooperative_groups;

constexpr int kBins = 64, kRadius = 2, kTile = 16;
__constant__ float weights[(2 * kRadius + 1) * (2 * kRadius + 1)];

// One histogram per warp, added up at the end.
__global__ void warp_histograms(const int* keys, int* bins, int n) {
  __shared__ int mine[4][kBins];
  for (int i = threadIdx.x; i < 4 * kBins; i += blockDim.x) mine[i / kBins][i % kBins] = 0;
  __syncthreads();
  const int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    atomicAdd(&mine[threadIdx.x / 32][keys[i] % kBins], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x)
    atomicAdd(&bins[i], mine[0][i] + mine[1][i] + mine[2][i] + mine[3][i]);
}

// Filter: one atomic per warp.
__global__ void compact(const int* keys, int* out, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || keys[i] % 3) return;
  const cg::coalesced_group active = cg::coalesced_threads();
  int at = 0;
  if (active.thread_rank() == 0) at = atomicAdd(count, active.size());
  at = active.shfl(at, 0) + active.thread_rank();
  // Where a group stores depends on the order of the warps; a multiple of a sector keeps the number
  // of sectors apart from it.
  out[at % 8 + 32 * (i / 32)] = keys[i];
}

__global__ void convolve(const float* image, float* out, int width, int height) {
  constexpr int kSide = kTile + 2 * kRadius;
  __shared__ float tile[kSide][kSide];
  const int left = blockIdx.x * kTile - kRadius, top = blockIdx.y * kTile - kRadius;
  for (int y = threadIdx.y; y < kSide; y += kTile)
    for (int x = threadIdx.x; x < kSide; x += kTile) {
      const int column = min(max(left + x, 0), width - 1), row = min(max(top + y, 0), height - 1);
      tile[y][x] = image[row * width + column];
    }
  __syncthreads();
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = 0; dy <= 2 * kRadius; ++dy)
    for (int dx = 0; dx <= 2 * kRadius; ++dx)
      sum += weights[dy * (2 * kRadius + 1) + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
  out[y * width + x] = sum;
}

// A batch of matrices whose rows have a pitch: every block one row.
__global__ void add_batched(const float* a, const float* b, float* c, int columns, int pitch,
                            int64_t stride) {
  const int64_t row = blockIdx.y * stride + static_cast<int64_t>(blockIdx.x) * pitch;
  for (int x = threadIdx.x; x < columns; x += blockDim.x) c[row + x] = a[row + x] + b[row + x];
}

// Four at a time, and the rest one by one.
__global__ void scale_with_tail(const float* __restrict__ a, float* __restrict__ b, float by,
                                int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int fours = n / 4;
  if (i < fours) {
    float4 v = reinterpret_cast<const float4*>(a)[i];
    v.x *= by;
    v.y *= by;
    v.z *= by;
    v.w *= by;
    reinterpret_cast<float4*>(b)[i] = v;
  }
  if (i < n % 4) b[4 * fours + i] = a[4 * fours + i] * by;
}

__global__ void half_axpy(const half2* x, half2* y, half by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(__half2half2(by), x[i], y[i]);
}

// Rows of bytes times a vector of bytes: a warp per row.
__global__ void int8_rows(const int* a, const int* x, int* out, int words) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  int sum = 0;
  for (int i = lane; i < words; i += 32)
    sum = __dp4a(a[static_cast<size_t>(row) * words + i], x[i], sum);
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (lane == 0) out[row] = sum;
}

__global__ void group_sums(const float* a, float* out, int n) {
  __shared__ float parts[8];
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += a[i];
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) parts[warp.meta_group_rank()] = sum;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    float all = warp.thread_rank() < 8 ? parts[warp.thread_rank()] : 0.0f;
    all = cg::reduce(warp, all, cg::plus<float>());
    if (warp.thread_rank() == 0) out[blockIdx.x] = all;
  }
}

__global__ void cub_scan(const int* in, int* out) {
  using Scan = cub::BlockScan<int, 128>;
  __shared__ typename Scan::TempStorage storage;
  const int at = (blockIdx.x * 128 + threadIdx.x) * 4;
  int items[4];
  for (int k = 0; k < 4; ++k) items[k] = in[at + k];
  Scan(storage).InclusiveSum(items, items);
  for (int k = 0; k < 4; ++k) out[at + k] = items[k];
}

// A block per row, float4 loads, sums by shuffles and shared memory.
__global__ void matrix_vector(const float4* a, const float4* x, float* y, int fours) {
  __shared__ float parts[4];
  float sum = 0;
  for (int i = threadIdx.x; i < fours; i += blockDim.x) {
    const float4 p = a[static_cast<size_t>(blockIdx.x) * fours + i], q = x[i];
    sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
  }
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
}

__global__ void scatter(const float* values, const int* index, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[index[i]] = values[i];
}

__global__ void resize_bilinear(const uint8_t* in, uint8_t* out, int width, int height,
                                int new_width, int new_height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= new_width || y >= new_height) return;
  const float fx = (x + 0.5f) * width / new_width - 0.5f;
  const float fy = (y + 0.5f) * height / new_height - 0.5f;
  const int x0 = max(static_cast<int>(floorf(fx)), 0), x1 = min(x0 + 1, width - 1);
  const int y0 = max(static_cast<int>(floorf(fy)), 0), y1 = min(y0 + 1, height - 1);
  const float px = fx - x0, py = fy - y0;
  const float top = in[y0 * width + x0] * (1 - px) + in[y0 * width + x1] * px;
  const float low = in[y1 * width + x0] * (1 - px) + in[y1 * width + x1] * px;
  out[y * new_width + x] = static_cast<uint8_t>(top * (1 - py) + low * py + 0.5f);
}

template <int kTaps>
__global__ void filter(const float* a, float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + kTaps > n) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kTaps; ++k) sum += a[i + k] * weights[k];
  b[i] = sum;
}

// Insertion sort of eight keys per thread, in registers.
__global__ void sort_eights(const int4* in, int4* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int keys[8];
  reinterpret_cast<int4*>(keys)[0] = in[2 * i];
  reinterpret_cast<int4*>(keys)[1] = in[2 * i + 1];
#pragma unroll
  for (int a = 1; a < 8; ++a)
#pragma unroll
    for (int b = a; b > 0; --b) {
      const int low = min(keys[b - 1], keys[b]), high = max(keys[b - 1], keys[b]);
      keys[b - 1] = low;
      keys[b] = high;
    }
  out[2 * i] = reinterpret_cast<int4*>(keys)[0];
  out[2 * i + 1] = reinterpret_cast<int4*>(keys)[1];
}

int main(int count, char** words) {
  constexpr int kN = 1 << 17, kThreads = 128, kBlocks = kN / kThreads;
  int* keys = device_array<int>(kN, scattered(kN, 1000));
  int* places = device_array<int>(kN, scattered(kN, kN));
  auto* a = device_array<float>(4 * kN);
  auto* b = device_array<float>(4 * kN);
  auto* c = device_array<float>(4 * kN);
  int* few = device_array<int>(256);
  auto* bytes = reinterpret_cast<uint8_t*>(a);
  auto* bytes_out = reinterpret_cast<uint8_t*>(b);
  Launches all;
#define RUN(name, blocks, threads, ...) \
  all.add(#name, [=] { name<<<blocks, threads>>>(__VA_ARGS__); });
  RUN(warp_histograms, 96, kThreads, keys, few, kN)
  RUN(compact, kBlocks, kThreads, keys, reinterpret_cast<int*>(c), few + 100, kN)
  RUN(convolve, dim3(24, 19), dim3(kTile, kTile), a, b, 380, 300)
  RUN(add_batched, dim3(60, 8), 96, a, b, c, 500, 512, 64 * 512)
  RUN(scale_with_tail, kBlocks / 4, kThreads, a, b, 2.5f, kN - 1)
  RUN(half_axpy, kBlocks, kThreads, reinterpret_cast<half2*>(a), reinterpret_cast<half2*>(b),
      __float2half(1.5f), kN - 60)
  RUN(int8_rows, 128, kThreads, keys, places, reinterpret_cast<int*>(c), 250)
  RUN(group_sums, 120, 256, a, b, kN - 100)
  RUN(cub_scan, kN / 512, 128, keys, reinterpret_cast<int*>(c))
  RUN(matrix_vector, 400, kThreads, reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b), c,
      300)
  RUN(scatter, kBlocks, kThreads, a, places, b, kN)
  RUN(resize_bilinear, dim3(20, 60), dim3(32, 8), bytes, bytes_out, 500, 400, 620, 470)
  RUN(filter<5>, kBlocks, kThreads, a, b, kN - 31)
  RUN(filter<24>, kBlocks, kThreads, a, b, kN - 31)
  RUN(sort_eights, kN / 8 / kThreads, kThreads, reinterpret_cast<int4*>(keys),
      reinterpret_cast<int4*>(c))
  return all.run(count, words);
}
