// SPDX-License-Identifier: Apache-2.0
// Which variants of a transpose are ordered by their predicted time? Tiles, rows of threads,
// padding; and none of these.
#include "patterns.cuh"

template <int TILE, int ROWS, int PAD>
__global__ void transpose(const float* a, float* b, int width) {
  __shared__ float tile[TILE][TILE + PAD];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS)
    tile[threadIdx.y + k][threadIdx.x] = a[static_cast<size_t>(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS)
    b[static_cast<size_t>(y + k) * width + x] = tile[threadIdx.x][threadIdx.y + k];
}
template <int X, int Y>
__global__ void transpose_directly(const float* a, float* b, int width) {
  const int x = blockIdx.x * X + threadIdx.x, y = blockIdx.y * Y + threadIdx.y;
  b[static_cast<size_t>(x) * width + y] = a[static_cast<size_t>(y) * width + x];
}

int main(int count, char** words) {
  const int width = 4096;
  float* a = device_array<float>(size_t{width} * width);
  float* b = device_array<float>(size_t{width} * width);
  Launches all;
#define VARIANT(tile, rows, pad)                                                   \
  all.add("tile_" #tile "_rows_" #rows "_pad_" #pad, [=] {                         \
    transpose<tile, rows, pad>                                                     \
        <<<dim3(width / (tile), width / (tile)), dim3(tile, rows)>>>(a, b, width); \
  });
#define DIRECT(x, y)                                                                       \
  all.add("direct_" #x "_" #y, [=] {                                                       \
    transpose_directly<x, y><<<dim3(width / (x), width / (y)), dim3(x, y)>>>(a, b, width); \
  });
  VARIANT(8, 8, 0)
  VARIANT(8, 8, 1)
  VARIANT(16, 4, 1)
  VARIANT(16, 16, 0)
  VARIANT(16, 16, 1)
  VARIANT(32, 4, 0)
  VARIANT(32, 4, 1)
  VARIANT(32, 8, 0)
  VARIANT(32, 8, 1)
  VARIANT(32, 16, 1)
  VARIANT(32, 32, 0)
  VARIANT(32, 32, 1)
  VARIANT(64, 4, 1)
  VARIANT(64, 16, 0)
  VARIANT(64, 16, 1)
  DIRECT(32, 8)
  DIRECT(8, 32)
  DIRECT(16, 16)
  return all.run(count, words);
}
