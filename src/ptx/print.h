// SPDX-License-Identifier: Apache-2.0
// How does a module look as text again? For tests and for messages: what was read is written out,
// and reads the same.
#pragma once

#include <string>

#include "base/result.h"
#include "ptx/module.h"

namespace kiln::ptx {

std::string print(const Operand& operand, const Body& body);
std::string print(const Instruction& instruction, const Body& body);
// Registers get new names, %k0 and on, in the order of their declaration: scopes are gone.
std::string print(const Body& body);
// With the bodies of all functions; an error where one cannot be read.
Result<std::string> print(const Module& module);

}  // namespace kiln::ptx
