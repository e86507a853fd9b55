// SPDX-License-Identifier: Apache-2.0
// How large may things be on the virtual device?
#pragma once

#include <cstdint>

namespace kiln::engine {

constexpr uint32_t kWarpSize = 32;
constexpr uint32_t kFullMask = ~0u;

// The virtual device: an sm_90 with few multiprocessors.
constexpr uint32_t kDeviceArch = 90;
constexpr uint32_t kMultiprocessors = 16;
constexpr uint32_t kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxThreadsPerMultiprocessor = 2048;
constexpr uint32_t kMaxBlocksPerMultiprocessor = 32;
constexpr uint32_t kMaxClusterBlocks = 16;
constexpr uint64_t kDefaultSharedBytes = 48 * 1024;
constexpr uint64_t kMaxSharedBytesOptIn = 227 * 1024;
constexpr uint64_t kSharedBytesPerMultiprocessor = 228 * 1024;
constexpr uint64_t kReservedSharedBytes = 1024;

}  // namespace kiln::engine
