// SPDX-License-Identifier: Apache-2.0
// How is TMA told of a tensor? A 4-D map {head dim, sequence, head, batch} made on the host from
// sizes and strides, so that BHSD and BSHD are the same to the kernel.
#pragma once

#include <cuda.h>
#include <kiln/op.h>

namespace fa {

// The driver's function, found through the runtime: nothing is linked against libcuda.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                             12000, cudaEnableDefault, &status);
  KILN_CHECK(error == cudaSuccess && found, "the driver has no cuTensorMapEncodeTiled (CUDA error ",
             static_cast<int>(error), "): TMA needs a driver of CUDA 12 or newer");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
}

// x: [batch, heads, sequence, head dim], 16-bit elements. A box is 64 columns of `rows` rows of one
// head.
inline CUtensorMap tensor_map(const kiln::Tensor& x, const char* name, int rows) {
  CUtensorMap map;
  const cuuint64_t sizes[4] = {
      static_cast<cuuint64_t>(x.size(3)), static_cast<cuuint64_t>(x.size(2)),
      static_cast<cuuint64_t>(x.size(1)), static_cast<cuuint64_t>(x.size(0))};
  cuuint64_t strides_bytes[3];
  KILN_CHECK(x.stride(3) == 1, name, " must have stride 1 in its last dimension, not ",
             x.stride(3));
  KILN_CHECK(reinterpret_cast<uintptr_t>(x.raw()) % 16 == 0, name,
             " must start at a multiple of 16 bytes");
  for (int i = 0; i < 3; i++) {
    const int64_t stride = x.stride(2 - i);
    // Of a dimension of size 1 torch may say any stride.
    const bool used = x.size(2 - i) > 1;
    KILN_CHECK(!used || (stride > 0 && stride % 8 == 0), name, " has strides ", x.strides(),
               "; each must be a positive multiple of 8 elements (16 bytes), as TMA wants it");
    strides_bytes[i] =
        used ? static_cast<cuuint64_t>(stride) * 2 : static_cast<cuuint64_t>(x.size(3)) * 2;
  }
  const cuuint32_t box[4] = {64, static_cast<cuuint32_t>(rows), 1, 1};
  const cuuint32_t element_strides[4] = {1, 1, 1, 1};
  const CUtensorMapDataType type = x.dtype() == kiln::Dtype::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const CUresult result = tensor_map_encoder()(
      &map, type, 4, const_cast<void*>(x.raw()), sizes, strides_bytes, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  KILN_CHECK(result == CUDA_SUCCESS, "no tensor map for ", name, " of sizes ", x.sizes(),
             ", strides ", x.strides(), ": CUresult ", static_cast<int>(result));
  return map;
}

}  // namespace fa
