// SPDX-License-Identifier: Apache-2.0
// What does a refused call of gpu_libraries.def return? The library's own status for "no device".
// What its first parameter points to becomes null, so that the library's other functions refuse it
// too if the caller ignores the status.
#include "front_entry.h"

extern "C" {
thread_local int kiln_library_status = 0;

__attribute__((visibility("hidden"))) int kiln_refuse_library_handle(void** handle) {
  if (handle) *handle = nullptr;
  return kiln_library_status;
}
__attribute__((visibility("hidden"))) int kiln_refuse_library_plan(int* plan) {
  if (plan) *plan = 0;
  return kiln_library_status;
}
__attribute__((visibility("hidden"))) int kiln_refuse_library_none() { return kiln_library_status; }
}
