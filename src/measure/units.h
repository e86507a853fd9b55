// SPDX-License-Identifier: Apache-2.0
// How are times and sizes written for people?
#pragma once

#include <string>

namespace kiln::measure {

std::string time_text(double ns);      // "7.26 us": three or four digits
std::string bytes_text(double bytes);  // "192 MiB"
std::string rate_text(double gbs);     // "3903 GB/s"

}  // namespace kiln::measure
