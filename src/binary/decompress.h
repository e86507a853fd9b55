// SPDX-License-Identifier: Apache-2.0
// How is a compressed image of a fat binary unpacked, when its sizes may lie?
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "binary/bytes.h"

namespace kiln::binary {

enum class Compression : uint8_t { None, Lz4, Zstd };

// No image that nvcc makes is larger, or shrinks by more: beyond either the sizes are lies.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{2} << 30;
constexpr uint64_t kMaxRatio = 2000;

// `unpacked_bytes` is what the header claims; the result has exactly that size.
Result<std::vector<std::byte>> decompress(Compression compression, Bytes packed,
                                          uint64_t unpacked_bytes);

}  // namespace kiln::binary
