// SPDX-License-Identifier: Apache-2.0
// Which part of a key is not what it was?
#pragma once

#include <string>

#include "base/json.h"

namespace kiln::build {

// In words, of the parts that two keys were made of: "-DX=1 is now -DX=2". Empty when all are the
// same.
std::string what_differs(const Json& former, const Json& now);

}  // namespace kiln::build
