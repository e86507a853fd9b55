// SPDX-License-Identifier: Apache-2.0
// Which ops does this library have, and how are they described to callers?
#pragma once

#include "kiln/abi.h"
#include "kiln/register.h"
#include "text.h"

namespace kiln::detail {

// The part of an op that is made when the library is loaded.
struct OpState {
  KilnOpInfo info;
  bool has_tensor;         // some argument is a tensor or a list of them
  bool needs_torch_2_10;   // lists and strings cannot cross the shim of an older torch
  char* no_backward_text;  // made at its first use (autograd.cpp)
};

// The ops in the order of their definition; described on the first call. A text that cannot be read
// (a bad default) is reported in `registry().fault` and leaves no ops.
struct Registry {
  OpRecord* first = nullptr;
  uint32_t count = 0;
  const KilnOpInfo* infos = nullptr;
  OpRecord** records = nullptr;
  const char* library = "";
  Text fault;
};
Registry& registry();

}  // namespace kiln::detail
