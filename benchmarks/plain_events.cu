// SPDX-License-Identifier: Apache-2.0
// How long does an add take, by the simplest honest program? CUDA events around one launch, L2 flushed before each.
//   plain_events LOG2_ELEMENTS...   prints "LOG2 MEDIAN_US" for each
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "plain_events.cuh"

static void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "error: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

int main(int argc, char** argv) {
  int l2_bytes = 0;
  check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0));
  void* flush = nullptr;
  check(cudaMalloc(&flush, 2 * static_cast<size_t>(l2_bytes)));
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  for (int word = 1; word < argc; ++word) {
    const int bits = std::atoi(argv[word]);
    const size_t count = size_t{1} << bits;
    float4 *a, *b, *out;
    std::vector<float> values(count);
    unsigned state = 1;
    for (float& value : values)
      value = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
    check(cudaMalloc(&a, 4 * count));
    check(cudaMalloc(&b, 4 * count));
    check(cudaMalloc(&out, 4 * count));
    check(cudaMemcpy(a, values.data(), 4 * count, cudaMemcpyHostToDevice));
    check(cudaMemcpy(b, values.data(), 4 * count, cudaMemcpyHostToDevice));
    const auto blocks = static_cast<unsigned>((count / 4 + 255) / 256);
    std::vector<float> times;
    for (int i = 0; i < 400; ++i) {
      check(cudaMemsetAsync(flush, 0, 2 * static_cast<size_t>(l2_bytes)));
      check(cudaEventRecord(begin));
      plain_add<<<blocks, 256>>>(a, b, out, static_cast<int64_t>(count / 4));
      check(cudaEventRecord(end));
      check(cudaEventSynchronize(end));
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin, end));
      if (i >= 100) times.push_back(1e3f * ms);
    }
    std::sort(times.begin(), times.end());
    std::printf("%d %.4f\n", bits, times[times.size() / 2]);
    check(cudaFree(a));
    check(cudaFree(b));
    check(cudaFree(out));
  }
}
