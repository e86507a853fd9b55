// SPDX-License-Identifier: Apache-2.0
// How are `.param` variables read and written? Those of the kernel, and those of calls.
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// Each function moves one element, `skip` bytes after the address.
bool load_parameter(Lowering& l, const ptx::Operand& address, const ptx::Operand& to, int64_t skip);
bool load_passed(Lowering& l, const ptx::Operand& address, const Lowering::Passed& passed,
                 const ptx::Operand& to, int64_t skip);
bool store_passed(Lowering& l, const ptx::Operand& address, const Lowering::Passed& passed,
                  Source from, uint32_t register_bytes, int64_t skip);

}  // namespace kiln::engine
