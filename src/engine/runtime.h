// SPDX-License-Identifier: Apache-2.0
// Which functions of the CUDA runtime does the engine have? Four lists, one a file; the ABI is that of CUDA 13.
#pragma once

#include <span>

namespace kiln::engine {

struct RuntimeFunction {
  const char* name;
  void* address;
};

std::span<const RuntimeFunction> runtime_memory();
std::span<const RuntimeFunction> runtime_streams();
std::span<const RuntimeFunction> runtime_device();
std::span<const RuntimeFunction> runtime_launch();

// cudaMemcpyKind.
enum CopyKind : int { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kDefault = 4 };

}  // namespace kiln::engine
