// SPDX-License-Identifier: Apache-2.0
// Which loads of 8 and 16 bytes of shared memory are compared with Nsight Compute? Those that use
// all bytes: else ptxas loads only some of them.
#include "patterns.cuh"

constexpr int kWords = 8192;

__device__ float all_of(double v) { return static_cast<float>(v); }
__device__ float all_of(float2 v) { return v.x + v.y; }
__device__ float all_of(float4 v) { return v.x + v.y + v.z + v.w; }

// Lane l of a warp loads number at[l].
template <class T>
__global__ void load_wide(const int* at, float* out) {
  __shared__ __align__(16) float tile[kWords];
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) tile[i] = i;
  __syncthreads();
  const T* as = reinterpret_cast<const T*>(tile);
  out[blockIdx.x * blockDim.x + threadIdx.x] = all_of(as[at[threadIdx.x % 32]]);
}

int main(int count, char** words) {
  float* out = device_array<float>(1 << 15);
  Launches all;
  const auto add = [&](const char* name, const std::function<int(int)>& index) {
    std::vector<int> numbers(32);
    for (int i = 0; i < 32; ++i) numbers[i] = index(i) % (kWords / 4);
    int* at = device_array<int>(32, numbers);
    all.add(name, [=] { load_wide<double><<<128, 256>>>(at, out); });
    all.add(name, [=] { load_wide<float2><<<128, 256>>>(at, out); });
    all.add(name, [=] { load_wide<float4><<<128, 256>>>(at, out); });
  };
  add("neighbours", [](int i) { return i; });
  add("every_second", [](int i) { return 2 * i; });
  add("every_third", [](int i) { return 3 * i; });
  add("by_2", [](int i) { return i / 2; });
  add("by_4", [](int i) { return i / 4; });
  add("by_8", [](int i) { return i / 8; });
  add("by_16", [](int i) { return i / 16; });
  add("by_32", [](int) { return 5; });
  add("modulo_2", [](int i) { return i % 2; });
  add("modulo_4", [](int i) { return i % 4; });
  add("modulo_8", [](int i) { return i % 8; });
  add("modulo_16", [](int i) { return i % 16; });
  add("pairs_apart", [](int i) { return i / 4 * 2 + i % 2; });
  add("scattered", [](int i) { return i * 37 % 101; });
  add("scattered_pairs", [](int i) { return i / 2 * 37 % 101; });
  return all.run(count, words);
}
