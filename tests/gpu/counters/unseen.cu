// SPDX-License-Identifier: Apache-2.0
// Do the rules hold for kernels that they were not made with? These were written after the rules,
// and neither side is changed for them.
#include "patterns.cuh"

__device__ int global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void every_seventh(const float* a, float* b, int n) {
  const int i = global_thread();
  if (i < n) b[i] = a[static_cast<size_t>(i) * 7 % n];
}
// Pairs that begin 8 bytes past a sector: aligned for their type, not for the warp.
__global__ void shifted_pairs(const float2* a, float2* b, int n) {
  const int i = global_thread();
  if (i + 1 < n) b[i + 1] = a[i + 1];
}
__global__ void shifted_fours(const float4* a, float4* b, int n) {
  const int i = global_thread();
  if (i + 1 < n) b[i] = a[i + 1];
}
__global__ void bytes(const uint8_t* a, uint8_t* b, int n) {
  const int i = global_thread();
  if (i < n) b[i] = static_cast<uint8_t>(a[n - 1 - i] + 3);
}
struct Point {
  float x, y, z;
};
__global__ void points(const Point* a, float* b, int n) {
  const int i = global_thread();
  if (i >= n) return;
  const Point p = a[i];
  b[i] = p.x * p.x + p.y * p.y + p.z * p.z;
}
__global__ void points_out(Point* a, const float* b, int n) {
  const int i = global_thread();
  if (i < n) a[i] = Point{b[i], b[i] + 1, b[i] * 2};
}
// 20 of 32 lanes, and blocks whose last warp has 8.
__global__ void part_of_a_warp(const float* a, float* b, int n) {
  const int i = global_thread();
  if (threadIdx.x % 32 < 20 && i < n) b[i] = 2 * a[i];
}
__global__ void early_exit(const int* keys, float* b, int n) {
  const int i = global_thread();
  if (i >= n || keys[i] % 4 == 0) return;
  float sum = 0;
  for (int k = 0; k < 5; ++k) sum += b[(i + k * 64) % n];
  if (keys[i] % 4 == 1) return;
  b[i] = sum;
}
__global__ void predicated_store(const int* keys, int* b, int n) {
  const int i = global_thread();
  if (i < n && keys[i] > 500) b[i] = keys[i];
}
__global__ void one_for_all(const double* a, double* b, int n) {
  __shared__ double table[64];
  if (threadIdx.x < 64) table[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  const int i = global_thread();
  double sum = 0;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) sum += table[(k * 5) % 64] * table[threadIdx.x % 32];
  if (i < n) b[i] = sum;
}
// Doubles two apart: words four apart.
__global__ void doubles_apart(const double* a, double* b) {
  __shared__ double tile[256];
  tile[threadIdx.x * 3 % 256] = a[global_thread()];
  __syncthreads();
  b[global_thread()] = tile[threadIdx.x * 2 % 256] + tile[threadIdx.x * 33 % 256];
}
__global__ void shared_counts(const int* keys, int* b, int n) {
  __shared__ int bins[96];
  if (threadIdx.x < 96) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = global_thread(); i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[keys[i] % 96], 1);
  __syncthreads();
  if (threadIdx.x < 96) atomicAdd(&b[threadIdx.x], bins[threadIdx.x]);
}
__global__ void places(const int* keys, int* cursor, int* b, int n) {
  const int i = global_thread();
  if (i >= n) return;
  const int at = atomicAdd(&cursor[keys[i] % 8], 1);
  b[(keys[i] % 8) * n + at] = i;
}
__global__ void largest(const int* keys, int* b, int n) {
  const int i = global_thread();
  if (i < n) atomicMax(&b[keys[i] % 64], keys[i]);
}
__global__ void swap_until_done(const float* a, float* b, int n) {
  const int i = global_thread();
  if (i >= n) return;
  atomicExch(&b[i / 2], a[i]);
}
__global__ void local_array(const int* keys, float* b, int n) {
  const int i = global_thread();
  if (i >= n) return;
  float kept[24];
  for (int k = 0; k < 24; ++k) kept[k] = static_cast<float>(k * i);
  for (int k = 0; k < 6; ++k) kept[keys[(i + k) % n] % 24] += 1;
  b[i] = kept[keys[i] % 24];
}
__global__ void shuffled(const float* a, float* b, int n) {
  const int i = global_thread();
  float v = i < n ? a[i] : 0;
  for (int step = 1; step < 32; step *= 2) {
    const float other = __shfl_up_sync(~0u, v, step);
    if (threadIdx.x % 32 >= step) v += other;
  }
  if (i < n) b[i] = v;
}
__global__ void matrices(const uint16_t* a, uint32_t* b) {
  __shared__ __align__(16) uint16_t tile[32][24];
  for (int i = threadIdx.x; i < 32 * 16; i += blockDim.x) tile[i / 16][i % 16] = a[i];
  __syncthreads();
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[threadIdx.x % 32][0]));
  uint32_t r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
  b[global_thread()] = r[0] + r[1] + r[2] + r[3];
}
__global__ void async_rows(const float4* a, float4* b) {
  __shared__ float4 tile[2][128];
  const auto copy = [&](int stage, int step) {
    const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[stage][threadIdx.x]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
                 "l"(a + (blockIdx.x * 4 + step) * 128 + threadIdx.x));
    asm volatile("cp.async.commit_group;");
  };
  copy(0, 0);
  float4 sum{};
