// SPDX-License-Identifier: Apache-2.0
// Which kernels have more data than twice the L2 cache? Their DRAM bytes and times are compared.
#include "patterns.cuh"

#define INDEX (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x)

__global__ void copy(const float* a, float* b) { b[INDEX] = a[INDEX]; }
__global__ void copy4(const float4* a, float4* b) { b[INDEX] = a[INDEX]; }
__global__ void scale(float* a) { a[INDEX] *= 2; }
__global__ void add(const float* a, const float* b, float* c) { c[INDEX] = a[INDEX] + b[INDEX]; }
__global__ void add4(const float4* a, const float4* b, float4* c) {
  float4 x = a[INDEX], y = b[INDEX];
  c[INDEX] = {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
}
__global__ void triad(const float* a, const float* b, float* c, float s) {
  c[INDEX] = a[INDEX] + s * b[INDEX];
}
__global__ void axpy64(const double* a, double* b) { b[INDEX] += 3.0 * a[INDEX]; }
__global__ void fill_ones(float* a) { a[INDEX] = 1; }
__global__ void fill4(float4* a) { a[INDEX] = {1, 2, 3, 4}; }
__global__ void half_copy(const short* a, short* b) { b[INDEX] = a[INDEX]; }
__global__ void read_only(const float* a, float* b) {
  if (a[INDEX] == 12345.f) b[0] = 1;
}
__global__ void read4(const float4* a, float* b) {
  float4 v = a[INDEX];
  if (v.x + v.y + v.z + v.w == 12345.f) b[0] = 1;
}
__global__ void strided_read(const float* a, float* b, int step) {
  if (a[INDEX * step] == 12345.f) b[0] = 1;
}
__global__ void stencil(const float* a, float* b, size_t n) {
  size_t i = INDEX;
  if (i > 0 && i + 1 < n) b[i] = a[i - 1] + a[i] + a[i + 1];
}
__global__ void stencil_2d(const float* a, float* b, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) return;
  const size_t i = static_cast<size_t>(y) * width + x;
  b[i] = a[i] + a[i - 1] + a[i + 1] + a[i - width] + a[i + width];
}
__global__ void transpose(const float* a, float* b, int width) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    tile[threadIdx.y + k][threadIdx.x] = a[static_cast<size_t>(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    b[static_cast<size_t>(y + k) * width + x] = tile[threadIdx.x][threadIdx.y + k];
}
__global__ void row_sums(const float* a, float* b, int width) {
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    sum += a[static_cast<size_t>(blockIdx.x) * width + i];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(b + blockIdx.x, sum);
}
__global__ void softmax_rows(const float* a, float* b, int width) {
  __shared__ float part[32];
  const float* row = a + static_cast<size_t>(blockIdx.x) * width;
  float most = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < blockDim.x / 32; ++i) most = fmaxf(most, part[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < width; i += blockDim.x) sum += __expf(row[i] - most);
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
  float* to = b + static_cast<size_t>(blockIdx.x) * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x) to[i] = __expf(row[i] - most) / sum;
}
__global__ void grid_stride(const float4* a, float4* b, size_t n) {
  for (size_t i = INDEX; i < n; i += static_cast<size_t>(gridDim.x) * blockDim.x) b[i] = a[i];
}
__global__ void structs(const float* a, float* b) {
  size_t i = INDEX;
  b[i] = a[3 * i] + a[3 * i + 1] + a[3 * i + 2];
}
__global__ void add_rows(const float* a, const float* row, float* b, int width) {
  size_t i = INDEX;
  b[i] = a[i] + row[i % width];
}

int main(int count, char** words) {
  const size_t n = size_t{1} << 25;  // 128 MiB of floats: more than twice 50 MB with any output
  float *a = device_array<float>(2 * n), *b = device_array<float>(2 * n);
  float* c = device_array<float>(n);
  const int width = 8192, height = static_cast<int>(n / width);
  const unsigned blocks = static_cast<unsigned>(n / 256);
  auto *a4 = reinterpret_cast<float4*>(a), *b4 = reinterpret_cast<float4*>(b);
  auto* c4 = reinterpret_cast<float4*>(c);
  Launches all;
  all.add("large_copy", [=] { copy<<<blocks, 256>>>(a, b); });
  all.add("large_copy4", [=] { copy4<<<blocks / 4, 256>>>(a4, b4); });
  all.add("large_scale", [=] { scale<<<blocks, 256>>>(a); });
  all.add("large_add", [=] { add<<<blocks, 256>>>(a, b, c); });
  all.add("large_add4", [=] { add4<<<blocks / 4, 256>>>(a4, b4, c4); });
  all.add("large_triad", [=] { triad<<<blocks, 256>>>(a, b, c, 3); });
  all.add("large_axpy64", [=] { axpy64<<<blocks, 256>>>((double*)a, (double*)b); });
  all.add("large_fill", [=] { fill_ones<<<2 * blocks, 256>>>(a); });
  all.add("large_fill4", [=] { fill4<<<blocks / 2, 256>>>(a4); });
  all.add("large_half_copy", [=] { half_copy<<<blocks * 2, 256>>>((short*)a, (short*)b); });
  all.add("large_read", [=] { read_only<<<2 * blocks, 256>>>(a, b); });
  all.add("large_read4", [=] { read4<<<blocks / 2, 256>>>(a4, b); });
  all.add("large_strided_4", [=] { strided_read<<<blocks / 2, 256>>>(a, b, 4); });
  all.add("large_strided_16", [=] { strided_read<<<blocks / 8, 256>>>(a, b, 16); });
  all.add("large_stencil", [=] { stencil<<<blocks, 256>>>(a, b, n); });
  all.add("large_stencil_2d",
          [=] { stencil_2d<<<dim3(width / 32, height / 8), dim3(32, 8)>>>(a, b, width, height); });
  all.add("large_transpose",
          [=] { transpose<<<dim3(4096 / 32, 4096 / 32), dim3(32, 8)>>>(a, b, 4096); });
  all.add("large_row_sums", [=] { row_sums<<<height, 256>>>(a, b, width); });
  all.add("large_softmax", [=] { softmax_rows<<<height, 256>>>(a, b, width); });
  all.add("large_grid_stride", [=] { grid_stride<<<132 * 8, 256>>>(a4, b4, n / 4); });
  all.add("large_structs", [=] { structs<<<blocks / 2, 256>>>(a, b); });
  all.add("large_add_rows", [=] { add_rows<<<blocks, 256>>>(a, c, b, width); });
  return all.run(count, words);
}
