// SPDX-License-Identifier: Apache-2.0
// Do all launches of a process give the right values, whatever ran before? Images of several
// widths, arrays in several allocations, kernels with more and with less local memory, and loops
// over arrays that are larger than any cache near a core.

#include <vector>

#include "expect.h"

template <class T>
T* shared_array(size_t count) {
  T* array = nullptr;
  EXPECT_OK(cudaMallocManaged(&array, count * sizeof(T)));
  return array;
}

// The border keeps its values.
__global__ void blur(const int* in, int* out, int width, int height) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int sum = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) sum += in[(y + dy) * width + x + dx];
  }
  out[y * width + x] = sum / 9;
}

void test_widths() {
  constexpr int kMost = 700, kHeight = 150;
  int* in = shared_array<int>(kMost * kHeight);
  int* out = shared_array<int>(kMost * kHeight);
  for (int i = 0; i < kMost * kHeight; ++i) in[i] = i * 2654435761u >> 20;
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    for (const int width : {640, 333, 500, 64, 700, 33}) {
      std::memset(out, 0, sizeof(int) * kMost * kHeight);
      const dim3 block(32, 8), grid((width + 31) / 32, (kHeight + 7) / 8);
      blur<<<grid, block>>>(in, out, width, kHeight);
      EXPECT_OK(cudaDeviceSynchronize());
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < width; ++x) {
          int wanted = 0;
          if (x > 0 && y > 0 && x < width - 1 && y < kHeight - 1) {
            for (int i = 0; i < 9; ++i) wanted += in[(y + i / 3 - 1) * width + x + i % 3 - 1];
            wanted /= 9;
          }
          wrong += out[y * width + x] != wanted;
        }
      }
    }
  }
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(in));
  EXPECT_OK(cudaFree(out));
}

// Each thread solves one system; the rows of all systems are neighbours.
__global__ void solve(const float* a, const float* b, const float* c, float* x, float* next,
                      int rows, int systems) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at >= systems) return;
  next[at] = c[at] / b[at];
  x[at] = x[at] / b[at];
  for (int row = 1; row < rows; ++row) {
    const int here = row * systems + at, before = here - systems;
    const float by = 1.0f / (b[here] - a[here] * next[before]);
    next[here] = c[here] * by;
    x[here] = (x[here] - a[here] * x[before]) * by;
  }
  for (int row = rows - 2; row >= 0; --row) {
    const int here = row * systems + at;
    x[here] -= next[here] * x[here + systems];
  }
}

void test_systems() {
  constexpr int kRows = 64, kSystems = 2000;
  constexpr size_t kCount = size_t{kRows} * kSystems;
  float* arrays[5];
  for (float*& array : arrays) array = shared_array<float>(kCount);
  float *a = arrays[0], *b = arrays[1], *c = arrays[2], *x = arrays[3];
  // The solution is 1, 2, 3, 4, 1, ...: the sums are exact, so the right side is too.
  const auto solution = [](int row) { return static_cast<float>(row % 4 + 1); };
  for (int row = 0; row < kRows; ++row) {
    for (int at = 0; at < kSystems; ++at) {
      const size_t here = size_t{static_cast<unsigned>(row)} * kSystems + at;
      a[here] = row == 0 ? 0.0f : static_cast<float>(at % 3 + 1);
      c[here] = row == kRows - 1 ? 0.0f : static_cast<float>(at % 2 + 1);
      b[here] = static_cast<float>(8 + at % 5);
      x[here] = b[here] * solution(row);
      if (row > 0) x[here] += a[here] * solution(row - 1);
      if (row < kRows - 1) x[here] += c[here] * solution(row + 1);
    }
  }
  solve<<<(kSystems + 127) / 128, 128>>>(a, b, c, x, arrays[4], kRows, kSystems);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const float off = x[i] - solution(static_cast<int>(i / kSystems));
    wrong += !(off < 1e-4f && off > -1e-4f);
  }
  EXPECT(wrong == 0);
  for (float* array : arrays) EXPECT_OK(cudaFree(array));
}

