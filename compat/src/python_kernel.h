// SPDX-License-Identifier: Apache-2.0
// How does an op reach the dispatcher if a type of it does not cross torch's C shim (Scalar, Dict,
// Generator, tuples)? As a kernel of Python's: torch.library calls it with Python objects.
#pragma once

#include <kiln/compat/value.h>

#include <string>

namespace kiln::compat {

struct Kernel {
  std::string name;  // with its namespace
  Function function;
};

// The kernel must live as long as the process.
void implement_in_python(const std::string& ns, const std::string& key, const std::string& name,
                         const Kernel& kernel);

}  // namespace kiln::compat
