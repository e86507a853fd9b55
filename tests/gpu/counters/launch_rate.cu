// SPDX-License-Identifier: Apache-2.0
// How many blocks does a GPU start per clock? Times of kernels that do nothing, for blocks of
// several sizes and registers, without and with a few hundred clocks of life. JSON on stdout.
#include "patterns.cuh"

__global__ void nothing(int* out) {
  if (out == nullptr && threadIdx.x > 2048) *out = 1;
}
// Keeps REGISTERS allocated: a block takes what ptxas reserved, used or not.
template <int REGISTERS>
__global__ void __maxnreg__(REGISTERS) with_registers(int* out) {
  if (out == nullptr && threadIdx.x > 2048) *out = 1;
}
// Values that live across a loop fill the registers.
template <int VALUES>
__global__ void many_values(float* out, int times) {
  float kept[VALUES];
#pragma unroll
  for (int i = 0; i < VALUES; ++i) kept[i] = static_cast<float>(i + times);
  for (int k = 0; k < times; ++k) {
#pragma unroll
    for (int i = 0; i < VALUES; ++i) kept[i] = kept[i] * kept[(i + 1) % VALUES] + 1.0f;
  }
  if (times == 0) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < VALUES; ++i) sum += kept[i];
  *out = sum;
}
__global__ void with_shared(int* out) {
  __shared__ int tile[1024];
  if (out == nullptr) tile[threadIdx.x] = 1;
  if (out == nullptr && threadIdx.x > 2048) *out = tile[0];
}
__global__ void sleeps(int clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
}

template <class Launch>
void measure(const char* name, int blocks, int threads, Launch launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  float best = 1e30f;
  for (int i = 0; i < 8; ++i) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    launch();
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), name);
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    best = ms < best ? ms : best;
  }
  std::printf("{\"kernel\":\"%s\",\"blocks\":%d,\"threads\":%d,\"us\":%.3f}\n", name, blocks,
              threads, 1e3 * best);
}

int main() {
  int* null_out = reinterpret_cast<int*>(16);
  auto* floats = device_array<float>(1);
  constexpr int kMany = 1 << 20, kFew = 1 << 14;
  for (int threads : {32, 64, 128, 256, 512, 1024}) {
    for (int blocks : {1, kFew, kMany})
      measure("nothing", blocks, threads, [&] { nothing<<<blocks, threads>>>(null_out); });
    measure("with_shared", kMany, threads, [&] { with_shared<<<kMany, threads>>>(null_out); });
    measure("many_values<32>", kMany, threads,
            [&] { many_values<32><<<kMany, threads>>>(floats, 0); });
    if (threads <= 256)
      measure("many_values<128>", kMany, threads,
              [&] { many_values<128><<<kMany, threads>>>(floats, 0); });
  }
  measure("with_registers<64>", kMany, 128, [&] { with_registers<64><<<kMany, 128>>>(null_out); });
  for (int clocks : {200, 500, 1000, 2000, 4000}) {
    for (int threads : {32, 128, 256})
      measure(("sleeps " + std::to_string(clocks)).c_str(), kMany / 4, threads,
              [&] { sleeps<<<kMany / 4, threads>>>(clocks); });
  }
  return 0;
}
