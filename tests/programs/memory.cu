// SPDX-License-Identifier: Apache-2.0
// Does memory of every kind come, fill, copy and go as CUDA says, and do the questions about
// kernels and devices have answers? Bytes beside what is named stay as they were.
#include <cstdlib>
#include <vector>

#include "expect.h"

using Bytes = std::vector<unsigned char>;

__global__ void times(const int* from, int* to, int factor) {
  to[threadIdx.x] = from[threadIdx.x] * factor;
}
__global__ void __launch_bounds__(256) bounded(int* out) {
  __shared__ int shared[1024];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

// ---- Copies and fills of two and three dimensions

void rows_are_copied_and_their_margins_kept() {
  constexpr size_t kWidth = 37, kHeight = 5, kHostPitch = 64;
  unsigned char* device = nullptr;
  size_t pitch = 0;
  EXPECT_OK(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
  EXPECT(pitch >= kWidth && pitch % 32 == 0);
  EXPECT_OK(cudaMemset(device, 0xee, pitch * kHeight));
  Bytes host(kHostPitch * kHeight), back(pitch * kHeight);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i % 251);
  EXPECT_OK(cudaMemcpy2D(device, pitch, host.data(), kHostPitch, kWidth, kHeight,
                         cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemset2D(device + pitch + 3, pitch, 0x11, 4, 2));
  EXPECT_OK(cudaMemcpy(back.data(), device, back.size(), cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < pitch; ++x) {
      const bool filled = y >= 1 && y < 3 && x >= 3 && x < 7;
      const int wanted = filled ? 0x11 : x < kWidth ? host[y * kHostPitch + x] : 0xee;
      expect(back[y * pitch + x] == wanted, "byte of a row", static_cast<int>(y * 1000 + x));
    }
  }
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  Bytes rows(kHostPitch * kHeight, 0xcc);
  EXPECT_OK(cudaMemset2DAsync(device, pitch, 0x22, kWidth, kHeight, stream));
  EXPECT_OK(cudaMemcpy2DAsync(rows.data(), kHostPitch, device, pitch, kWidth, kHeight,
                              cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < rows.size(); ++i)
    expect(rows[i] == (i % kHostPitch < kWidth ? 0x22 : 0xcc), "row", static_cast<int>(i));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(device));
}

void boxes_are_filled_and_copied() {
  const cudaExtent extent = make_cudaExtent(20, 4, 3);
  cudaPitchedPtr box;
  EXPECT_OK(cudaMalloc3D(&box, extent));
  EXPECT_OK(cudaMemset3D(box, 1, extent));
  cudaPitchedPtr inner = box;
  inner.ptr =
      static_cast<char*>(box.ptr) + box.pitch * 4 + box.pitch + 2;  // slice 1, row 1, byte 2
  EXPECT_OK(cudaMemset3D(inner, 2, make_cudaExtent(5, 2, 2)));
  Bytes host(20 * 4 * 3, 9);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(host.data(), 20, 20, 4);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  EXPECT_OK(cudaMemcpy3D(&copy));
  for (size_t z = 0; z < 3; ++z) {
    for (size_t y = 0; y < 4; ++y) {
      for (size_t x = 0; x < 20; ++x) {
        const bool inside = z >= 1 && y >= 1 && y < 3 && x >= 2 && x < 7;
        expect(host[(z * 4 + y) * 20 + x] == (inside ? 2 : 1), "byte of a box",
               static_cast<int>(z * 100 + y * 20 + x));
      }
    }
  }
  EXPECT_OK(cudaFree(box.ptr));
}

// ---- Memory of the host, pools

void host_memory_is_seen_by_the_device() {
  int *pinned = nullptr, *out = nullptr, *mapped = nullptr;
  EXPECT_OK(cudaHostAlloc(&pinned, 128, cudaHostAllocMapped));
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  EXPECT_OK(cudaMallocManaged(&out, 128));
  for (int i = 0; i < 32; ++i) pinned[i] = i;
  times<<<1, 32>>>(mapped, out, 3);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(out[31] == 93);
  cudaPointerAttributes attributes;
  EXPECT_OK(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
  EXPECT_OK(cudaPointerGetAttributes(&attributes, out));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  int own[64] = {};
  EXPECT_OK(cudaPointerGetAttributes(&attributes, own));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  EXPECT_OK(cudaFreeHost(pinned));
  void* page = nullptr;
  EXPECT(posix_memalign(&page, 4096, 4096) == 0);
  EXPECT_OK(cudaHostRegister(page, 4096, cudaHostRegisterMapped));
  EXPECT_OK(cudaPointerGetAttributes(&attributes, page));
  EXPECT(attributes.type == cudaMemoryTypeHost);
  static_cast<int*>(page)[31] = 5;
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, page, 0));
  times<<<1, 32>>>(mapped, out, 2);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(out[31] == 10);
  EXPECT_OK(cudaHostUnregister(page));
  std::free(page);
  EXPECT_OK(cudaFree(out));
}

void pools_keep_the_order_of_the_stream() {
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  cudaMemPool_t pool;
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = 1 << 20, seen = 0;
  EXPECT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &seen));
  EXPECT(seen == threshold);
  for (int round = 1; round < 4; ++round) {
    int *p = nullptr, *q = nullptr, host[32] = {};
    EXPECT_OK(cudaMallocAsync(&p, sizeof host, stream));
    EXPECT_OK(cudaMallocAsync(&q, sizeof host, stream));
    EXPECT_OK(cudaMemsetAsync(p, round, sizeof host, stream));
    times<<<1, 32, 0, stream>>>(p, q, 2);
    EXPECT_OK(cudaMemcpyAsync(host, q, sizeof host, cudaMemcpyDeviceToHost, stream));
    EXPECT_OK(cudaFreeAsync(p, stream));
    EXPECT_OK(cudaFreeAsync(q, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(host[31] == 0x01010101 * round * 2);
  }
  EXPECT_OK(cudaMemPoolTrimTo(pool, 0));
  EXPECT_OK(cudaStreamDestroy(stream));
}

// ---- Questions

void kernels_and_devices_are_described() {
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, bounded));
  EXPECT(attributes.sharedSizeBytes == 4096 && attributes.maxThreadsPerBlock == 256);
  int blocks = 0, least = 0, threads = 0, peer = 1, version = 0, count = 0;
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 0));
  EXPECT(blocks >= 1 && blocks <= 32);
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&least, &threads, bounded));
  EXPECT(least >= 1 && threads >= 32 && threads <= 256);
  cudaDeviceProp properties;
  EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024 &&
         properties.multiProcessorCount > 0);
  EXPECT(properties.totalGlobalMem > 0 && properties.sharedMemPerBlock >= 48 * 1024);
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&peer, 0, count));
  EXPECT_CODE(cudaErrorInvalidDevice, cudaGetLastError());
  size_t free_bytes = 0, all_bytes = 0;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &all_bytes));
  EXPECT(free_bytes > 0 && free_bytes <= all_bytes);
  EXPECT_OK(cudaRuntimeGetVersion(&version));
  EXPECT(version >= 12000);
  EXPECT(std::strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
  EXPECT(std::strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
}

void launches_take_attributes() {
  int* out = nullptr;
  EXPECT_OK(cudaMallocManaged(&out, 256 * sizeof(int)));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(128);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_OK(cudaLaunchKernelEx(&config, bounded, out));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(out[0] == 1 && out[127] == 0);
  config.blockDim = dim3(512);  // beyond its __launch_bounds__
  EXPECT_EITHER(cudaErrorInvalidValue, cudaErrorLaunchOutOfResources,
                cudaLaunchKernelEx(&config, bounded, out));
  cudaGetLastError();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(out));
}

int main() {
  rows_are_copied_and_their_margins_kept();
  boxes_are_filled_and_copied();
  host_memory_is_seen_by_the_device();
  pools_keep_the_order_of_the_stream();
  kernels_and_devices_are_described();
  launches_take_attributes();
  return finish();
}
