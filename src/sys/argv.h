// SPDX-License-Identifier: Apache-2.0
// How do words reach execve? As a list of pointers that ends with null; the words must outlive it.
#pragma once

#include <string>
#include <vector>

namespace kiln::sys {

inline std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace kiln::sys
