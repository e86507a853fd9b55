// SPDX-License-Identifier: Apache-2.0
// How many compilers may run side by side without running out of memory?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace kiln::build {

// nvcc on a kernel with cub or CUTLASS headers takes between 1 and 1.5 GB.
inline constexpr uint64_t kJobBytes = 1'500'000'000;

// MAX_JOBS as it is set, else one for each core that memory allows; at least one.
Result<int> job_limit(const std::optional<std::string>& max_jobs, int cores, uint64_t available_bytes);

}  // namespace kiln::build
