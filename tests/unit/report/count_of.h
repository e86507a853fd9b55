// SPDX-License-Identifier: Apache-2.0
// How often does a page say something?
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::report {

inline size_t count_of(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace kiln::report
