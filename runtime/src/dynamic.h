// SPDX-License-Identifier: Apache-2.0
// How does the runtime reach the dynamic loader? Through the oldest versions of its functions, so
// that a library built on a new glibc still loads on an old one (dlopen moved into libc as
// GLIBC_2.34).
#pragma once

#include "kiln/abi.h"
#include "text.h"

namespace kiln::detail {

void* open_mapped(const char* name);  // only if it is in the process already; never loads
void* open_library(const char* path, Text* why);  // RTLD_NOW | RTLD_LOCAL
void* find_symbol(void* handle, const char* name);
bool path_of_symbol(const void* address, char (&path)[4096]);

// An op library of kiln's in this process, this one included.
struct Sibling {
  uint32_t abi_version;
  const KilnLibrary* (*library)();
  int (*unregister_torch)();
};
// Up to `most` of them; the number found.
int find_siblings(Sibling* siblings, int most);

}  // namespace kiln::detail
