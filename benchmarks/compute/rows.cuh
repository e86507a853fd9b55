// SPDX-License-Identifier: Apache-2.0
// Which kernels of the benchmark reduce, scan and normalise rows?
#pragma once

#include <cmath>

namespace compute {

constexpr int kThreads = 256;

// A tree in shared memory; every thread gets the result.
template <class Combine>
__device__ float over_block(float value, float* shared, Combine combine) {
  const int t = threadIdx.x;
  shared[t] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) shared[t] = combine(shared[t], shared[t + half]);
    __syncthreads();
  }
  const float all = shared[0];
  __syncthreads();
  return all;
}

// A block for each row.
__global__ void softmax(const float* a, float* out, int n) {
  __shared__ float shared[kThreads];
  const float* row = a + blockIdx.x * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += kThreads) most = fmaxf(most, row[i]);
  most = over_block(most, shared, [](float x, float y) { return fmaxf(x, y); });
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += kThreads) sum += expf(row[i] - most);
  sum = over_block(sum, shared, [](float x, float y) { return x + y; });
  for (int i = threadIdx.x; i < n; i += kThreads)
    out[blockIdx.x * n + i] = expf(row[i] - most) / sum;
}

// A warp for each row, with shuffles.
__global__ void layer_norm(const float* a, float* out, int n) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* from = a + row * n;
  float sum = 0, squares = 0;
  for (int i = lane; i < n; i += 32) {
    sum += from[i];
    squares += from[i] * from[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(~0u, sum, offset);
    squares += __shfl_xor_sync(~0u, squares, offset);
  }
  const float mean = sum / n, scale = rsqrtf(squares / n - mean * mean + 1e-5f);
  for (int i = lane; i < n; i += 32) out[row * n + i] = (from[i] - mean) * scale;
}

__global__ void reduction(const float* a, float* out, int n) {
  __shared__ float shared[kThreads];
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) sum += a[i];
  sum = over_block(sum, shared, [](float x, float y) { return x + y; });
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Of each block for itself.
__global__ void scan(const float* a, float* out) {
  __shared__ float rows[2][kThreads];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  rows[0][t] = a[i];
  __syncthreads();
  int from = 0;
  for (int step = 1; step < kThreads; step *= 2) {
    rows[1 - from][t] = rows[from][t] + (t >= step ? rows[from][t - step] : 0.0f);
    from = 1 - from;
    __syncthreads();
  }
  out[i] = rows[from][t];
}

// A thread for each query; keys and values pass through shared memory.
template <int kHead>
__global__ void attention(const float* q, const float* k, const float* v, float* out, int n) {
  __shared__ float keys[32][kHead], values[32][kHead];
  const int row = blockIdx.x * 32 + threadIdx.x;
  float query[kHead], sums[kHead] = {}, most = -INFINITY, total = 0;
  for (int d = 0; d < kHead; ++d) query[d] = q[d * n + row];
  for (int first = 0; first < n; first += 32) {
    for (int d = 0; d < kHead; ++d) {
      keys[threadIdx.x][d] = k[d * n + first + threadIdx.x];
      values[threadIdx.x][d] = v[d * n + first + threadIdx.x];
    }
    __syncthreads();
    for (int j = 0; j < 32; ++j) {
      float score = 0;
      for (int d = 0; d < kHead; ++d) score += query[d] * keys[j][d];
      const float larger = fmaxf(most, score), shrink = expf(most - larger),
                  weight = expf(score - larger);
      total = total * shrink + weight;
      for (int d = 0; d < kHead; ++d) sums[d] = sums[d] * shrink + weight * values[j][d];
      most = larger;
    }
    __syncthreads();
  }
  for (int d = 0; d < kHead; ++d) out[d * n + row] = sums[d] / total;
}

}  // namespace compute
