// SPDX-License-Identifier: Apache-2.0
// How does a C or C++ program call the ops of a library? By a header with one inline function per
// op, over kiln/abi.h.
#pragma once

#include <string>

#include "ship/op_facts.h"

namespace kiln::ship {

std::string c_header(const LibraryFacts& library);

}  // namespace kiln::ship
