// SPDX-License-Identifier: Apache-2.0
// Kernels whose counts are known: neighbours, strides, a tile with conflicts, a histogram.
#include <kiln/op.h>

__global__ void scale(const float* a, float* b, int n, int step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i * step] * 2;
}

__global__ void turn(const float* a, float* b, int width) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) b[(y + k) * width + x] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void histogram(const int* a, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(bins + (a[i] & 7), 1);
}

// Exchanges and comparisons stay atomics, used or not.
__global__ void unlock(int* a) {
  atomicExch(a + threadIdx.x, 1);
  atomicCAS(a + threadIdx.x, 1, 2);
  atomicMax(a + threadIdx.x, 3);
}

kiln::Tensor scaled(const kiln::Tensor& a, int64_t step) {
  kiln::Tensor out = kiln::empty_like(a);
  const int n = static_cast<int>(a.numel() / step);
  scale<<<(n + 127) / 128, 128, 0, kiln::stream(a)>>>(a.data<const float>(), out.data<float>(), n,
                                                      static_cast<int>(step));
  return out;
}
KILN_OP(scaled, "a, step=1").fake("like(a)");

kiln::Tensor turned(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  const auto width = static_cast<unsigned>(a.size(0));
  turn<<<dim3(width / 32, width / 32), dim3(32, 8), 0, kiln::stream(a)>>>(
      a.data<const float>(), out.data<float>(), static_cast<int>(width));
  return out;
}
KILN_OP(turned, "a").fake("like(a)");

kiln::Tensor counted(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  cudaMemsetAsync(out.data<int>(), 0, static_cast<size_t>(out.numel()) * sizeof(int),
                  kiln::stream(a));
  const int n = static_cast<int>(a.numel());
  histogram<<<(n + 127) / 128, 128, 0, kiln::stream(a)>>>(a.data<const int>(), out.data<int>(), n);
  return out;
}
KILN_OP(counted, "a").fake("like(a)");

kiln::Tensor unlocked(const kiln::Tensor& a) {
  kiln::Tensor out = kiln::empty_like(a);
  unlock<<<1, 32, 0, kiln::stream(a)>>>(out.data<int>());
  return out;
}
KILN_OP(unlocked, "a").fake("like(a)");
