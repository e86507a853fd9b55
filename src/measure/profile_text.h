// SPDX-License-Identifier: Apache-2.0
// How does a person read a profile? As a tree: each op under its caller, its kernels below it.
#pragma once

#include <string>

#include "base/json.h"

namespace kiln::measure {

// `profile` as python/kiln/profiling.py makes it. Equal siblings in a row are one line with a
// count.
std::string profile_text(const Json& profile);

}  // namespace kiln::measure
