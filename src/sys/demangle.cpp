// SPDX-License-Identifier: Apache-2.0
// What is the name of a symbol as its author wrote it?
#include "sys/demangle.h"

#include <cxxabi.h>

#include <cstdlib>

namespace kiln::sys {

std::string demangle(const std::string& symbol) {
  int status = 0;
  char* name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && name ? name : symbol;
  std::free(name);
  return out;
}

}  // namespace kiln::sys
