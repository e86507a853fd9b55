// SPDX-License-Identifier: Apache-2.0
// Do attributes of functions tell what they were compiled for? CUB, Thrust and cuBLAS-like
// libraries choose by them.
#include <cub/util_device.cuh>

#include "expect.h"

__global__ void own_arch(int* out) {
#ifdef __CUDA_ARCH__
  *out = __CUDA_ARCH__ / 10;
#endif
}
template <class T>
__global__ void __launch_bounds__(96) bounded(T* out) {
  __shared__ T tile[100];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[95 - threadIdx.x];
}
__constant__ float table[24];
__global__ void uses_table(float* out) { *out = table[threadIdx.x]; }

void versions_are_the_images_own() {
  int *out = nullptr, compiled = 0, major = 0, minor = 0;
  EXPECT_OK(cudaMalloc(&out, sizeof(int)));
  own_arch<<<1, 1>>>(out);
  EXPECT_OK(cudaMemcpy(&compiled, out, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT_OK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, own_arch));
  EXPECT(compiled > 0 && attributes.ptxVersion == compiled);
  EXPECT(attributes.binaryVersion / 10 == major && attributes.binaryVersion <= 10 * major + minor);
  EXPECT_OK(cudaFuncGetAttributes(&attributes, bounded<double>));
  EXPECT(attributes.ptxVersion == compiled);
  cudaKernel_t kernel = nullptr;
  EXPECT_OK(cudaGetKernel(&kernel, own_arch));
  EXPECT_OK(cudaFuncGetAttributes(&attributes, kernel));
  EXPECT(attributes.ptxVersion == compiled);
  int of_cub = 0;
  EXPECT_OK(cub::PtxVersion(of_cub));
  EXPECT(of_cub == 10 * compiled);
  EXPECT_OK(cub::SmVersion(of_cub));
  EXPECT(of_cub == 100 * major + 10 * minor);
  EXPECT_OK(cudaFree(out));
}

void sizes_and_bounds_are_the_functions_own() {
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, bounded<double>));
  EXPECT(attributes.maxThreadsPerBlock == 96 && attributes.sharedSizeBytes == 800);
  EXPECT_OK(cudaFuncGetAttributes(&attributes, bounded<float>));
  EXPECT(attributes.sharedSizeBytes == 400);
  EXPECT_OK(cudaFuncGetAttributes(&attributes, uses_table));
  EXPECT(attributes.constSizeBytes >= sizeof table && attributes.numRegs > 0);
  EXPECT_OK(
      cudaFuncSetAttribute(bounded<float>, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  EXPECT_OK(
      cudaFuncSetAttribute(bounded<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 4096));
  EXPECT_OK(cudaFuncGetAttributes(&attributes, bounded<float>));
  EXPECT(attributes.preferredShmemCarveout == 50 && attributes.maxDynamicSharedSizeBytes >= 4096);
  EXPECT_CODE(cudaErrorInvalidValue,
              cudaFuncSetAttribute(bounded<float>, static_cast<cudaFuncAttribute>(99), 1));
  cudaGetLastError();
  int blocks = 0, threads = 0;
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded<float>, 96, 0));
  EXPECT(blocks > 0);
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, bounded<float>, 0, 0));
  EXPECT(threads > 0 && threads <= 96 && blocks > 0);
}

int main() {
  versions_are_the_images_own();
  sizes_and_bounds_are_the_functions_own();
  return finish();
}
