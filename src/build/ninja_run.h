// SPDX-License-Identifier: Apache-2.0
// How is ninja started, with how many jobs, and what does a person see meanwhile?
#pragma once

#include <string>
#include <vector>

#include "build/work.h"

namespace kiln::build {

// Without targets: all. A compiler that was ended for memory is tried again, one at a time.
Status run_ninja(Work& work, const std::vector<std::string>& targets);

}  // namespace kiln::build
