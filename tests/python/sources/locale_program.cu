// SPDX-License-Identifier: Apache-2.0
// A program that takes the locale of its user, for the whole process or for one thread, before it
// uses CUDA.
#include <locale.h>

#include <cstdio>
#include <cstring>
#include <thread>

__device__ float table[2] = {1.5f, -0.25f};
__global__ void half(float* out) {
  out[0] = table[0] * 0.5f;
  printf("on the device: %.2f %g %e\n", 1234.5, 0.25, 1.5);
}

int run() {
  if (std::strcmp(localeconv()->decimal_point, ",") != 0) {
    std::printf("the locale has no decimal comma: nothing is tested\n");
    return 2;
  }
  float *out = nullptr, seen = 0;
  if (cudaMalloc(&out, sizeof(float)) != cudaSuccess) return 3;
  half<<<1, 1>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 4;
  if (cudaMemcpy(&seen, out, sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 5;
  if (localeconv()->decimal_point[0] != ',') return 6;  // the thread has its locale back
  std::printf("on the host: %.2f\n", seen);
  return seen == 0.75f ? 0 : 7;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "thread") == 0) {
    int code = -1;
    std::thread([&] {
      const locale_t own = newlocale(LC_ALL_MASK, "", nullptr);
      if (own) uselocale(own);
      code = run();
      uselocale(LC_GLOBAL_LOCALE);
    }).join();
    return code;
  }
  setlocale(LC_ALL, "");
  return run();
}