#pragma unroll 1
  for (int step = 0; step < 4; ++step) {
    if (step < 3) copy((step + 1) % 2, step + 1);
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    const float4 v = tile[step % 2][127 - threadIdx.x];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    __syncthreads();
  }
  b[blockIdx.x * 128 + threadIdx.x] = sum;
}
// A scan by one block in shared memory, with two buffers.
__global__ void scan_block(const int* a, int* b) {
  __shared__ int part[2][256];
  int now = 0;
  part[0][threadIdx.x] = a[global_thread()];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const int mine = part[now][threadIdx.x];
    part[1 - now][threadIdx.x] = threadIdx.x >= step ? mine + part[now][threadIdx.x - step] : mine;
    now = 1 - now;
    __syncthreads();
  }
  b[global_thread()] = part[now][threadIdx.x];
}
__global__ void column_sums(const float* a, float* b, int rows, int columns) {
  const int column = global_thread();
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += a[static_cast<size_t>(row) * columns + column];
  b[column] = sum;
}
__global__ void search(const int* sorted, const int* keys, int* b, int n, int size) {
  const int i = global_thread();
  if (i >= n) return;
  int low = 0, high = size;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sorted[middle] < keys[i])
      low = middle + 1;
    else
      high = middle;
  }
  b[i] = low;
}

int main(int count, char** words) {
  constexpr int kN = 1 << 17, kThreads = 128, kBlocks = kN / kThreads;
  const std::vector<int> drawn = scattered(kN, 1000);
  std::vector<int> rising(4096);
  for (int i = 0; i < 4096; ++i) rising[i] = i / 4;
  int* keys = device_array<int>(kN, drawn);
  int* sorted = device_array<int>(4096, rising);
  auto* a = device_array<float>(4 * kN);
  auto* b = device_array<float>(4 * kN);
  auto* ints = device_array<int>(8 * kN);
  int* few = device_array<int>(256);
  auto* wide = reinterpret_cast<double*>(a);
  auto* wide_out = reinterpret_cast<double*>(b);
  auto* fours = reinterpret_cast<float4*>(a);
  auto* fours_out = reinterpret_cast<float4*>(b);
  Launches all;
#define RUN(name, blocks, threads, ...) \
  all.add(#name, [=] { name<<<blocks, threads>>>(__VA_ARGS__); });
  RUN(every_seventh, kBlocks, kThreads, a, b, kN)
  RUN(shifted_pairs, kBlocks, kThreads, reinterpret_cast<float2*>(a), reinterpret_cast<float2*>(b),
      kN)
  RUN(shifted_fours, kBlocks, kThreads, fours, fours_out, kN)
  RUN(bytes, kBlocks, kThreads, reinterpret_cast<uint8_t*>(a), reinterpret_cast<uint8_t*>(b), kN)
  RUN(points, kBlocks, kThreads, reinterpret_cast<Point*>(a), b, kN)
  RUN(points_out, kBlocks, kThreads, reinterpret_cast<Point*>(a), b, kN)
  RUN(part_of_a_warp, kN / 200, 200, a, b, kN)
  RUN(early_exit, kBlocks, kThreads, keys, b, kN)
  RUN(predicated_store, kBlocks, kThreads, keys, ints, kN)
  RUN(one_for_all, kBlocks, kThreads, wide, wide_out, kN)
  RUN(doubles_apart, kN / 256, 256, wide, wide_out)
  RUN(shared_counts, 64, 256, keys, few, kN)
  RUN(places, kBlocks, kThreads, keys, few + 128, ints, kN)
  RUN(largest, kBlocks, kThreads, keys, few, kN)
  RUN(swap_until_done, kBlocks, kThreads, a, b, kN)
  RUN(local_array, kBlocks, kThreads, keys, b, kN)
  RUN(shuffled, kBlocks, kThreads, a, b, kN)
  RUN(matrices, 256, 64, reinterpret_cast<uint16_t*>(a), reinterpret_cast<uint32_t*>(b))
  RUN(async_rows, 256, 128, fours, fours_out)
  RUN(scan_block, kN / 256, 256, ints, ints + kN)
  RUN(column_sums, 16, 256, a, b, 100, 4096)
  RUN(search, kBlocks, kThreads, sorted, keys, ints, kN, 4096)
  return all.run(count, words);
}
