// SPDX-License-Identifier: Apache-2.0
// Do loops run whose blocks stand in another order than they run in? powf has rare cases that the
// compiler puts before the loop's beginning, and each leaves with values of blocks that follow.
#include <cmath>
#include <vector>

#include "expect.h"

constexpr int kCount = 5000;
constexpr int kRounds = 20;

// Through memory in each round, as an optimizer does it.
__host__ __device__ void average(float* out, const float* in, int i, float a, float b, int rounds,
                                 int mode) {
  for (int t = 1; t <= rounds; ++t) {
    const float g = in[i] / a;
    out[i] = a * out[i] + (1.f - a) * g;
    const float x = out[i] / (1.f - powf(a, t)), y = g / (1.f - powf(b, t));
    out[i] += mode == 0 ? x / sqrtf(fabsf(y) + b) : x / (sqrtf(fabsf(y)) + b);
  }
}

__global__ void averages(float* out, const float* in, float a, float b, int rounds, int n,
                         int mode) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    average(out, in, i, a, b, rounds, mode);
}

// Bases of every kind: powf's own rare cases.
__global__ void powers(float* out, const float* base, const float* exponent) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kCount) return;
  float sum = 0;
  for (int t = 0; t < 8; ++t) sum = 0.5f * sum + powf(base[i], exponent[(i + t) % kCount]);
  out[i] = sum;
}

bool is_close(float found, float wanted) {
  if (std::isnan(wanted) || std::isnan(found)) return std::isnan(wanted) && std::isnan(found);
  if (std::isinf(wanted) || std::isinf(found)) return wanted == found;
  return std::fabs(found - wanted) <= 1e-4f * std::fabs(wanted) + 1e-30f;
}

int main() {
  std::vector<float> in(kCount), exponents(kCount), found(kCount);
  constexpr float kSpecial[] = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1.f, -1.f, 1e-40f, -2.5f};
  for (int i = 0; i < kCount; ++i) {
    in[i] = static_cast<float>(i % 77) / 7.f;
    exponents[i] = i % 5 == 0 ? kSpecial[i % 9] : static_cast<float>(i % 13 - 6) / 2.f;
  }
  float *x, *y, *e;
  const size_t bytes = kCount * sizeof(float);
  EXPECT_OK(cudaMalloc(&x, bytes));
  EXPECT_OK(cudaMalloc(&y, bytes));
  EXPECT_OK(cudaMalloc(&e, bytes));
  EXPECT_OK(cudaMemcpy(x, in.data(), bytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(e, exponents.data(), bytes, cudaMemcpyHostToDevice));
  for (int mode : {0, 1}) {
    EXPECT_OK(cudaMemset(y, 0, bytes));
    averages<<<40, 256>>>(y, x, 0.9f, 0.999f, kRounds, kCount, mode);
    EXPECT_OK(cudaMemcpy(found.data(), y, bytes, cudaMemcpyDeviceToHost));
    std::vector<float> wanted(kCount);
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) {
      average(wanted.data(), in.data(), i, 0.9f, 0.999f, kRounds, mode);
      wrong += !is_close(found[i], wanted[i]);
    }
    EXPECT(wrong == 0);
  }
  for (int i = 0; i < kCount; ++i) in[i] = i % 3 == 0 ? kSpecial[i / 3 % 9] : in[i] - 4.f;
  EXPECT_OK(cudaMemcpy(x, in.data(), bytes, cudaMemcpyHostToDevice));
  powers<<<(kCount + 127) / 128, 128>>>(y, x, e);
  EXPECT_OK(cudaMemcpy(found.data(), y, bytes, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    float sum = 0;
    for (int t = 0; t < 8; ++t) sum = 0.5f * sum + powf(in[i], exponents[(i + t) % kCount]);
    wrong += !is_close(found[i], sum);
  }
  EXPECT(wrong == 0);
  return finish();
}
