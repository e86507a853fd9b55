// SPDX-License-Identifier: Apache-2.0
// How does the runtime reach the dynamic loader? Through the oldest versions of its functions, so that a library built on a new
// glibc still loads on an old one (dlopen moved into libc as GLIBC_2.34).
#pragma once

#include "text.h"

namespace kiln::detail {

void* open_mapped(const char* name);              // only if it is in the process already; never loads
void* open_library(const char* path, Text* why);  // RTLD_NOW | RTLD_LOCAL
void* find_symbol(void* handle, const char* name);
bool path_of_symbol(const void* address, char (&path)[4096]);
// Calls f for each other mapped object that exports the symbol.
void each_exporter(const char* symbol, void (*f)(void* address, void* context), void* context);

}  // namespace kiln::detail
