// SPDX-License-Identifier: Apache-2.0
// How is a long kernel name read? Split into the function, its template arguments and parameters.
#pragma once

#include <string>
#include <string_view>

namespace kiln::report {

struct KernelName {
  std::string function;    // "at::native::reduce_kernel": the same for every instance of a template
  std::string arguments;   // "<512, 1, float>"; empty if it is not an instance
  std::string parameters;  // "(float const*, int)", and what follows them
};

// The return type is left out. A name that is not one of C++ is its own function.
KernelName split_name(std::string_view demangled);

}  // namespace kiln::report
