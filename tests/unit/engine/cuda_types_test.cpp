// SPDX-License-Identifier: Apache-2.0
// Are the engine's structs and error texts those of CUDA 13? Compared with the headers of the
// toolkit that is there.
#include <gtest/gtest.h>

#include "engine/cuda/types.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#define CUDART_VERSION 0
#endif

#if CUDART_VERSION / 1000 == 13

namespace kiln::engine {
namespace {

#define SAME_SIZE(ours, theirs) EXPECT_EQ(sizeof(ours), sizeof(theirs)) << #theirs
#define SAME_PLACE(ours, member, theirs, their_member) \
  EXPECT_EQ(offsetof(ours, member), offsetof(theirs, their_member)) << #theirs "::" #their_member

TEST(CudaTypes, StructsHaveTheSizesOfTheHeaders) {
  SAME_SIZE(ChannelDesc, cudaChannelFormatDesc);
  SAME_SIZE(Extent, cudaExtent);
  SAME_SIZE(Position, cudaPos);
  SAME_SIZE(PitchedPointer, cudaPitchedPtr);
  SAME_SIZE(Copy3D, cudaMemcpy3DParms);
  SAME_SIZE(Copy3DPeer, cudaMemcpy3DPeerParms);
  SAME_SIZE(Fill, cudaMemsetParams);
  SAME_SIZE(HostCall, cudaHostNodeParams);
  SAME_SIZE(KernelNode, cudaKernelNodeParams);
  SAME_SIZE(PoolProperties, cudaMemPoolProps);
  SAME_SIZE(AllocationNode, cudaMemAllocNodeParams);
  SAME_SIZE(NodeParameters, cudaGraphNodeParams);
  SAME_SIZE(EdgeData, cudaGraphEdgeData);
  SAME_SIZE(InstantiateParameters, cudaGraphInstantiateParams);
  SAME_SIZE(UpdateResult, cudaGraphExecUpdateResultInfo);
  SAME_SIZE(PointerAttributes, cudaPointerAttributes);
  SAME_SIZE(LaunchAttribute, cudaLaunchAttribute);
  SAME_SIZE(LaunchConfig, cudaLaunchConfig_t);
  SAME_SIZE(FunctionAttributes, cudaFuncAttributes);
  SAME_SIZE(ResourceDesc, cudaResourceDesc);
  SAME_SIZE(TextureDesc, cudaTextureDesc);
}

TEST(CudaTypes, MembersLieWhereTheHeadersSay) {
  SAME_PLACE(Copy3D, to_array, cudaMemcpy3DParms, dstArray);
  SAME_PLACE(Copy3D, extent, cudaMemcpy3DParms, extent);
  SAME_PLACE(Copy3D, kind, cudaMemcpy3DParms, kind);
  SAME_PLACE(Copy3DPeer, to_array, cudaMemcpy3DPeerParms, dstArray);
  SAME_PLACE(Copy3DPeer, extent, cudaMemcpy3DPeerParms, extent);
  SAME_PLACE(Fill, element_bytes, cudaMemsetParams, elementSize);
  SAME_PLACE(KernelNode, arguments, cudaKernelNodeParams, kernelParams);
  SAME_PLACE(AllocationNode, bytes, cudaMemAllocNodeParams, bytesize);
  SAME_PLACE(AllocationNode, at, cudaMemAllocNodeParams, dptr);
  SAME_PLACE(NodeParameters, kernel, cudaGraphNodeParams, kernel);
  SAME_PLACE(NodeParameters, copy.copy, cudaGraphNodeParams, memcpy.copyParams);
  SAME_PLACE(InstantiateParameters, result, cudaGraphInstantiateParams, result_out);
  SAME_PLACE(UpdateResult, error_node, cudaGraphExecUpdateResultInfo, errorNode);
  SAME_PLACE(LaunchAttribute, value, cudaLaunchAttribute, val);
  SAME_PLACE(LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
  SAME_PLACE(FunctionAttributes, max_dynamic_shared, cudaFuncAttributes, maxDynamicSharedSizeBytes);
  SAME_PLACE(FunctionAttributes, nonportable_cluster, cudaFuncAttributes,
             nonPortableClusterSizeAllowed);
  SAME_PLACE(ResourceDesc, linear.bytes, cudaResourceDesc, res.linear.sizeInBytes);
  SAME_PLACE(ResourceDesc, pitch_2d.pitch, cudaResourceDesc, res.pitch2D.pitchInBytes);
  SAME_PLACE(ResourceDesc, flags, cudaResourceDesc, flags);
  SAME_PLACE(TextureDesc, border, cudaTextureDesc, borderColor);
  SAME_PLACE(TextureDesc, normalized, cudaTextureDesc, normalizedCoords);
}

TEST(CudaTypes, NumbersAreThoseOfTheHeaders) {
  EXPECT_EQ(static_cast<int>(NodeType::Allocate), cudaGraphNodeTypeMemAlloc);
  EXPECT_EQ(static_cast<int>(NodeType::Free), cudaGraphNodeTypeMemFree);
  EXPECT_EQ(static_cast<int>(NodeType::RecordEvent), cudaGraphNodeTypeEventRecord);
  EXPECT_EQ(static_cast<int>(NodeType::WaitEvent), cudaGraphNodeTypeWaitEvent);
  EXPECT_EQ(int{kAttributeCooperative}, cudaLaunchAttributeCooperative);
  EXPECT_EQ(int{kAttributeCluster}, cudaLaunchAttributeClusterDimension);
  EXPECT_EQ(int{kPitch2DResource}, cudaResourceTypePitch2D);
  EXPECT_EQ(int{kBorder}, cudaAddressModeBorder);
#define CUDA_ERROR(code, name, text) EXPECT_EQ(code, static_cast<int>(name));
#include "engine/cuda/errors.def"
#undef CUDA_ERROR
}

}  // namespace
}  // namespace kiln::engine

#endif
