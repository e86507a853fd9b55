// SPDX-License-Identifier: Apache-2.0
// How is a shared library brought into this process? By dlopen, with its error in kiln's form.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace kiln::sys {

// Stays loaded for the life of the process: threads and handlers of an op library may outlive any
// owner.
class Library {
 public:
  static Result<Library> open(const std::filesystem::path& path);
  // Null when the library has no such symbol.
  void* find(const char* symbol) const;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace kiln::sys
