// SPDX-License-Identifier: Apache-2.0
#include "gpu_libraries.h"

#include <dlfcn.h>

#include "dynamic.h"

namespace kiln::detail {

void* function_of_library(const KilnFrontEntry* entry, Text& why) {
  if (void* function = find_symbol(RTLD_NEXT, entry->name)) return function;
  // With --as-needed the linker drops a library of which only functions of the table are called.
  for (int major = 20; major > 0; major--) {
    Text name;
    name.addf("lib%s.so.%d", entry->name_on_12, major);
    if (void* library = open_library(name.c_str(), nullptr))
      return find_symbol(library, entry->name);
  }
  why.addf(
      "error: %s is not available\n  why: the loader finds no lib%s.so of any version\n  fix: "
      "install %s, or add its folder to LD_LIBRARY_PATH",
      entry->name, entry->name_on_12, entry->why);
  return nullptr;
}

void add_library_refusal(Text& text, const KilnFrontEntry* entry) {
  text.addf(
      "error: %s is not available\n  why: this runs on kiln's engine, on the CPU, and %s runs on "
      "GPUs only\n  fix: run it on a GPU, or use torch's own operators there: they take tensors "
      "of both",
      entry->name, entry->why);
}

}  // namespace kiln::detail
