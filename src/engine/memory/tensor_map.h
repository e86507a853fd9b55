// SPDX-License-Identifier: Apache-2.0
// What does a CUtensorMap of the engine contain? 128 bytes that cuTensorMapEncodeTiled writes and
// TMA copies read. The layout that a GPU uses is not public, and a map never leaves the machine
// that made it. But programs know a few bits of it: CUTLASS and Triton clear bit 21 of the second
// word for tensors of less than 128 KB, because drivers up to 13.1 set it by mistake. So the first
// two words are as on a GPU: the address, and flags, none of which the engine reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace kiln::engine {

constexpr uint32_t kMaxTensorRank = 5;

// One row per value of CUtensorMapDataType, in its order.
struct TensorType {
  const char* ptx;  // the type in which reductions compute; "": none
  uint8_t bytes;
};
const TensorType* tensor_type(uint32_t data_type);  // null: unknown

enum class Swizzle : uint8_t {
  None,
  Bytes32,
  Bytes64,
  Bytes128,
  Bytes128Atom32,
  Bytes128Atom32Flip8,
  Bytes128Atom64
};

struct alignas(64) TensorMap {
  uint64_t address = 0;
  uint64_t flags = 0;  // what a program changes here has no effect
  uint64_t magic = 0;
  uint64_t strides[kMaxTensorRank - 1] = {};  // in bytes, of dimensions 1 and up
  uint32_t last[kMaxTensorRank] = {};         // index of the last element of each dimension
  uint16_t box[kMaxTensorRank] = {};
  uint8_t element_strides[kMaxTensorRank] = {};
  uint8_t rank = 0;
  uint8_t data_type = 0;
  uint8_t swizzle = 0;
  uint8_t nan_fill = 0;
  uint8_t interleave = 0;
};
static_assert(sizeof(TensorMap) == 128);
static_assert(offsetof(TensorMap, address) == 0 && offsetof(TensorMap, flags) == 8);

constexpr uint64_t kTensorMapMagic = 0x70616d2d6e6c696bu;  // "kiln-map"

// Which rule of cuTensorMapEncodeTiled the map violates; empty: none.
const char* why_bad_tensor_map(const TensorMap& map);

// The place of a byte in shared memory after the swizzle has permuted chunks of 16 bytes. `address`
// is relative to a multiple of 1024 bytes.
inline uint64_t swizzled(Swizzle swizzle, uint64_t address) {
  switch (swizzle) {
    case Swizzle::Bytes32:
      return address ^ (address >> 3 & 0x10);
    case Swizzle::Bytes64:
      return address ^ (address >> 3 & 0x30);
    case Swizzle::Bytes128:
      return address ^ (address >> 3 & 0x70);
    case Swizzle::Bytes128Atom32:
      return address ^ (address >> 2 & 0x60);
    case Swizzle::Bytes128Atom64:
      return address ^ (address >> 1 & 0x40);
    default:
      return address;
  }
}
uint32_t swizzle_span(Swizzle swizzle);  // bytes per row; 0: no swizzle

// For the query of entry points. Returns null if the engine has no such function of the driver.
void* driver_function(const char* name);

}  // namespace kiln::engine
