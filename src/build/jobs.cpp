// SPDX-License-Identifier: Apache-2.0
// How many compilers may run side by side without running out of memory?
#include "build/jobs.h"

#include <algorithm>

#include "base/text.h"

namespace kiln::build {

Result<int> job_limit(const std::optional<std::string>& max_jobs, int cores, uint64_t available_bytes) {
  if (max_jobs) {
    auto count = text::to_int(text::trim(*max_jobs));
    if (!count || *count < 1 || *count > 4096)
      return Error{Fault::Environment, "cannot use MAX_JOBS", "it is '" + *max_jobs + "', not a number above 0",
                   "unset MAX_JOBS, or set it to the number of compilers to run at once"};
    return static_cast<int>(*count);
  }
  auto by_memory = std::min<uint64_t>(available_bytes / kJobBytes, 4096);
  return std::max(1, std::min(cores, static_cast<int>(by_memory)));
}

}  // namespace kiln::build
