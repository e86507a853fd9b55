// SPDX-License-Identifier: Apache-2.0
// Do kernels that run long enough for the engine to compile them give what plain loops give? One
// for each shape that machine code treats in a way of its own, at sizes that fit no warp.

#include <vector>

#include "expect.h"

constexpr int kTimes = 60;  // launches: often enough

// Four floats a lane, and the rest one by one.
__global__ void scale(const float4* in, float4* out, float by, int fours, int all) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < fours) {
    const float4 v = in[i];
    out[i] = make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
  }
  if (i < all - fours * 4) {
    const int at = fours * 4 + i;
    reinterpret_cast<float*>(out)[at] = reinterpret_cast<const float*>(in)[at] * by;
  }
}

// A row whose end is the end of the array.
__global__ void add_rows(const double* in, double* out, int columns) {
  double sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x))
    sum += in[static_cast<int>(blockIdx.x) * columns + c];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Indices of ints through the read-only cache, and a row that ends early.
__global__ void gather(const int* columns, const float* x, float* out, int rows, int width) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    const int column = __ldg(&columns[k * rows + row]);
    if (column < 0) break;
    sum += __ldg(&x[column]);
  }
  out[row] = sum;
}

// What a call gives is compared before the next call.
__device__ __noinline__ int last_above(const float* v, int n, float x, float y, float z) {
  int at = -1;
  for (int i = 0; i < n; ++i) {
    if (v[i] * y - z > x) at = i;
  }
  return at;
}
__global__ void call_twice(const float* v, int n, float* out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const float x = static_cast<float>(i) * 0.25f, y = x + 1, z = 2 * y;
  const int first = last_above(v, n, x, z, y);
  float sum = first < 0 ? 1 : 0;
  sum += static_cast<float>(last_above(v, n, -x, -y, -z));
  out[i] = sum;
}

// Neighbours that are there on conditions, one inside the other.
__device__ __host__ int cell(const int* in, int x, int y, int w, int h) {
  int sum = 0;
  if (x > 0 || y > 2) {
    sum += x > 0 ? in[y * w + x - 1] : 7;
    if (y + 1 < h) {
      sum += 3 * in[(y + 1) * w + x];
      if ((sum & 3) == 1 && x + 1 < w) sum ^= in[y * w + x + 1];
    }
  }
  return sum;
}
__global__ void cells(const int* in, int* out, int w, int h) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
            y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < w && y < h) out[y * w + x] = cell(in, x, y, w, h);
}

// Those that are kept come together: a vote, its bits, and a counter that all blocks share.
__global__ void keep(const unsigned* in, unsigned* bits, int* counts, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const unsigned value = i < n ? in[i] : 0;
  const unsigned kept = __ballot_sync(0xffffffffu, (value & 5) == 5);
  if (threadIdx.x % 32 == 0) {
    bits[i / 32] = kept;
    atomicAdd(&counts[__popc(kept) & 3], __clz(static_cast<int>(__brev(kept))));
  }
}

template <class T>
T* managed(size_t count) {
  T* out = nullptr;
  EXPECT_OK(cudaMallocManaged(&out, count * sizeof(T)));
  return out;
}

void test_scale() {
  for (const int n : {1000, 4099, 20003}) {
    float *in = managed<float>(n), *out = managed<float>(n);
    for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i % 251) - 100;
    const int blocks = n / 4 / 128 + 1;
    for (int t = 0; t < kTimes; ++t)
      scale<<<blocks, 128>>>(reinterpret_cast<float4*>(in), reinterpret_cast<float4*>(out), 1.5f,
                             n / 4, n);
    EXPECT_OK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += out[i] != in[i] * 1.5f;
    EXPECT(wrong == 0);
  }
}

void test_add_rows() {
  constexpr int kRows = 40;
  for (const int columns : {64, 87, 97, 500, 1111}) {
    double *in = managed<double>(kRows * columns), *out = managed<double>(kRows);
    for (int i = 0; i < kRows * columns; ++i) in[i] = i % 37 - 11;
    for (int t = 0; t < kTimes; ++t) add_rows<<<kRows, 32>>>(in, out, columns);
    EXPECT_OK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int c = 0; c < columns; ++c) sum += in[row * columns + c];
      wrong += out[row] != sum;  // whole numbers: in any order
    }
    EXPECT(wrong == 0);
  }
}

