// SPDX-License-Identifier: Apache-2.0
// What does a code generator need for a piece of code? Memory for its lists, which the system has
// to clear: to begin with what the last piece left behind takes a fifth off the time.
#pragma once

#include <cstddef>

#include "engine/memory/spare.h"

namespace kiln::engine {

// Of very long code the memory goes back to the system.
constexpr size_t kLongestKept = 64 << 10;

}  // namespace kiln::engine
