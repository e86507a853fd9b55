// SPDX-License-Identifier: Apache-2.0
// Which variants of a softmax of rows are ordered by their predicted time? Threads per row, width
// of loads, and whether a row is read again, kept in registers, or kept in shared memory.
#include "patterns.cuh"

enum Keep { kAgain, kRegisters, kTile };
constexpr int kWidth = 2048;

template <int THREADS, class Combine>
__device__ float over_block(float value, float* part, Combine combine) {
  for (int step = 16; step; step /= 2) value = combine(value, __shfl_xor_sync(~0u, value, step));
  if (THREADS == 32) return value;
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = part[0];
  for (int i = 1; i < THREADS / 32; ++i) value = combine(value, part[i]);
  return value;
}

template <int THREADS, Keep KEEP>
__global__ void softmax(const float* a, float* b) {
  constexpr int kItems = kWidth / THREADS;
  __shared__ float part[THREADS / 32], tile[KEEP == kTile ? kWidth : 1];
  const float* row = a + static_cast<size_t>(blockIdx.x) * kWidth;
  float* to = b + static_cast<size_t>(blockIdx.x) * kWidth;
  float kept[KEEP == kRegisters ? kItems : 1];
  float most = -1e30f, sum = 0;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const float v = row[k * THREADS + threadIdx.x];
    if (KEEP == kRegisters) kept[KEEP == kRegisters ? k : 0] = v;
    if (KEEP == kTile) tile[k * THREADS + threadIdx.x] = v;
    most = fmaxf(most, v);
  }
  most = over_block<THREADS>(most, part, [](float x, float y) { return fmaxf(x, y); });
  const auto value = [&](int k) {
    if (KEEP == kRegisters) return kept[KEEP == kRegisters ? k : 0];
    return KEEP == kTile ? tile[k * THREADS + threadIdx.x] : row[k * THREADS + threadIdx.x];
  };
#pragma unroll
  for (int k = 0; k < kItems; ++k) sum += __expf(value(k) - most);
  sum = over_block<THREADS>(sum, part, [](float x, float y) { return x + y; });
#pragma unroll
  for (int k = 0; k < kItems; ++k) to[k * THREADS + threadIdx.x] = __expf(value(k) - most) / sum;
}
// One thread per row: every access of a warp touches 32 rows.
template <int THREADS>
__global__ void softmax_of_threads(const float* a, float* b) {
  const float* row = a + (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * kWidth;
  float* to = b + (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * kWidth;
  float most = -1e30f, sum = 0;
  for (int i = 0; i < kWidth; ++i) most = fmaxf(most, row[i]);
  for (int i = 0; i < kWidth; ++i) sum += __expf(row[i] - most);
  for (int i = 0; i < kWidth; ++i) to[i] = __expf(row[i] - most) / sum;
}

int main(int count, char** words) {
  const int rows = 8192;
  float* a = device_array<float>(size_t{rows} * kWidth);
  float* b = device_array<float>(size_t{rows} * kWidth);
  Launches all;
#define VARIANT(threads, keep) \
  all.add("softmax_" #threads "_" #keep, [=] { softmax<threads, keep><<<rows, threads>>>(a, b); });
  VARIANT(32, kAgain)
  VARIANT(64, kAgain)
  VARIANT(128, kAgain)
  VARIANT(256, kAgain)
  VARIANT(1024, kAgain)
  VARIANT(32, kTile)
  VARIANT(128, kTile)
  VARIANT(256, kTile)
  VARIANT(1024, kTile)
  VARIANT(64, kRegisters)
  VARIANT(128, kRegisters)
  VARIANT(256, kRegisters)
  VARIANT(1024, kRegisters)
  all.add("threads_64", [=] { softmax_of_threads<64><<<rows / 64, 64>>>(a, b); });
  all.add("threads_256", [=] { softmax_of_threads<256><<<rows / 256, 256>>>(a, b); });
  return all.run(count, words);
}
