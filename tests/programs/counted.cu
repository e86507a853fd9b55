// SPDX-License-Identifier: Apache-2.0
// Do kernels that run long enough to be compiled count right? Atomics in loops and behind branches,
// beside stores to the end of an array; bytes that are packed, and f64 rounded to whole numbers.

#include <algorithm>
#include <cmath>
#include <vector>

#include "expect.h"

constexpr int kTimes = 60;  // launches: often enough

struct Totals {
  unsigned seen, matches, listed;
  int most;
  unsigned long long sum;
};

// The last warp is at the end of `copy`.
__global__ void count(const unsigned* in, unsigned* copy, unsigned* list, Totals* totals, int n) {
  const int first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (first < n) {
    atomicAdd(&totals->seen, 1u);
    copy[first] = in[first];
  }
  for (int i = first; i < n; i += static_cast<int>(gridDim.x * blockDim.x)) {
    const unsigned value = in[i];
    atomicMax(&totals->most, static_cast<int>(value >> 3));
    if (value % 3 == 1) {
      atomicAdd(&totals->matches, 1u);
      atomicAdd(&totals->sum, static_cast<unsigned long long>(value));
    }
    if (value % 64 == 5) list[atomicAdd(&totals->listed, 1u)] = value;
  }
}

__global__ void pack(const unsigned* in, const double* x, unsigned* out, double* whole, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    const unsigned a = in[i], b = in[(i + 1) % n];
    const unsigned halves = __byte_perm(a, b, 0x5410), turned = __byte_perm(a, 0, 0x0123);
    out[i] = halves ^ (turned >> 1) ^ ((a >> 5 & 0x3ff) << 7) ^ (b & 0xfffe007f);
    whole[i] = x[i] - 4.0 * rint(x[i] * 0.25) + floor(x[i]);
  }
}

template <class T>
T* managed(size_t count) {
  T* out = nullptr;
  EXPECT_OK(cudaMallocManaged(&out, count * sizeof(T)));
  return out;
}

void test_count() {
  for (const int n : {1000, 4099, 20011}) {
    unsigned *in = managed<unsigned>(n), *copy = managed<unsigned>(n), *list = managed<unsigned>(n);
    Totals* totals = managed<Totals>(1);
    for (int i = 0; i < n; ++i) in[i] = static_cast<unsigned>(i) * 2654435761u >> 4;
    const int blocks = (n + 127) / 128;
    Totals wanted{};
    unsigned long long listed = 0;
    for (int i = 0; i < n; ++i) {
      ++wanted.seen;
      wanted.most = std::max(wanted.most, static_cast<int>(in[i] >> 3));
      if (in[i] % 3 == 1) ++wanted.matches, wanted.sum += in[i];
      if (in[i] % 64 == 5) ++wanted.listed, listed += in[i];
    }
    int wrong = 0;
    for (int t = 0; t < kTimes; ++t) {
      *totals = {};
      count<<<blocks, 128>>>(in, copy, list, totals, n);
      EXPECT_OK(cudaDeviceSynchronize());
      wrong += totals->seen != wanted.seen || totals->matches != wanted.matches ||
               totals->sum != wanted.sum || totals->most != wanted.most ||
               totals->listed != wanted.listed;
    }
    EXPECT(wrong == 0);
    unsigned long long found = 0;
    for (unsigned i = 0; i < wanted.listed; ++i) found += list[i];
    EXPECT(found == listed);
    for (int i = 0; i < n; ++i) wrong += copy[i] != in[i];
    EXPECT(wrong == 0);
  }
}

void test_pack() {
  constexpr int kCount = 5003;
  unsigned *in = managed<unsigned>(kCount), *out = managed<unsigned>(kCount);
  double *x = managed<double>(kCount), *whole = managed<double>(kCount);
  for (int i = 0; i < kCount; ++i) in[i] = static_cast<unsigned>(i) * 2246822519u + 77;
  for (int i = 0; i < kCount; ++i) x[i] = (i - 2500) * 0.37;
  for (int t = 0; t < kTimes; ++t) pack<<<1, 256>>>(in, x, out, whole, kCount);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const unsigned a = in[i], b = in[(i + 1) % kCount];
    const unsigned halves = (a & 0xffff) | b << 16;
    const unsigned turned = a >> 24 | (a >> 8 & 0xff00) | (a << 8 & 0xff0000) | a << 24;
    wrong += out[i] != (halves ^ (turned >> 1) ^ ((a >> 5 & 0x3ff) << 7) ^ (b & 0xfffe007f));
    const double kept = std::fma(-4.0, std::rint(x[i] * 0.25), x[i]) + std::floor(x[i]);
    wrong += whole[i] != kept;
  }
  EXPECT(wrong == 0);
}

int main() {
  test_count();
  test_pack();
  return finish();
}
