// SPDX-License-Identifier: Apache-2.0
// How long does a kernel that computes take on the engine? Each is small enough for a second.
//
//   kernels NAME TIMES    launches it so often; prints the seconds of CPU of a launch (after one
//                         that is not counted, when TIMES > 1) and a hash of the bits it wrote
//   kernels               prints the names
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "lanes.cuh"
#include "rows.cuh"
#include "tiles.cuh"

namespace compute {
namespace {

constexpr int kCount = 1 << 18;  // elements of a vector
constexpr int kMany = 1 << 24;   // of those that `add` adds
constexpr int kHead = 16;        // of attention

template <class T>
T* on_device(const std::vector<T>& from) {
  T* to = nullptr;
  cudaMalloc(&to, from.size() * sizeof(T));
  cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
  return to;
}

struct Data {
  float *a, *b, *out;
  __half* half;
  int *index, *columns, *rows;
  size_t count;

  explicit Data(bool many) : count(many ? kMany : kCount) {
    std::vector<float> values(count);
    std::vector<__half> halves(kSide * kSide);
    std::vector<int> indices(kCount), column(kCount), row(kCount / 8 + 1);
    uint32_t state = 1;
    for (size_t i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      values[i] = static_cast<float>(state >> 24) / 16;
      if (i < halves.size()) halves[i] = __float2half(static_cast<float>(state >> 28) - 8);
      if (i >= kCount) continue;
      indices[i] = static_cast<int>(state >> 8);
      column[i] = static_cast<int>((state >> 8) % kCount);
    }
    // Between 4 and 11 elements a row.
    for (size_t i = 1; i < row.size(); ++i) {
      const int next = row[i - 1] + 4 + static_cast<int>(i * 7 % 8);
      row[i] = next < kCount ? next : kCount;
    }
    a = on_device(values);
    b = on_device(values);
    out = on_device(std::vector<float>(count));
    half = on_device(halves);
    index = on_device(indices);
    columns = on_device(column);
    rows = on_device(row);
  }
};

struct Named {
  const char* name;
  std::function<void(const Data&)> launch;
};

const std::vector<Named>& all() {
  const dim3 square16(16, 16), square32(32, 32), in16(kSide / 16, kSide / 16),
      in32(kSide / 32, kSide / 32);
  static const std::vector<Named> kAll = {
      {"add", [](const Data& d) { add<<<kMany / 256, 256>>>(d.a, d.b, d.out, kMany); }},
      {"matmul16", [=](const Data& d) { matmul<16><<<in16, square16>>>(d.a, d.b, d.out, kSide); }},
      {"matmul32", [=](const Data& d) { matmul<32><<<in32, square32>>>(d.a, d.b, d.out, kSide); }},
      {"softmax", [](const Data& d) { softmax<<<kCount / 1024, kThreads>>>(d.a, d.out, 1024); }},
      {"layer_norm",
       [](const Data& d) { layer_norm<<<kCount / 1024 / 4, 128>>>(d.a, d.out, 1024); }},
      {"transpose", [=](const Data& d) { transpose<<<in32, dim3(32, 8)>>>(d.a, d.out, kSide); }},
      {"stencil", [=](const Data& d) { stencil<<<in16, square16>>>(d.a, d.out, kSide); }},
      {"reduction", [](const Data& d) { reduction<<<32, kThreads>>>(d.a, d.out, kCount); }},
      {"scan", [](const Data& d) { scan<<<kCount / kThreads, kThreads>>>(d.a, d.out); }},
      {"histogram",
       [](const Data& d) {
         histogram<<<32, 256>>>(d.index, reinterpret_cast<int*>(d.out), kCount);
       }},
      {"n_body",
       [](const Data& d) {
         n_body<<<8, 128>>>(reinterpret_cast<float4*>(d.a), reinterpret_cast<float4*>(d.out), 1024);
       }},
      {"black_scholes", [](const Data& d) { black_scholes<<<256, 128>>>(d.a, d.out, 256 * 128); }},
      {"mandelbrot",
       [=](const Data& d) {
         mandelbrot<<<in16, square16>>>(reinterpret_cast<int*>(d.out), kSide, 64);
       }},
      {"spmv",
       [](const Data& d) {
         spmv<<<kCount / 8 / 128, 128>>>(d.a, d.columns, d.rows, d.b, d.out, kCount / 8);
       }},
      {"convolution", [=](const Data& d) { convolution<<<in16, square16>>>(d.a, d.out, kSide); }},
      {"bitonic_sort",
       [](const Data& d) { bitonic_sort<<<64, 256>>>(d.index, reinterpret_cast<int*>(d.out)); }},
      {"sha256",
       [](const Data& d) {
         sha256<<<64, 128>>>(reinterpret_cast<uint32_t*>(d.index),
                             reinterpret_cast<uint32_t*>(d.out), 64 * 128);
       }},
      {"rng",
       [](const Data& d) { rng<<<64, 128>>>(reinterpret_cast<uint32_t*>(d.out), 64 * 128, 256); }},
      {"attention",
       [](const Data& d) { attention<kHead><<<8, 32>>>(d.a, d.b, d.a + 4096, d.out, 256); }},
      {"mma_gemm",
       [](const Data& d) {
         mma_gemm<<<dim3(kSide / 8, kSide / 16), 32>>>(d.half, d.half, d.out, kSide);
       }},
  };
  return kAll;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int run(const Named& kernel, int times) {
  const Data data(std::strcmp(kernel.name, "add") == 0);
  const auto launch = [&](int count) {
    for (int i = 0; i < count; ++i) kernel.launch(data);
    return cudaDeviceSynchronize() == cudaSuccess;
  };
  if (times > 1 && !launch(1)) return 1;
  const double begin = cpu_seconds();
  if (!launch(times)) return 1;
  const double seconds = (cpu_seconds() - begin) / times;
  std::vector<uint32_t> bits(kCount);
  cudaMemcpy(bits.data(), data.out, bits.size() * 4, cudaMemcpyDeviceToHost);
  uint64_t hash = 14695981039346656037u;
  for (uint32_t each : bits) hash = (hash ^ each) * 1099511628211u;
  std::printf("%s %.6f %016llx\n", kernel.name, seconds, static_cast<unsigned long long>(hash));
  return 0;
}

}  // namespace
}  // namespace compute

int main(int count, char** words) {
  for (const compute::Named& each : compute::all()) {
    if (count < 3) std::printf("%s\n", each.name);
    if (count == 3 && std::strcmp(words[1], each.name) == 0)
      return compute::run(each, std::atoi(words[2]));
  }
  return count < 3 ? 0 : 2;
}
