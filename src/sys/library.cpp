// SPDX-License-Identifier: Apache-2.0
// How is a shared library brought into this process?
#include "sys/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace kiln::sys {

Result<Library> Library::open(const std::filesystem::path& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return Library(handle);
  const char* why = ::dlerror();
  return Error{Fault::Environment, fmt::format("cannot load {}", path.string()), why ? why : "",
               ""};
}

void* Library::find(const char* symbol) const { return ::dlsym(handle_, symbol); }

}  // namespace kiln::sys
