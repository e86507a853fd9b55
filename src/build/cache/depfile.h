// SPDX-License-Identifier: Apache-2.0
// Which files did a compiler read? The prerequisites in the Makefile rule that -MD writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::build {

std::vector<std::string> parse_depfile(std::string_view text);

}  // namespace kiln::build
