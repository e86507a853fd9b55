// SPDX-License-Identifier: Apache-2.0
#include "shim.h"

#include <kiln/compat/check.h>

#include "dynamic.h"
#include "torch.h"

namespace kiln::compat {

void* shim_function(const char* name, const char* since) {
  if (void* found = kiln::detail::find_symbol(kiln::detail::torch_library_of_shim(), name)) return found;
  throw at::Error(c10::str("error: this torch is too old for the library\n  why: libtorch_cpu.so has no ", name,
                           "; torch ", since, " and newer have it\n  fix: pip install 'torch>=", since,
                           "', or build with kiln build --compat=never"));
}

}  // namespace kiln::compat
