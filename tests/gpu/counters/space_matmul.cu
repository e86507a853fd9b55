// SPDX-License-Identifier: Apache-2.0
// Which variants of a product of matrices are ordered by their predicted time? Tiles of blocks and
// of threads, depth of a step, padding; and one without shared memory.
#include "patterns.cuh"

// Each thread has TM x TN results; a block BM x BN; a step goes BK deep.
template <int BM, int BN, int BK, int TM, int TN, int PAD>
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  constexpr int kThreads = (BM / TM) * (BN / TN);
  __shared__ float as[BK][BM + PAD], bs[BK][BN];
  const int thread = threadIdx.x, row = thread / (BN / TN), column = thread % (BN / TN);
  float sums[TM][TN] = {};
  for (int k = 0; k < n; k += BK) {
    for (int i = thread; i < BM * BK; i += kThreads)
      as[i % BK][i / BK] = a[static_cast<size_t>(blockIdx.y * BM + i / BK) * n + k + i % BK];
    for (int i = thread; i < BK * BN; i += kThreads)
      bs[i / BN][i % BN] = b[static_cast<size_t>(k + i / BN) * n + blockIdx.x * BN + i % BN];
    __syncthreads();
    for (int j = 0; j < BK; ++j) {
      float x[TM], y[TN];
      for (int i = 0; i < TM; ++i) x[i] = as[j][row * TM + i];
      for (int i = 0; i < TN; ++i) y[i] = bs[j][column + i * (BN / TN)];
      for (int i = 0; i < TM; ++i)
        for (int l = 0; l < TN; ++l) sums[i][l] += x[i] * y[l];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int l = 0; l < TN; ++l)
      c[static_cast<size_t>(blockIdx.y * BM + row * TM + i) * n + blockIdx.x * BN + column +
        l * (BN / TN)] = sums[i][l];
}
template <int X, int Y>
__global__ void matmul_directly(const float* a, const float* b, float* c, int n) {
  const int x = blockIdx.x * X + threadIdx.x, y = blockIdx.y * Y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[static_cast<size_t>(y) * n + k] * b[k * n + x];
  c[static_cast<size_t>(y) * n + x] = sum;
}

int main(int count, char** words) {
  const int n = 768;
  float *a = device_array<float>(n * n), *b = device_array<float>(n * n);
  float* c = device_array<float>(n * n);
  Launches all;
#define VARIANT(bm, bn, bk, tm, tn, pad)                                       \
  all.add("tile_" #bm "x" #bn "x" #bk "_" #tm "x" #tn "_" #pad, [=] {          \
    matmul<bm, bn, bk, tm, tn, pad>                                            \
        <<<dim3(n / (bn), n / (bm)), (bm) / (tm) * (bn) / (tn)>>>(a, b, c, n); \
  });
#define DIRECT(x, y)           \
  all.add("direct_" #x "_" #y, \
          [=] { matmul_directly<x, y><<<dim3(n / (x), n / (y)), dim3(x, y)>>>(a, b, c, n); });
  VARIANT(16, 16, 16, 1, 1, 0)
  VARIANT(16, 16, 16, 1, 1, 1)
  VARIANT(32, 32, 32, 1, 1, 0)
  VARIANT(32, 32, 32, 1, 1, 1)
  VARIANT(32, 32, 16, 2, 2, 1)
  VARIANT(32, 32, 16, 4, 4, 1)
  VARIANT(64, 64, 8, 4, 4, 0)
  VARIANT(64, 64, 8, 4, 4, 1)
  VARIANT(64, 64, 16, 4, 4, 1)
  VARIANT(64, 64, 16, 8, 8, 1)
  VARIANT(128, 64, 8, 8, 4, 1)
  VARIANT(128, 128, 8, 8, 8, 1)
  DIRECT(32, 8)
  DIRECT(16, 16)
  DIRECT(8, 32)
  return all.run(count, words);
}
