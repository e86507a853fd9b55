// SPDX-License-Identifier: Apache-2.0
// Are the engine's structs laid out as the CUDA toolkit has them? Checked where a toolkit of CUDA
// 13 is at hand.
#include <gtest/gtest.h>

#include "engine/cuda/device_properties.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif

namespace kiln::engine {
namespace {

TEST(Layout, DevicePropertiesAreThoseOfTheToolkit) {
#if defined(CUDART_VERSION) && CUDART_VERSION >= 13000
  EXPECT_EQ(sizeof(DeviceProperties), sizeof(cudaDeviceProp));
#define SAME(ours, theirs) \
  EXPECT_EQ(offsetof(DeviceProperties, ours), offsetof(cudaDeviceProp, theirs))
  SAME(global_bytes, totalGlobalMem);
  SAME(max_threads_per_block, maxThreadsPerBlock);
  SAME(major, major);
  SAME(multiprocessors, multiProcessorCount);
  SAME(surface_alignment, surfaceAlignment);
  SAME(l2_bytes, l2CacheSize);
  SAME(shared_per_multiprocessor, sharedMemPerMultiprocessor);
  SAME(cooperative_launch, cooperativeLaunch);
  SAME(shared_per_block_optin, sharedMemPerBlockOptin);
  SAME(reserved_shared_per_block, reservedSharedMemPerBlock);
  SAME(memory_pools, memoryPoolsSupported);
  SAME(cluster_launch, clusterLaunch);
  SAME(multinode_ipc, hostNumaMultinodeIpcSupported);
  SAME(reserved, reserved);
#undef SAME
#else
  GTEST_SKIP() << "no CUDA 13 toolkit header here";
#endif
}

}  // namespace
}  // namespace kiln::engine
