// SPDX-License-Identifier: Apache-2.0
// What does an op that writes to an argument do with a conjugated or negated view?
#pragma once

#include <exception>

namespace kiln::detail {

// Of the exception that a call from torch ends with: a call on resolved copies raises it again.
void keep_failure();

}  // namespace kiln::detail
