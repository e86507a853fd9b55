// SPDX-License-Identifier: Apache-2.0
// What is the name of a symbol as its author wrote it?
#pragma once

#include <string>

namespace kiln::sys {

// "_Z4workPf" gives "work(float*)"; what is no mangled name stays.
std::string demangle(const std::string& symbol);

}  // namespace kiln::sys
