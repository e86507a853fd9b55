// SPDX-License-Identifier: Apache-2.0
// Which fat binaries, kernels and variables does this library have? nvcc's code registers them
// while the library loads; they are kept here until a back end is used.
#pragma once

#include <stddef.h>

#include "call.h"

namespace kiln::detail {

struct Function {
  const void* host;
  char* device;
  const char* name;
  int thread_limit;
  Function* next;
  void* real_kernel;      // libcudart's own handle, once it was asked for
  void* engine_function;  // the engine's, likewise
};
struct Variable {
  void* host;
  char* device;
  const char* name;
  int external;
  size_t bytes;
  int constant;
  int global;
  bool managed;
  Variable* next;
};
struct Image {
  void* wrapper;
  Function* functions;
  Variable* variables;
  void* handles[2];  // by back end
  bool has_managed;
  Image* next;
};

// Gives a back end what was registered since it was last used. Throws when the back end is not
// there.
void make_ready(Backend backend);
Function* find_function(const void* host);  // or null
const char* kernel_name(const void* host);

inline Image* image_of(void** handle) { return reinterpret_cast<Image*>(handle); }

}  // namespace kiln::detail
