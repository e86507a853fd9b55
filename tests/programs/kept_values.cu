// SPDX-License-Identifier: Apache-2.0
// Does every value reach those who read it? Behind a load of which __byte_perm selects no byte, and
// in sums of subnormal numbers, which atomicAdd keeps in shared memory, and not in global memory.

#include "expect.h"

constexpr int kThreads = 64;

__global__ void behind_a_load(const int* __restrict__ in, const unsigned* __restrict__ more,
                              unsigned* __restrict__ out, float* __restrict__ floats, int n) {
  const int i = static_cast<int>(threadIdx.x);
  const int value = in[i];
  int unused = n;
  if (i != 3) unused *= static_cast<int>(__funnelshift_lc(unused, unused, i));
  const unsigned bytes = __byte_perm(out[i], __byte_perm(i, more[i], 0x9f6f) + (i >> 24), 0x5d54);
  const auto wide = static_cast<unsigned long long>(
      fmaf(static_cast<float>(value), 1.0f, __uint_as_float(bytes)));
  out[i] = bytes <= wide * i;
  floats[i] = static_cast<float>(value);
}

__global__ void subnormal_sums(float* global, float* from_shared, float value) {
  __shared__ float shared[kThreads];
  const int i = static_cast<int>(threadIdx.x);
  shared[i] = value;
  __syncthreads();
  atomicAdd(&global[i], value);
  atomicAdd(&shared[i], value);
  __syncthreads();
  from_shared[i] = shared[i];
}

int main() {
  int* in = nullptr;
  unsigned *more = nullptr, *out = nullptr;
  float* floats = nullptr;
  EXPECT_OK(cudaMallocManaged(&in, kThreads * sizeof(int)));
  EXPECT_OK(cudaMallocManaged(&more, kThreads * sizeof(unsigned)));
  EXPECT_OK(cudaMallocManaged(&out, kThreads * sizeof(unsigned)));
  EXPECT_OK(cudaMallocManaged(&floats, kThreads * sizeof(float)));
  for (int i = 0; i < kThreads; ++i) in[i] = i * 37 + 5, more[i] = i + 500u, out[i] = i;
  behind_a_load<<<1, kThreads>>>(in, more, out, floats, 13);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) wrong += floats[i] != static_cast<float>(i * 37 + 5);
  EXPECT(wrong == 0);

  float *global = nullptr, *shared = nullptr;
  EXPECT_OK(cudaMallocManaged(&global, kThreads * sizeof(float)));
  EXPECT_OK(cudaMallocManaged(&shared, kThreads * sizeof(float)));
  constexpr float kSubnormal = 1e-40f;
  for (int i = 0; i < kThreads; ++i) global[i] = kSubnormal;
  subnormal_sums<<<1, kThreads>>>(global, shared, kSubnormal);
  EXPECT_OK(cudaDeviceSynchronize());
  wrong = 0;
  for (int i = 0; i < kThreads; ++i)
    wrong += (global[i] != 0.0f) + (shared[i] != kSubnormal + kSubnormal);
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(in));
  return finish();
}
