// SPDX-License-Identifier: Apache-2.0
// Which patterns of global memory, branches and atomics are compared with Nsight Compute?
#include <cuda_pipeline.h>

#include "patterns.cuh"

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

template <class T>
__global__ void copy(const T* a, T* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[i];
}
__global__ void copy_offset(const float* a, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[i + 1];
}
__global__ void store_offset(const float* a, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i + 3] = a[i];
}
__global__ void strided(const float* a, float* b, int n, int step) {
  int i = INDEX;
  if (i < n) b[i] = a[static_cast<size_t>(i) * step];
}
__global__ void store_strided(const float* a, float* b, int n, int step) {
  int i = INDEX;
  if (i < n) b[static_cast<size_t>(i) * step] = a[i];
}
__global__ void strided_double(const double* a, double* b, int n, int step) {
  int i = INDEX;
  if (i < n) b[i] = a[static_cast<size_t>(i) * step];
}
__global__ void reversed(const float* a, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[n - 1 - i];
}
__global__ void gather(const float* a, const int* at, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[at[i]];
}
__global__ void scatter(const float* a, const int* at, float* b, int n) {
  int i = INDEX;
  if (i < n) b[at[i]] = a[i];
}
__global__ void gather_float4(const float4* a, const int* at, float4* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[at[i]];
}
__global__ void broadcast(const float* a, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[blockIdx.x];
}
__global__ void pairs(const float* a, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[i / 2];
}
__global__ void readonly(const float* __restrict__ a, float* __restrict__ b, int n) {
  int i = INDEX;
  if (i < n) b[i] = __ldg(a + i);
}
__global__ void volatile_copy(const volatile float* a, volatile float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[i];
}
__global__ void streaming(const float* a, float* b, int n) {
  int i = INDEX;
  if (i < n) __stcs(b + i, __ldcs(a + i));
}

struct Three {
  float x, y, z;
};
struct Five {
  float v[5];
};
__global__ void structs_of_three(const Three* a, float* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[i].x + a[i].y + a[i].z;
}
__global__ void structs_of_five(const Five* a, Five* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = a[i];
}
__global__ void tile_rows(const float* a, float* b, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  b[y * width + x] = a[y * width + x] * 2;
}
__global__ void tile_columns(const float* a, float* b, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  b[x * width + y] = a[y * width + x];
}
__global__ void stencil(const float* a, float* b, int n) {
  int i = INDEX;
  if (i > 0 && i < n - 1) b[i] = a[i - 1] + a[i] + a[i + 1];
}
__global__ void grid_stride(const float* a, float* b, int n) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) b[i] = a[i] + 1;
}

// Branches.
__global__ void early_exit(const float* a, float* b, int n) {
  int i = INDEX;
  if (i % 3 == 0) return;
  if (i < n) b[i] = a[i];
}
__global__ void two_ways(const float* a, float* b, int n) {
  int i = INDEX;
  if (i >= n) return;
  if (threadIdx.x % 2) {
    for (int k = 0; k < 8; ++k) b[i] = a[(i + k * 37) % n] + b[i];
  } else {
    for (int k = 0; k < 5; ++k) b[i] = a[(i + k * 11) % n] * b[i];
  }
}
__global__ void predicated_store(const float* a, float* b, int n) {
  int i = INDEX;
  float v = a[i];
  if (threadIdx.x & 4) b[i] = v;
}
__global__ void warps_without_store(const float* a, float* b, int n) {
  int i = INDEX;
  float v = a[i];
  if ((i / 32) % 2) b[i] = v;  // whole warps store nothing
}
__global__ void guarded_load(const float* a, float* b, int n) {
  int i = INDEX;
  float v = 0;
  if ((i / 32) % 4 == 1) v = a[i];
  b[i] = v;
}
__global__ void trips(const float* a, float* b, int n) {
  int i = INDEX;
  float sum = 0;
  for (int k = 0; k < static_cast<int>(threadIdx.x % 32); ++k) sum += a[(i * 7 + k * 129) % n];
  b[i] = sum;
}
__global__ void triangle(const float* a, float* b, int width) {
  int row = INDEX;
  float sum = 0;
  for (int k = 0; k <= row % width; ++k) sum += a[row / width * width + k];
  b[row] = sum;
}
__global__ void cases(const int* a, int* b, int n) {
  int i = INDEX, v = a[i];
  switch (v % 5) {
    case 0:
      for (int k = 0; k < v % 17; ++k) v ^= a[(v + k) & 1023];
      break;
    case 1:
      for (int k = 0; k < 3; ++k) v += a[(v * k) & 1023];
      break;
    case 2:
      for (int k = 0; k < 20 && v > 1000; ++k) v = a[v & 1023] / 2;
      break;
    case 3:
      v = a[(v * 31) & 1023] + 7;
      break;
    default:
      v = 1;
  }
  b[i] = v;
}
__global__ void uniform_loop(const float* a, float* b, int n, int times) {
  int i = INDEX;
  float sum = 0;
  for (int k = 0; k < times; ++k) sum += a[(i + k * 1024) % n];
  b[i] = sum;
}
__global__ void break_out(const int* a, int* b, int n) {
  int i = INDEX, steps = 0, at = i;
  while (steps < 40) {
    at = a[at];
    if (at % 7 == 0) break;
    ++steps;
  }
  b[i] = steps;
}

