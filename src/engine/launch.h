// SPDX-License-Identifier: Apache-2.0
// What does it take to launch a kernel? Checks of the configuration, the parameter block, then run_grid().
#pragma once

#include <string>

#include "engine/image.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

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

struct LaunchOutcome {
  int code = 0;      // cudaError_t
  std::string text;  // empty where there was no memory for one
  bool ran = false;  // the kernel may have begun; else it was refused
};

struct KernelFacts {
  const Program* program = nullptr;
  const Program* program_for_rows = nullptr;  // the same, decoded for blocks whose rows fill warps; may be null
  uint64_t static_shared_bytes = 0;
  uint64_t shared_limit = kDefaultSharedBytes;  // static and dynamic together
};

// `kernel` must have been decoded from `image`.
LaunchOutcome launch_kernel(Image& image, Heap& heap, const KernelFacts& kernel, const KilnEngineLaunch& launch);

// Blocks of a kernel that fit on a multiprocessor together.
uint32_t resident_blocks(const KernelFacts& kernel, uint32_t threads, uint64_t dynamic_shared_bytes);

}  // namespace kiln::engine
