// SPDX-License-Identifier: Apache-2.0
// Is the occupancy that of NVIDIA's own calculator, and is the limiter named?
#include "inspect/occupancy.h"

#include <gtest/gtest.h>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#endif

namespace kiln::inspect {
namespace {

TEST(Occupancy, NamesTheLimiter) {
  const GpuLimits& h100 = *limits_of(90);
  EXPECT_EQ(occupancy(h100, {256, 32, 0}).limiter, Limiter::Warps);
  EXPECT_EQ(occupancy(h100, {256, 32, 0}).blocks, 8u);
  EXPECT_EQ(occupancy(h100, {256, 64, 0}).limiter, Limiter::Registers);
  EXPECT_EQ(occupancy(h100, {256, 64, 0}).blocks, 4u);
  EXPECT_EQ(occupancy(h100, {32, 16, 0}).limiter, Limiter::Blocks);
  EXPECT_EQ(occupancy(h100, {128, 16, 100 * 1024}).limiter, Limiter::Shared);
  EXPECT_EQ(occupancy(h100, {128, 16, 100 * 1024}).blocks, 2u);
  EXPECT_EQ(occupancy(h100, {128, 16, 300 * 1024}).limiter, Limiter::TooLarge);
  EXPECT_EQ(occupancy(h100, {1024, 128, 0}).blocks, 0u);
  EXPECT_EQ(limits_of(42), nullptr);
}

#if __has_include(<cuda_occupancy.h>)
TEST(Occupancy, IsWhatCudaOccupancyComputes) {
  size_t compared = 0;
  for (const GpuLimits& gpu : known_gpus()) {
    cudaOccDeviceProp device;
    device.computeMajor = static_cast<int>(gpu.arch / 10);
    device.computeMinor = static_cast<int>(gpu.arch % 10);
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = static_cast<int>(gpu.warps * 32);
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 * 1024;
    device.sharedMemPerMultiprocessor = gpu.shared_bytes;
    device.numSms = 1;
    device.sharedMemPerBlockOptin = gpu.block_shared_bytes;
    device.reservedSharedMemPerBlock = gpu.reserved_bytes;
    for (uint32_t threads : {32u, 64u, 96u, 128u, 192u, 256u, 384u, 512u, 768u, 1024u})
      for (uint32_t registers : {16u, 24u, 32u, 40u, 56u, 64u, 80u, 96u, 128u, 168u, 255u})
        for (uint64_t shared : {0u, 1000u, 8192u, 20000u, 49152u}) {
          cudaOccFuncAttributes function;
          function.maxThreadsPerBlock = 1024;
          function.numRegs = static_cast<int>(registers);
          function.sharedSizeBytes = shared;
          function.partitionedGCConfig = PARTITIONED_GC_OFF;
          function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          function.maxDynamicSharedSizeBytes = gpu.block_shared_bytes - shared;
          cudaOccDeviceState state;
          cudaOccResult result;
          ASSERT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state,
                                                            static_cast<int>(threads), 0),
                    CUDA_OCC_SUCCESS)
              << gpu.arch;
          Occupancy ours = occupancy(gpu, {threads, registers, shared});
          EXPECT_EQ(static_cast<int>(ours.blocks), result.activeBlocksPerMultiprocessor)
              << "sm_" << gpu.arch << ", " << threads << " threads, " << registers << " registers, "
              << shared << " bytes";
          ++compared;
        }
  }
  EXPECT_GT(compared, 5000u);
}
#endif

}  // namespace
}  // namespace kiln::inspect
