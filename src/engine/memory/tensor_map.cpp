// SPDX-License-Identifier: Apache-2.0
// How is a tensor map encoded, checked and changed? (CUDA driver API: Tensor Map Object Management)
#include "engine/memory/tensor_map.h"

#include <cstring>
#include <iterator>

namespace kiln::engine {
namespace {

constexpr TensorType kTypes[] = {{"u8", 1},  {"u16", 2}, {"u32", 4}, {"s32", 4}, {"u64", 8},
                                 {"s64", 8}, {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2},
                                 {"f32", 4}, {"f32", 4}, {"f32", 4}};

constexpr int kCudaSuccess = 0, kCudaInvalidValue = 1, kCudaNotSupported = 801;

int encode_tiled(TensorMap* out, int data_type, uint32_t rank, void* address, const uint64_t* sizes,
                 const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                 int interleave, int swizzle, int /*l2_promotion*/, int oob_fill) {
  if (!out || !sizes || !box || !element_strides || rank < 1 || rank > kMaxTensorRank ||
      (rank > 1 && !strides))
    return kCudaInvalidValue;
  if (interleave != 0 || !tensor_type(static_cast<uint32_t>(data_type))) return kCudaNotSupported;
  TensorMap map;
  map.magic = kTensorMapMagic;
  map.address = reinterpret_cast<uint64_t>(address);
  map.rank = static_cast<uint8_t>(rank);
  map.data_type = static_cast<uint8_t>(data_type);
  map.swizzle = static_cast<uint8_t>(swizzle);
  map.nan_fill = oob_fill != 0;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > (uint64_t{1} << 32) || box[i] == 0 || box[i] > 256 ||
        element_strides[i] == 0 || element_strides[i] > 8) {
      return kCudaInvalidValue;
    }
    map.last[i] = static_cast<uint32_t>(sizes[i] - 1);
    map.box[i] = static_cast<uint16_t>(box[i]);
    map.element_strides[i] = static_cast<uint8_t>(element_strides[i]);
    if (i > 0) map.strides[i - 1] = strides[i - 1];
  }
  if (*why_bad_tensor_map(map)) return kCudaInvalidValue;
  std::memcpy(out, &map, sizeof map);
  return kCudaSuccess;
}

int replace_address(TensorMap* map, void* address) {
  if (!map || map->magic != kTensorMapMagic || reinterpret_cast<uint64_t>(address) % 16)
    return kCudaInvalidValue;
  map->address = reinterpret_cast<uint64_t>(address);
  return kCudaSuccess;
}

}  // namespace

const TensorType* tensor_type(uint32_t data_type) {
  return data_type < std::size(kTypes) ? &kTypes[data_type] : nullptr;
}

uint32_t swizzle_span(Swizzle swizzle) {
  return swizzle == Swizzle::None      ? 0
         : swizzle == Swizzle::Bytes32 ? 32
         : swizzle == Swizzle::Bytes64 ? 64
                                       : 128;
}

const char* why_bad_tensor_map(const TensorMap& map) {
  const TensorType* type = tensor_type(map.data_type);
  if (map.magic != kTensorMapMagic) return "it was not created by cuTensorMapEncodeTiled";
  if (!type) return "its data type is unknown";
  if (map.rank < 1 || map.rank > kMaxTensorRank) return "its rank is not between 1 and 5";
  if (map.address % 16) return "its address is not a multiple of 16 bytes";
  for (uint32_t i = 1; i < map.rank; ++i) {
    if (map.strides[i - 1] % 16 || map.strides[i - 1] >= (uint64_t{1} << 40)) {
      return "a stride is not a multiple of 16 bytes, or not below 2^40";
    }
  }
  const uint32_t row_bytes = uint32_t{map.box[0]} * type->bytes;
  if (row_bytes % 16) return "a row of its box is not a multiple of 16 bytes";
  if (map.swizzle > static_cast<uint8_t>(Swizzle::Bytes128Atom64)) return "its swizzle is unknown";
  if (map.swizzle == static_cast<uint8_t>(Swizzle::Bytes128Atom32Flip8))
    return "its swizzle is not supported";
  const uint32_t span = swizzle_span(static_cast<Swizzle>(map.swizzle));
  if (span && row_bytes > span) return "a row of its box is longer than the swizzle";
  return "";
}

void* driver_function(const char* name) {
  if (std::strcmp(name, "cuTensorMapEncodeTiled") == 0)
    return reinterpret_cast<void*>(&encode_tiled);
  if (std::strcmp(name, "cuTensorMapReplaceAddress") == 0)
    return reinterpret_cast<void*>(&replace_address);
  return nullptr;
}

}  // namespace kiln::engine
