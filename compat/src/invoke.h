// SPDX-License-Identifier: Apache-2.0
// What happens around a function of an extension? As around kiln's own ops: its tensors tell where
// launches go, and the first fault of a launch is raised when it has returned.
#pragma once

#include <kiln/compat/value.h>

namespace kiln::compat {

// `named`: what the caller knows the function as, for messages.
void invoke(const Function& function, const char* named, Value* arguments, Value& result);

}  // namespace kiln::compat
