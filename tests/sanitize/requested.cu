// SPDX-License-Identifier: Apache-2.0
// Which mistakes are found only on request? Results of CUDA calls that nobody looks at (`api`), and
// memory that is never freed (`leaks`). `expect-host RULE COUNT` counts findings of host calls
// (rules.md).
// options --only memory,race,sync,api,leaks
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace {

__global__ void store(int* y) { y[threadIdx.x] = 1; }

// ---- leaks on the device

__global__ void keeps(int** y) {
  int* own = static_cast<int*>(malloc(64));  // expect leak #device-malloc
  own[0] = 1;
  *y = own;
}
__global__ void keeps_good(int* y) {
  int* own = static_cast<int*>(malloc(64));
  own[0] = 1;
  y[0] = own[0];
  free(own);
}

// ---- leaks of the host: cudaMalloc and cudaMallocAsync
// expect-host leak 2

void host_leaks() {
  int *lost, *lost_async, *good, *good_async;
  cudaMalloc(&lost, 4000);
  cudaMallocAsync(&lost_async, 8000, nullptr);
  cudaMalloc(&good, 1000);
  cudaMallocAsync(&good_async, 2000, nullptr);
  cudaFree(good);
  cudaFreeAsync(good_async, nullptr);
}

// ---- calls that fail: a launch and a call
// expect-host api-error 2

void unseen_errors(int* y) {
  store<<<1, 2048>>>(y);  // too many threads: nothing runs
  cudaSetDevice(99);
}
bool seen_errors_good(int* y) {
  if (cudaSetDevice(99) == cudaSuccess) return false;
  store<<<1, 2048>>>(y);
  return cudaGetLastError() == cudaErrorInvalidValue;
}

}  // namespace

int main() {
  int* y;
  int** kept;
  cudaMalloc(&y, 256);
  cudaMalloc(&kept, 8);
  store<<<1, 64>>>(y);
  keeps<<<1, 1>>>(kept);
  keeps_good<<<1, 1>>>(y);
  host_leaks();
  const bool good = seen_errors_good(y) && cudaDeviceSynchronize() == cudaSuccess;
  cudaFree(y);
  cudaFree(kept);
  unseen_errors(nullptr);
  std::printf("%s\n", good ? "done" : "FAILED");
  return good ? 0 : 1;
}
