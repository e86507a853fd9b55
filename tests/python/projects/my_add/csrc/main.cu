// SPDX-License-Identifier: Apache-2.0
// nvcc -o main csrc/main.cu && ./main 1000
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "add_kernel.cuh"

#define CUDA_CHECK(call)                                                                  \
  do {                                                                                    \
    cudaError_t error = (call);                                                           \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
  std::vector<float> a(n), b(n), out(n);
  for (int i = 0; i < n; ++i) a[i] = 0.1f * i, b[i] = 1.0f / (i + 1);
  float *da, *db, *dout;
  CUDA_CHECK(cudaMalloc(&da, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&db, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dout, n * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add_kernel<float><<<(n + 255) / 256, 256>>>(da, db, dout, 1.0f / 3, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(out.data(), dout, n * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += out[i] != std::fma(1.0f / 3, b[i], a[i]);
  std::printf("%d elements, %d wrong\n", n, wrong);
  CUDA_CHECK(cudaFree(da));
  CUDA_CHECK(cudaFree(db));
  CUDA_CHECK(cudaFree(dout));
  return wrong != 0;
}
