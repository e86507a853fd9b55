// SPDX-License-Identifier: Apache-2.0
// Do lanes that come to a shuffle at several places exchange what they bring? nvcc unrolls the loop
// over the columns of a row by four, and lanes that have a column less begin with the rest.

#include "expect.h"

constexpr int kRows = 4, kMost = 1000;

__global__ void sums(const int* in, int* out, int columns) {
  const int lane = static_cast<int>(threadIdx.x);
  const int* from = in + blockIdx.x * columns;
  int* to = out + blockIdx.x * columns;
  int before = 0;
  for (int c = lane; c < columns; c += 32) {
    int sum = from[c];
    for (int by = 1; by < 32; by *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += other;
    }
    sum += before;
    to[c] = sum;
    before = __shfl_sync(0xffffffffu, sum, 31);
  }
}

int main() {
  int *in = nullptr, *out = nullptr;
  EXPECT_OK(cudaMallocManaged(&in, kRows * kMost * sizeof(int)));
  EXPECT_OK(cudaMallocManaged(&out, kRows * kMost * sizeof(int)));
  for (const int columns : {31, 33, 84, 480, 500, 999, kMost}) {
    for (int i = 0; i < kRows * columns; ++i) in[i] = i * 37 % 21 - 7, out[i] = 0;
    // Often enough for the engine to compile it.
    for (int i = 0; i < 50; ++i) sums<<<kRows, 32>>>(in, out, columns);
    EXPECT_OK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int row = 0; row < kRows; ++row) {
      for (int c = 0, sum = 0; c < columns; ++c) {
        sum += in[row * columns + c];
        wrong += out[row * columns + c] != sum;
      }
    }
    EXPECT(wrong == 0);
  }
  EXPECT_OK(cudaFree(in));
  EXPECT_OK(cudaFree(out));
  return finish();
}
