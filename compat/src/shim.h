// SPDX-License-Identifier: Apache-2.0
// Where is a function of torch's C shim? In the torch of the process, which must have it: an older one is named, with
// the function that it lacks, before anything calls a null pointer.
#pragma once

namespace kiln::compat {

// since: the first torch that has it. Throws at::Error.
void* shim_function(const char* name, const char* since);

template <class F>
F shim(const char* name, const char* since = "2.7") {
  return reinterpret_cast<F>(shim_function(name, since));
}

}  // namespace kiln::compat
