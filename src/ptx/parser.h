// SPDX-License-Identifier: Apache-2.0
// How does PTX text become a Module? The module's level is read at once; the body of a function
// when it is asked for, so that a large library costs little and a fault in one kernel does not
// touch the others.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ptx/module.h"

namespace kiln::ptx {

// `text` must outlive the module: names are views into it.
Result<Module> parse_module(std::string_view text);
Result<Body> parse_body(const Module& module, const Function& function);

// Beyond these a text is refused: no compiler writes such PTX, and it would only eat memory.
constexpr uint32_t kMaxRegisters = 1 << 20;
constexpr uint32_t kMaxNesting = 64;
constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 34;

}  // namespace kiln::ptx
