// SPDX-License-Identifier: Apache-2.0
// The program of the guides: prints its arguments and what a kernel wrote.
#include <cstdio>

__global__ void answer(int* out) { *out = 42; }

int main(int argc, char** argv) {
  int *device, host = 0;
  cudaMalloc(&device, sizeof host);
  answer<<<1, 1>>>(device);
  cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d, %d arguments:", host, argc - 1);
  for (int i = 1; i < argc; ++i) std::printf(" %s", argv[i]);
  std::printf("\n");
  return host == 42 ? 0 : 1;
}
