// SPDX-License-Identifier: Apache-2.0
// What is there for runtime_function() to find before anything else is written here? The table; see the files
// runtime_*.cpp.
#include "engine/runtime.h"

#include <cstring>

#include "engine/state.h"

namespace kiln::engine {

void* runtime_function(const char* name) {
  for (const auto& list : {runtime_memory(), runtime_streams(), runtime_device(), runtime_launch()}) {
    for (const RuntimeFunction& function : list) {
      if (std::strcmp(function.name, name) == 0) return function.address;
    }
  }
  return nullptr;
}

}  // namespace kiln::engine
