// SPDX-License-Identifier: Apache-2.0
// Does a text have a lambda marked __device__ or __host__, which nvcc compiles with
// --expt-extended-lambda alone?
#pragma once

#include <string_view>

namespace kiln::build {

struct Lambdas {
  bool in_code = false;
  bool in_macro = false;  // whoever includes the text may have one by the macro's name
};

// `text` without comments. A form that is not known is taken for one: the flag then costs time and
// nothing else.
Lambdas extended_lambdas(std::string_view text);

}  // namespace kiln::build
