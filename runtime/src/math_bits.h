// SPDX-License-Identifier: Apache-2.0
// What does an op that writes to an argument do with a conjugated or negated view?
#pragma once

namespace kiln::detail {

// The text of the exception that a call from torch ends with: a call on resolved copies raises it
// again.
void keep_failure(const char* text);

}  // namespace kiln::detail