// Atomics.
__global__ void count_one(int* to, const int* a, int n) {
  int i = INDEX;
  if (i < n && a[i] % 3 == 0) atomicAdd(to, 1);
}
__global__ void count_old(int* to, int* b, const int* a, int n) {
  int i = INDEX;
  if (i < n && a[i] % 3 == 0) b[i] = atomicAdd(to, a[i]);
}
__global__ void histogram(const int* a, int* bins, int n) {
  int i = INDEX;
  if (i < n) atomicAdd(bins + (a[i] & 255), 1);
}
__global__ void float_sums(const int* a, float* bins, int n) {
  int i = INDEX;
  if (i < n) atomicAdd(bins + (a[i] & 1023), 1.5f);
}
__global__ void maxima(const int* a, int* to, int n) {
  int i = INDEX;
  if (i < n) atomicMax(to + i / 8, a[i]);
}
__global__ void exchanges(const int* a, int* to, int* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = atomicExch(to + a[i] % n, i);
}
__global__ void compare_and_swap(int* to, int* b, int n) {
  int i = INDEX;
  if (i < n) b[i] = atomicCAS(to + i, 0, i);
}
__global__ void wide_adds(const int* a, unsigned long long* to, int n) {
  int i = INDEX;
  if (i < n) atomicAdd(to + (a[i] & 511), 3ull);
}

// Copies past the registers, local and constant memory.
__global__ void async_copy(const float4* a, float4* b, int n) {
  __shared__ float4 tile[128];
  int i = INDEX;
  __pipeline_memcpy_async(tile + threadIdx.x, a + i, sizeof(float4));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  b[i] = tile[127 - threadIdx.x];
}
__global__ void local_array(const int* a, int* b, int n) {
  int i = INDEX, kept[16];
  for (int k = 0; k < 16; ++k) kept[k] = i * k;
  b[i] = kept[a[i] & 15];
}
__constant__ float table[256];
__global__ void constants(const int* a, float* b, int n) {
  int i = INDEX;
  b[i] = table[a[i] & 255] + table[blockIdx.x & 255];
}
__global__ void shuffled(const float* a, float* b, int n) {
  int i = INDEX;
  float v = a[i];
  for (int step = 16; step; step /= 2) v += __shfl_xor_sync(~0u, v, step);
  if (threadIdx.x % 32 == 0) b[i / 32] = v;
}

