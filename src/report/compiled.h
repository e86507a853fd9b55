// SPDX-License-Identifier: Apache-2.0
// How is it shown what became machine code?
#pragma once

#include <string>
#include <vector>

#include "results/compiled.h"

namespace kiln::report {

// "compiled: k(float*): 3 of 4 stretches, 5,120 bytes in 1.2 ms; entered 4,000 times, 60 of them
// interpreted", then "  interpreted: 4 x bar.sync, 2 x atom.add.u32"
std::string compiled_text(const results::CompiledKernel& kernel);
// "4 x bar.sync, 2 x atom.add.u32 and 3 other kinds"
std::string kinds_text(const std::vector<results::InterpretedKind>& kinds);

}  // namespace kiln::report