void test_gather() {
  constexpr int kRows = 3001, kWidth = 9;
  int* columns = managed<int>(kRows * kWidth);
  float *x = managed<float>(kRows), *out = managed<float>(kRows);
  for (int i = 0; i < kRows; ++i) x[i] = static_cast<float>(i % 19);
  for (int i = 0; i < kRows * kWidth; ++i) columns[i] = i % 7 == 3 ? -1 : i * 31 % kRows;
  for (int t = 0; t < kTimes; ++t) gather<<<kRows / 128 + 1, 128>>>(columns, x, out, kRows, kWidth);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    for (int k = 0; k < kWidth && columns[k * kRows + row] >= 0; ++k)
      sum += x[columns[k * kRows + row]];
    wrong += out[row] != sum;
  }
  EXPECT(wrong == 0);
}

void test_call_twice() {
  constexpr int kCount = 5000, kValues = 25;
  float *v = managed<float>(kValues), *out = managed<float>(kCount);
  for (int i = 0; i < kValues; ++i) v[i] = static_cast<float>(i * 7 % 25) / 4;
  for (int t = 0; t < kTimes; ++t) call_twice<<<kCount / 128 + 1, 128>>>(v, kValues, out, kCount);
  EXPECT_OK(cudaDeviceSynchronize());
  const auto above = [&](float x, float y, float z) {
    int at = -1;
    for (int i = 0; i < kValues; ++i) at = v[i] * y - z > x ? i : at;
    return at;
  };
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const float x = static_cast<float>(i) * 0.25f, y = x + 1, z = 2 * y;
    const float sum = (above(x, z, y) < 0 ? 1.f : 0.f) + static_cast<float>(above(-x, -y, -z));
    wrong += out[i] != sum;
  }
  EXPECT(wrong == 0);
}

void test_cells() {
  for (const int w : {100, 129}) {
    const int h = 77;
    int *in = managed<int>(w * h), *out = managed<int>(w * h);
    for (int i = 0; i < w * h; ++i) in[i] = i * 7919 % 1009;
    for (const dim3 block : {dim3(16, 16), dim3(32, 4), dim3(8, 8)}) {
      for (int i = 0; i < w * h; ++i) out[i] = -1;
      const dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
      for (int t = 0; t < kTimes; ++t) cells<<<grid, block>>>(in, out, w, h);
      EXPECT_OK(cudaDeviceSynchronize());
      int wrong = 0;
      for (int i = 0; i < w * h; ++i) wrong += out[i] != cell(in, i % w, i / w, w, h);
      EXPECT(wrong == 0);
    }
  }
}

void test_keep() {
  constexpr int kCount = 9999, kWarps = (kCount + 127) / 128 * 4;
  unsigned *in = managed<unsigned>(kCount), *bits = managed<unsigned>(kWarps);
  int* counts = managed<int>(4);
  for (int i = 0; i < kCount; ++i) in[i] = static_cast<unsigned>(i) * 2654435761u >> 20;
  for (int i = 0; i < 4; ++i) counts[i] = 0;
  for (int t = 0; t < kTimes; ++t) keep<<<kWarps / 4, 128>>>(in, bits, counts, kCount);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0, wanted[4] = {};
  for (int w = 0; w < kWarps; ++w) {
    unsigned kept = 0;
    int count = 0, first = 32;
    for (int i = 31; i >= 0; --i) {
      const bool is_kept = w * 32 + i < kCount && (in[w * 32 + i] & 5) == 5;
      kept |= is_kept ? 1u << i : 0;
      count += is_kept;
      first = is_kept ? i : first;
    }
    wrong += bits[w] != kept;
    wanted[count & 3] += kTimes * first;
  }
  for (int i = 0; i < 4; ++i) wrong += counts[i] != wanted[i];
  EXPECT(wrong == 0);
}

int main() {
  test_scale();
  test_add_rows();
  test_gather();
  test_call_twice();
  test_cells();
  test_keep();
  return finish();
}
