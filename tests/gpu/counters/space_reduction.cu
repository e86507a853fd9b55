// SPDX-License-Identifier: Apache-2.0
// Which variants of a sum are ordered by their predicted time? Block, items per thread, width of
// loads, and how a block adds up.
#include "patterns.cuh"

enum Way { kShuffles, kShared, kApart, kAtomics };

template <int BLOCK, Way WAY>
__device__ void add_up(float sum, float* out) {
  __shared__ float part[BLOCK];
  if (WAY == kAtomics) {
    atomicAdd(out, sum);
    return;
  }
  if (WAY == kShuffles) {
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < BLOCK / 32 ? part[threadIdx.x] : 0;
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0) atomicAdd(out, sum);
    return;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  if (WAY == kShared) {
    for (int step = BLOCK / 2; step; step /= 2) {
      if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
      __syncthreads();
    }
  } else {
    for (int step = 1; step < BLOCK; step *= 2) {
      const int i = 2 * step * threadIdx.x;
      if (i < BLOCK) part[i] += part[i + step];
      __syncthreads();
    }
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

template <int BLOCK, int ITEMS, Way WAY>
__global__ void sum(const float* a, float* out) {
  const size_t begin = static_cast<size_t>(blockIdx.x) * BLOCK * ITEMS;
  float sum = 0;
  for (int k = 0; k < ITEMS; ++k) sum += a[begin + k * BLOCK + threadIdx.x];
  add_up<BLOCK, WAY>(sum, out);
}
template <int BLOCK, int ITEMS, Way WAY>
__global__ void sum4(const float4* a, float* out) {
  const size_t begin = static_cast<size_t>(blockIdx.x) * BLOCK * ITEMS;
  float sum = 0;
  for (int k = 0; k < ITEMS; ++k) {
    const float4 v = a[begin + k * BLOCK + threadIdx.x];
    sum += v.x + v.y + v.z + v.w;
  }
  add_up<BLOCK, WAY>(sum, out);
}

int main(int count, char** words) {
  const int n = 1 << 24;
  float *a = device_array<float>(n), *out = device_array<float>(1);
  Launches all;
#define VARIANT(block, items, way)           \
  all.add("sum_" #block "_" #items "_" #way, \
          [=] { sum<block, items, way><<<n / (block) / (items), block>>>(a, out); });
#define VARIANT4(block, items, way)                                                 \
  all.add("sum4_" #block "_" #items "_" #way, [=] {                                 \
    sum4<block, items, way><<<n / 4 / (block) / (items), block>>>((float4*)a, out); \
  });
  VARIANT(64, 1, kShuffles)
  VARIANT(128, 1, kShuffles)
  VARIANT(256, 1, kShuffles)
  VARIANT(1024, 1, kShuffles)
  VARIANT(256, 4, kShuffles)
  VARIANT(256, 16, kShuffles)
  VARIANT(1024, 16, kShuffles)
  VARIANT(256, 1, kShared)
  VARIANT(256, 8, kShared)
  VARIANT(256, 1, kApart)
  VARIANT(256, 8, kApart)
  VARIANT(256, 8, kAtomics)
  VARIANT4(128, 1, kShuffles)
  VARIANT4(256, 1, kShuffles)
  VARIANT4(256, 4, kShuffles)
  VARIANT4(512, 8, kShuffles)
  VARIANT4(256, 4, kShared)
  VARIANT4(256, 4, kApart)
  return all.run(count, words);
}
