// SPDX-License-Identifier: Apache-2.0
// Which kernels of the benchmark work on tiles of a matrix?
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace compute {

constexpr int kSide = 256;  // rows and columns of every matrix

template <int kTile>
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void transpose(const float* a, float* out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void stencil(const float* a, float* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  const int i = y * n + x;
  out[i] = 0.5f * a[i] + 0.125f * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n]);
}

__constant__ float weights[5][5] = {
    {1, 2, 3, 2, 1}, {2, 4, 6, 4, 2}, {3, 6, 9, 6, 3}, {2, 4, 6, 4, 2}, {1, 2, 3, 2, 1}};

__global__ void convolution(const float* a, float* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      const int sx = min(max(x + dx, 0), n - 1), sy = min(max(y + dy, 0), n - 1);
      sum += weights[dy + 2][dx + 2] * a[sy * n + sx];
    }
  }
  out[y * n + x] = sum;
}

// One warp for a tile of 16 x 8, straight from memory.
__global__ void mma_gemm(const __half* a, const __half* b, float* c, int n) {
  const int lane = threadIdx.x, group = lane / 4, pair = lane % 4;
  const __half* rows = a + (blockIdx.y * 16 + group) * n + pair * 2;
  const __half* columns = b + (blockIdx.x * 8 + group) * n + pair * 2;  // b is column-major
  float sum[4] = {};
  for (int k = 0; k < n; k += 16) {
    const auto at = [](const __half* from) { return *reinterpret_cast<const uint32_t*>(from); };
    const uint32_t a0 = at(rows + k), a1 = at(rows + 8 * n + k), a2 = at(rows + k + 8),
                   a3 = at(rows + 8 * n + k + 8), b0 = at(columns + k), b1 = at(columns + k + 8);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  float* to = c + (blockIdx.y * 16 + group) * n + blockIdx.x * 8 + pair * 2;
  to[0] = sum[0];
  to[1] = sum[1];
  to[8 * n] = sum[2];
  to[8 * n + 1] = sum[3];
}

}  // namespace compute
