// SPDX-License-Identifier: Apache-2.0
// Is a table of products right, whatever the shape of its grid? Once a kernel has run for long
// enough, the values of a block come from those of the block before it: along x they increase by
// an amount that may depend on the row, and on the arguments of the launch.

#include <vector>

#include "expect.h"

__global__ void table(unsigned* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = x * y;
}

__global__ void volume(unsigned long long* out, int width, unsigned factor) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  const unsigned row = z * gridDim.y + y;
  const unsigned long long value = static_cast<unsigned long long>(x * factor) * row;
  out[static_cast<size_t>(row) * width + x] = value + (x << z % 8) + (blockIdx.x * y);
}

static size_t wrong_in_table(unsigned* out, dim3 blocks, dim3 threads, int width, int height) {
  const size_t count = static_cast<size_t>(width) * height;
  for (size_t i = 0; i < count; ++i) out[i] = ~0u;
  table<<<blocks, threads>>>(out, width, height);
  EXPECT_OK(cudaDeviceSynchronize());
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i)
    wrong += out[i] != static_cast<unsigned>(i % width) * static_cast<unsigned>(i / width);
  return wrong;
}

// In clusters, blocks begin in another order: those of several rows take turns.
static size_t wrong_in_volume(unsigned long long* out, dim3 blocks, unsigned threads,
                              unsigned factor, dim3 cluster = 1) {
  const unsigned width = blocks.x * threads;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = blocks;
  launch.blockDim = threads;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  EXPECT_OK(cudaLaunchKernelEx(&launch, volume, out, static_cast<int>(width), factor));
  EXPECT_OK(cudaDeviceSynchronize());
  size_t wrong = 0;
  for (unsigned row = 0; row < blocks.y * blocks.z; ++row) {
    const unsigned y = row % blocks.y, z = row / blocks.y;
    for (unsigned x = 0; x < width; ++x) {
      unsigned long long value = static_cast<unsigned long long>(x * factor) * row;
      value += (x << z % 8) + (x / threads * y);
      wrong += out[static_cast<size_t>(row) * width + x] != value;
    }
  }
  return wrong;
}

int main() {
  unsigned* out = nullptr;
  unsigned long long* wide = nullptr;
  EXPECT_OK(cudaMallocManaged(&out, 4096 * 100 * sizeof(unsigned)));
  EXPECT_OK(cudaMallocManaged(&wide, 1 << 22));
  for (int launch = 0; launch < 4; ++launch) {
    EXPECT(wrong_in_table(out, dim3(64, 100), 64, 4096, 100) == 0);
    EXPECT(wrong_in_table(out, dim3(125, 13), dim3(32, 8), 4000 - launch, 99) == 0);
    EXPECT(wrong_in_table(out, dim3(32, 7), dim3(16, 16), 512, 100 + launch) == 0);
  }
  for (unsigned factor : {1u, 3u, 0xfffffff9u, 1u << 20}) {
    EXPECT(wrong_in_volume(wide, dim3(16, 20, 20), 64, factor) == 0);
    EXPECT(wrong_in_volume(wide, dim3(3, 40, 50), 32, factor) == 0);
    EXPECT(wrong_in_volume(wide, dim3(16, 20, 20), 64, factor, dim3(4, 2)) == 0);
    EXPECT(wrong_in_volume(wide, dim3(3, 40, 50), 32, factor, dim3(1, 4, 2)) == 0);
    EXPECT(wrong_in_volume(wide, dim3(1000, 2, 3), 64, factor) == 0);
  }
  EXPECT_OK(cudaFree(out));
  EXPECT_OK(cudaFree(wide));
  return finish();
}
