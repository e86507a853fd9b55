// SPDX-License-Identifier: Apache-2.0
// How is a call measured on a GPU? Through the driver, in the primary context, which libcudart and
// torch use too.
#pragma once

#include <memory>

#include "measure/device/device.h"

namespace kiln::measure {

// `stream` is the one that the calls go to: null for the default stream of the CUDA runtime.
// Graphs cannot be captured on that one.
struct CudaPlace {
  int index = 0;
  void* stream = nullptr;
  bool make_stream = false;  // a new one in its place, which stream() tells
};
Result<std::unique_ptr<Device>> open_cuda_device(const CudaPlace& place);

// 0 without a driver or GPU.
int cuda_device_count();

}  // namespace kiln::measure
