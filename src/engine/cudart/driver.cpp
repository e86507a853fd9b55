// SPDX-License-Identifier: Apache-2.0
// Which functions of the driver does the runtime's query find? Those that programs cannot get
// elsewhere: for tensor maps.
#include <cstring>

#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/machine/fault.h"
#include "engine/memory/tensor_map.h"

namespace kiln::engine {
namespace {

enum QueryResult : int { kQuerySuccess = 0, kQuerySymbolNotFound = 1 };

int query(const char* symbol, void** function, int* status) {
  if (!symbol || !function)
    return fail(kInvalidValue, "cudaGetDriverEntryPoint: the symbol or the result is null");
  *function = driver_function(symbol);
  if (status) *status = *function ? kQuerySuccess : kQuerySymbolNotFound;
  return kSuccess;
}

int entry_point(const char* symbol, void** function, unsigned long long, int* status) {
  return query(symbol, function, status);
}
int entry_point_by_version(const char* symbol, void** function, unsigned, unsigned long long,
                           int* status) {
  return query(symbol, function, status);
}

}  // namespace

std::span<const RuntimeFunction> runtime_driver() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaGetDriverEntryPoint", reinterpret_cast<void*>(&entry_point)},
      {"cudaGetDriverEntryPoint_ptsz", reinterpret_cast<void*>(&entry_point)},
      {"cudaGetDriverEntryPointByVersion", reinterpret_cast<void*>(&entry_point_by_version)},
      {"cudaGetDriverEntryPointByVersion_ptsz", reinterpret_cast<void*>(&entry_point_by_version)},
  };
  return kFunctions;
}

}  // namespace kiln::engine