// The most frequent of 64 digits, counted in local memory.
template <int kExtra>
__global__ void most_frequent(const unsigned char* digits, int* out, int count) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at >= count) return;
  int counts[10 + kExtra];
  for (int i = 0; i < 10 + kExtra; ++i) counts[i] = 0;
  for (int i = 0; i < 64; ++i) ++counts[digits[i * count + at] % 10 + kExtra];
  int best = 0;
  for (int digit = 1; digit < 10; ++digit) {
    if (counts[digit + kExtra] > counts[best + kExtra]) best = digit;
  }
  out[at] = best;
}

void test_local_memory() {
  constexpr int kCount = 5000;
  auto* digits = shared_array<unsigned char>(size_t{64} * kCount);
  int* out = shared_array<int>(kCount);
  for (int i = 0; i < 64 * kCount; ++i)
    digits[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
  int wrong = 0;
  for (int round = 0; round < 6; ++round) {
    std::memset(out, 0xff, sizeof(int) * kCount);
    if (round % 2)
      most_frequent<200><<<(kCount + 127) / 128, 128>>>(digits, out, kCount);
    else
      most_frequent<0><<<(kCount + 127) / 128, 128>>>(digits, out, kCount);
    EXPECT_OK(cudaDeviceSynchronize());
    for (int at = 0; at < kCount; ++at) {
      int counts[10] = {}, best = 0;
      for (int i = 0; i < 64; ++i) ++counts[digits[i * kCount + at] % 10];
      for (int digit = 1; digit < 10; ++digit) best = counts[digit] > counts[best] ? digit : best;
      wrong += out[at] != best;
    }
  }
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(digits));
  EXPECT_OK(cudaFree(out));
}

// All threads of the grid share the array.
__global__ void add_product(unsigned by, const unsigned* in, unsigned* out, int count) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += step)
    out[i] += by * in[i];
}

__global__ void sum_columns(const unsigned* in, unsigned* sums, size_t rows, size_t columns) {
  const size_t column = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  unsigned sum = 0;
  for (size_t row = rows; row-- > 0;) sum = sum * 3 + in[row * columns + column];
  sums[column] = sum;
}

void test_large_arrays() {
  constexpr int kCount = 3000017;  // no multiple of anything
  unsigned* in = shared_array<unsigned>(kCount);
  unsigned* out = shared_array<unsigned>(kCount);
  std::vector<unsigned> wanted(kCount);
  for (int i = 0; i < kCount; ++i) {
    in[i] = i * 2654435761u;
    out[i] = wanted[i] = static_cast<unsigned>(i);
  }
  for (const int blocks : {16, 64, 1000, 3}) {
    const auto by = static_cast<unsigned>(blocks);
    add_product<<<blocks, 256>>>(by, in, out, kCount);
    for (int i = 0; i < kCount; ++i) wanted[i] += by * in[i];
  }
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(std::memcmp(out, wanted.data(), sizeof(unsigned) * kCount) == 0);
  for (const size_t columns : {1500u, 4096u}) {
    const size_t rows = kCount / columns;
    sum_columns<<<static_cast<unsigned>((columns + 127) / 128), 128>>>(in, out, rows, columns);
    EXPECT_OK(cudaDeviceSynchronize());
    int wrong = 0;
    for (size_t column = 0; column < columns; ++column) {
      unsigned sum = 0;
      for (size_t row = rows; row-- > 0;) sum = sum * 3 + in[row * columns + column];
      wrong += out[column] != sum;
    }
    EXPECT(wrong == 0);
  }
  EXPECT_OK(cudaFree(in));
  EXPECT_OK(cudaFree(out));
}

int main() {
  test_widths();
  test_systems();
  test_local_memory();
  test_large_arrays();
  return finish();
}
