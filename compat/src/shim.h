// SPDX-License-Identifier: Apache-2.0
// Where is a function of torch's C shim? In the torch of the process, which must have it: an older
// one is named, with the function that it lacks, before anything calls a null pointer.
#pragma once

namespace kiln::compat {

// since: the first torch that has it. Throws at::Error.
void* shim_function(const char* name, const char* since);

template <class F>
F shim(const char* name, const char* since = "2.7") {
  return reinterpret_cast<F>(shim_function(name, since));
}

// Why the ops of this library could not be registered; null: they were. A failure must not be
// thrown while the library is loaded: it would end the process. It is reported on stderr, by
// PyInit_ and by kiln_compat_load_failure().
const char* load_failure();
void keep_load_failure();  // in a catch block: of what was thrown

}  // namespace kiln::compat
