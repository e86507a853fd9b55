// SPDX-License-Identifier: Apache-2.0
// Which functions of the CUDA driver can a program reach through cudaGetDriverEntryPoint?
#include <cstring>
#include <iterator>

#include "engine/runtime.h"

namespace kiln::engine {

void* driver_function(const char* name) {
  static constexpr RuntimeFunction kFunctions[] = {{"", nullptr}};
  for (const RuntimeFunction& function : kFunctions) {
    if (std::strcmp(function.name, name) == 0) return function.address;
  }
  return nullptr;
}

}  // namespace kiln::engine