int main(int count, char** words) {
  const int n = 1 << 17, blocks = n / 128;
  const std::vector<int> numbers = scattered(n, n);
  float *a = device_array<float>(size_t{n} * 36), *b = device_array<float>(size_t{n} * 36);
  int *at = device_array<int>(n, numbers), *ints = device_array<int>(n);
  auto* wide = device_array<unsigned long long>(n);
  auto* doubles = reinterpret_cast<double*>(a);
  Launches all;
  all.add("copy_f32", [=] { copy<float><<<blocks, 128>>>(a, b, n); });
  all.add("copy_f64", [=] { copy<double><<<blocks, 128>>>(doubles, (double*)b, n); });
  all.add("copy_float2", [=] { copy<float2><<<blocks, 128>>>((float2*)a, (float2*)b, n); });
  all.add("copy_float4", [=] { copy<float4><<<blocks, 128>>>((float4*)a, (float4*)b, n); });
  all.add("copy_char", [=] { copy<char><<<blocks, 128>>>((char*)a, (char*)b, n); });
  all.add("copy_short", [=] { copy<short><<<blocks, 128>>>((short*)a, (short*)b, n); });
  all.add("copy_odd_count", [=] { copy<float><<<(n - 77 + 95) / 96, 96>>>(a, b, n - 77); });
  all.add("copy_block_48", [=] { copy<float><<<n / 48, 48>>>(a, b, n / 48 * 48); });
  all.add("copy_offset", [=] { copy_offset<<<blocks, 128>>>(a, b, n); });
  all.add("store_offset", [=] { store_offset<<<blocks, 128>>>(a, b, n); });
  for (int step : {2, 4, 33})
    all.add(("strided_" + std::to_string(step)).c_str(),
            [=] { strided<<<blocks, 128>>>(a, b, n, step); });
  all.add("store_strided_5", [=] { store_strided<<<blocks, 128>>>(a, b, n, 5); });
  all.add("strided_double_3", [=] { strided_double<<<blocks, 128>>>(doubles, (double*)b, n, 3); });
  all.add("reversed", [=] { reversed<<<blocks, 128>>>(a, b, n); });
  all.add("gather", [=] { gather<<<blocks, 128>>>(a, at, b, n); });
  all.add("scatter", [=] { scatter<<<blocks, 128>>>(a, at, b, n); });
  all.add("gather_float4", [=] { gather_float4<<<blocks, 128>>>((float4*)a, at, (float4*)b, n); });
  all.add("broadcast", [=] { broadcast<<<blocks, 128>>>(a, b, n); });
  all.add("pairs", [=] { pairs<<<blocks, 128>>>(a, b, n); });
  all.add("readonly", [=] { readonly<<<blocks, 128>>>(a, b, n); });
  all.add("volatile_copy", [=] { volatile_copy<<<blocks, 128>>>(a, b, n); });
  all.add("streaming", [=] { streaming<<<blocks, 128>>>(a, b, n); });
  all.add("structs_of_three", [=] { structs_of_three<<<blocks, 128>>>((Three*)a, b, n); });
  all.add("structs_of_five", [=] { structs_of_five<<<blocks, 128>>>((Five*)a, (Five*)b, n); });
  all.add("tile_8x8", [=] { tile_rows<<<dim3(64, 32), dim3(8, 8)>>>(a, b, 512); });
  all.add("tile_16x16", [=] { tile_rows<<<dim3(32, 16), dim3(16, 16)>>>(a, b, 512); });
  all.add("tile_columns", [=] { tile_columns<<<dim3(16, 16), dim3(32, 8)>>>(a, b, 512); });
  all.add("stencil", [=] { stencil<<<blocks, 128>>>(a, b, n); });
  all.add("grid_stride", [=] { grid_stride<<<132, 256>>>(a, b, n); });
  all.add("early_exit", [=] { early_exit<<<blocks, 128>>>(a, b, n); });
  all.add("two_ways", [=] { two_ways<<<blocks, 128>>>(a, b, n); });
  all.add("predicated_store", [=] { predicated_store<<<blocks, 128>>>(a, b, n); });
  all.add("warps_without_store", [=] { warps_without_store<<<blocks, 128>>>(a, b, n); });
  all.add("guarded_load", [=] { guarded_load<<<blocks, 128>>>(a, b, n); });
  all.add("trips", [=] { trips<<<blocks, 128>>>(a, b, n); });
  all.add("triangle", [=] { triangle<<<blocks / 4, 128>>>(a, b, 64); });
  all.add("cases", [=] { cases<<<blocks, 128>>>(at, ints, n); });
  all.add("uniform_loop", [=] { uniform_loop<<<blocks, 128>>>(a, b, n, 10); });
  all.add("break_out", [=] { break_out<<<blocks, 128>>>(at, ints, n); });
  all.add("count_one", [=] { count_one<<<blocks, 128>>>(ints, at, n); });
  all.add("count_old", [=] { count_old<<<blocks, 128>>>(ints, ints + 64, at, n - 64); });
  all.add("histogram", [=] { histogram<<<blocks, 128>>>(at, ints, n); });
  all.add("float_sums", [=] { float_sums<<<blocks, 128>>>(at, b, n); });
  all.add("maxima", [=] { maxima<<<blocks, 128>>>(at, ints, n); });
  all.add("exchanges", [=] { exchanges<<<blocks, 128>>>(at, ints, (int*)b, n); });
  all.add("compare_and_swap", [=] { compare_and_swap<<<blocks, 128>>>(ints, (int*)b, n); });
  all.add("wide_adds", [=] { wide_adds<<<blocks, 128>>>(at, wide, n); });
  all.add("async_copy", [=] { async_copy<<<blocks, 128>>>((float4*)a, (float4*)b, n); });
  all.add("local_array", [=] { local_array<<<blocks, 128>>>(at, ints, n); });
  all.add("constants", [=] { constants<<<blocks, 128>>>(at, b, n); });
  all.add("shuffled", [=] { shuffled<<<blocks, 128>>>(a, b, n); });
  return all.run(count, words);
}
