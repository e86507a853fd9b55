// SPDX-License-Identifier: Apache-2.0
// Which C library runs this process?
#pragma once

#include <string>

namespace kiln::sys {

// "2.36"; empty: another C library than glibc.
std::string glibc_version();

}  // namespace kiln::sys
