// SPDX-License-Identifier: Apache-2.0
// Which patterns of shared memory are compared with Nsight Compute? Widths, strides, broadcasts,
// tiles.
#include "patterns.cuh"

constexpr int kWords = 8192;  // 32 KiB

// Fills what the loads read, without conflicts.
__device__ void fill(float* tile) {
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) tile[i] = i;
  __syncthreads();
}

// Lane l loads T number l * step / shared_by.
template <class T>
__global__ void load_step(float* out, int step, int shared_by) {
  __shared__ __align__(16) float tile[kWords];
  fill(tile);
  const T* as = reinterpret_cast<const T*>(tile);
  const int count = kWords * 4 / sizeof(T);
  T v = as[(threadIdx.x / shared_by * step) % count];
  out[blockIdx.x * blockDim.x + threadIdx.x] = *reinterpret_cast<float*>(&v);
}
template <>
__global__ void load_step<char>(float* out, int step, int shared_by) {
  __shared__ __align__(16) float tile[kWords];
  fill(tile);
  const char* as = reinterpret_cast<const char*>(tile);
  out[blockIdx.x * blockDim.x + threadIdx.x] = as[(threadIdx.x / shared_by * step) % kWords];
}
template <class T>
__global__ void store_step(float* out, int step, int shared_by) {
  __shared__ __align__(16) float tile[kWords];
  T* as = reinterpret_cast<T*>(tile);
  const int count = kWords * 4 / sizeof(T);
  T v{};
  as[(threadIdx.x / shared_by * step) % count] = v;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x];
}
// The same with some lanes switched off.
template <class T>
__global__ void load_masked(float* out, int step, unsigned mask) {
  __shared__ __align__(16) float tile[kWords];
  fill(tile);
  const T* as = reinterpret_cast<const T*>(tile);
  T v{};
  if (mask >> (threadIdx.x % 32) & 1) v = as[(threadIdx.x * step) % (kWords * 4 / sizeof(T))];
  out[blockIdx.x * blockDim.x + threadIdx.x] = *reinterpret_cast<float*>(&v);
}
template <class T>
__global__ void load_gather(const int* at, float* out) {
  __shared__ __align__(16) float tile[kWords];
  fill(tile);
  const T* as = reinterpret_cast<const T*>(tile);
  T v = as[at[blockIdx.x * blockDim.x + threadIdx.x] % (kWords * 4 / sizeof(T))];
  out[blockIdx.x * blockDim.x + threadIdx.x] = *reinterpret_cast<float*>(&v);
}
__global__ void store_gather(const int* at, float* out) {
  __shared__ float tile[kWords];
  tile[at[blockIdx.x * blockDim.x + threadIdx.x] % kWords] = 1;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x];
}

