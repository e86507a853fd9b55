// SPDX-License-Identifier: Apache-2.0
// How is the fidelity of a run shown? One line, and one for each kind of approximation.
#pragma once

#include <string>
#include <string_view>

#include "results/fidelity.h"

namespace kiln::report {

// "fidelity: 1,200 warp instructions: 1,188 exact, 12 approximate; no approximate value decides a
// branch", then "  12 x ex2.approx.ftz.f32: a GPU's result may be off by 2 ulp"
std::string fidelity_text(const results::Fidelity& fidelity);
// "compiled: 1,064 of 1,160 warp instructions have machine code in kernels that run long", then
// "  interpreted: 96 x bar.sync"
std::string machine_code_text(const results::Fidelity& fidelity);
// Instead of it, if nothing may be compiled.
constexpr std::string_view kNoMachineCode = "compiled: nothing, because KILN_ENGINE_COMPILE is 0\n";

}  // namespace kiln::report
