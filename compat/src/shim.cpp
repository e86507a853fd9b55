// SPDX-License-Identifier: Apache-2.0
#include "shim.h"

#include <kiln/compat/check.h>
#include <stdio.h>

#include "dynamic.h"
#include "torch.h"

namespace kiln::compat {

namespace {
std::string& failure() {
  static auto* text = new std::string;
  return *text;
}
}  // namespace

const char* load_failure() { return failure().empty() ? nullptr : failure().c_str(); }

void keep_load_failure() {
  try {
    throw;
  } catch (const std::exception& e) {
    failure() = e.what();
  } catch (...) {
    failure() =
        "error: the ops of a library could not be registered\n  why: an exception that is not a "
        "std::exception was thrown";
  }
  fprintf(stderr, "%s\n", failure().c_str());
}

void* shim_function(const char* name, const char* since) {
  if (void* found = kiln::detail::find_symbol(kiln::detail::torch_library_of_shim(), name))
    return found;
  throw at::Error(
      c10::str("error: this torch is too old for the library\n  why: libtorch_cpu.so has no ", name,
               "; torch ", since, " and newer have it\n  fix: pip install 'torch>=", since,
               "', or build with kiln build --compat=never"));
}

}  // namespace kiln::compat

extern "C" __attribute__((visibility("default"))) const char* kiln_compat_load_failure() {
  return kiln::compat::load_failure();
}
