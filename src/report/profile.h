// SPDX-License-Identifier: Apache-2.0
// How is a profile shown? As a tree: each op under its caller, its kernels below it; on a page with
// a flame graph and a timeline.
#pragma once

#include <string>

#include "results/profile.h"

namespace kiln::report {

// Equal siblings in a row are one line with a count.
std::string profile_text(const results::Profile& profile);
std::string profile_page(const results::Profile& profile);

// "-" for no time.
std::string us_text(double us);

}  // namespace kiln::report
