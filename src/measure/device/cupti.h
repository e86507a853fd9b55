// SPDX-License-Identifier: Apache-2.0
// Which kernels ran, and when, as CUPTI's activity records say? libcupti is found at run time.
#pragma once

#include <vector>

#include "base/result.h"
#include "measure/device/device.h"

namespace kiln::measure {

// While it is on, kernels of this process are recorded. Fails when CUPTI is not there, not
// permitted, or taken by another profiler (there is one subscriber a process). With `memsets` CUPTI
// follows those too: nobody reads the records, but where it puts its timestamps may depend on it.
Status cupti_begin(bool memsets);
// Everything that has finished since; call it after the device was synchronised.
Result<std::vector<KernelRecord>> cupti_end();

// "void add<float>(...)" without arguments: "add<float>".
std::string short_kernel_name(const std::string& mangled);

}  // namespace kiln::measure