template <int PAD>
__global__ void transpose(const float* a, float* b, int width) {
  __shared__ float tile[32][32 + PAD];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) b[(y + k) * width + x] = tile[threadIdx.x][threadIdx.y + k];
}
template <int T>
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[T][T], bs[T][T];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += T) {
    as[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
    __syncthreads();
    for (int j = 0; j < T; ++j) sum += as[threadIdx.y][j] * bs[j][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}
__global__ void reduce(const float* a, float* out) {
  __shared__ float part[256];
  part[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int step = 128; step; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
// The classic with conflicts: active threads move apart.
__global__ void reduce_apart(const float* a, float* out) {
  __shared__ float part[256];
  part[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    int i = 2 * step * threadIdx.x;
    if (i < 256) part[i] += part[i + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
__global__ void scan(const float* a, float* b) {
  __shared__ float part[256];
  part[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    float v = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
    __syncthreads();
    part[threadIdx.x] += v;
    __syncthreads();
  }
  b[blockIdx.x * 256 + threadIdx.x] = part[threadIdx.x];
}
__global__ void shared_histogram(const int* a, int* bins) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(mine + (a[blockIdx.x * 256 + threadIdx.x] & 255), 1);
  __syncthreads();
  atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}
__global__ void stencil_tile(const float* a, float* b, int n) {
  __shared__ float tile[256 + 2];
  int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x + 1] = a[i];
  if (threadIdx.x == 0) tile[0] = i > 0 ? a[i - 1] : 0;
  if (threadIdx.x == 255) tile[257] = i + 1 < n ? a[i + 1] : 0;
  __syncthreads();
  b[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

int main(int count, char** words) {
  const int n = 1 << 17, blocks = n / 256;
  float *a = device_array<float>(1 << 20), *b = device_array<float>(1 << 20);
  float* c = device_array<float>(1 << 20);
  int *at = device_array<int>(n, scattered(n, 1 << 20)), *ints = device_array<int>(n);
  Launches all;
  for (int step : {1, 2, 3, 8, 32, 33})
    all.add(("load_f32_step_" + std::to_string(step)).c_str(),
            [=] { load_step<float><<<blocks, 256>>>(b, step, 1); });
  for (int step : {1, 2, 3, 16})
    all.add(("load_f64_step_" + std::to_string(step)).c_str(),
            [=] { load_step<double><<<blocks, 256>>>(b, step, 1); });
  for (int step : {1, 2, 3, 5})
    all.add(("load_float4_step_" + std::to_string(step)).c_str(),
            [=] { load_step<float4><<<blocks, 256>>>(b, step, 1); });
  for (int by : {2, 4, 8, 32}) {
    const std::string number = std::to_string(by);
    all.add(("load_f32_shared_by_" + number).c_str(),
            [=] { load_step<float><<<blocks, 256>>>(b, 1, by); });
    all.add(("load_f64_shared_by_" + number).c_str(),
            [=] { load_step<double><<<blocks, 256>>>(b, 1, by); });
    all.add(("load_float4_shared_by_" + number).c_str(),
            [=] { load_step<float4><<<blocks, 256>>>(b, 1, by); });
  }
  all.add("load_char", [=] { load_step<char><<<blocks, 256>>>(b, 1, 1); });
  all.add("load_char_step_4", [=] { load_step<char><<<blocks, 256>>>(b, 4, 1); });
  for (int step : {1, 2, 32, 33})
    all.add(("store_f32_step_" + std::to_string(step)).c_str(),
            [=] { store_step<float><<<blocks, 256>>>(b, step, 1); });
  for (int step : {1, 2, 3})
    all.add(("store_f64_step_" + std::to_string(step)).c_str(),
            [=] { store_step<double><<<blocks, 256>>>(b, step, 1); });
  for (int step : {1, 2, 3})
    all.add(("store_float4_step_" + std::to_string(step)).c_str(),
            [=] { store_step<float4><<<blocks, 256>>>(b, step, 1); });
  all.add("store_f32_shared_by_4", [=] { store_step<float><<<blocks, 256>>>(b, 1, 4); });
  all.add("store_float4_shared_by_4", [=] { store_step<float4><<<blocks, 256>>>(b, 1, 4); });
  for (unsigned mask : {0x0000ffffu, 0x55555555u, 0x000000ffu, 0xff0000ffu}) {
    char name[32];
    std::snprintf(name, sizeof name, "%08x", mask);
    all.add((std::string("load_f64_lanes_") + name).c_str(),
            [=] { load_masked<double><<<blocks, 256>>>(b, 1, mask); });
    all.add((std::string("load_float4_lanes_") + name).c_str(),
            [=] { load_masked<float4><<<blocks, 256>>>(b, 1, mask); });
  }
  all.add("load_gather_f32", [=] { load_gather<float><<<blocks, 256>>>(at, b); });
  all.add("load_gather_f64", [=] { load_gather<double><<<blocks, 256>>>(at, b); });
  all.add("load_gather_float4", [=] { load_gather<float4><<<blocks, 256>>>(at, b); });
  all.add("store_gather_f32", [=] { store_gather<<<blocks, 256>>>(at, b); });
  all.add("transpose_conflicts", [=] { transpose<0><<<dim3(16, 16), dim3(32, 8)>>>(a, b, 512); });
  all.add("transpose_padded", [=] { transpose<1><<<dim3(16, 16), dim3(32, 8)>>>(a, b, 512); });
  all.add("matmul_16", [=] { matmul<16><<<dim3(16, 16), dim3(16, 16)>>>(a, b, c, 256); });
  all.add("matmul_32", [=] { matmul<32><<<dim3(8, 8), dim3(32, 32)>>>(a, b, c, 256); });
  all.add("reduce", [=] { reduce<<<blocks, 256>>>(a, b); });
  all.add("reduce_apart", [=] { reduce_apart<<<blocks, 256>>>(a, b); });
  all.add("scan", [=] { scan<<<blocks, 256>>>(a, b); });
  all.add("shared_histogram", [=] { shared_histogram<<<blocks, 256>>>(at, ints); });
  all.add("stencil_tile", [=] { stencil_tile<<<blocks, 256>>>(a, b, n); });
  return all.run(count, words);
}
