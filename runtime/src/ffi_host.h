// SPDX-License-Identifier: Apache-2.0
// What does an op ask of the TVM-FFI in its process? The stream of the caller, and that an error is
// raised there. Where there is none (kiln's own callers), neither is needed.
#pragma once

#include "kiln/tensor.h"

namespace kiln::detail {

void raise_in_host(const char* text);

// While it lives, ops of this thread work on the stream that the caller set for the device.
class UsedStream {
 public:
  explicit UsedStream(Device device);
  ~UsedStream();
  UsedStream(const UsedStream&) = delete;

 private:
  cudaStream_t before_;
};

}  // namespace kiln::detail
