// SPDX-License-Identifier: Apache-2.0
// How long does a call take on the engine? Host time: the call has finished when it returns. It
// says how long a test waits, nothing about a GPU.
#pragma once

#include <memory>

#include "measure/device/device.h"

namespace kiln::measure {

std::unique_ptr<Device> open_engine_device();

}  // namespace kiln::measure
