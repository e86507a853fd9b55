// SPDX-License-Identifier: Apache-2.0
// How far can the results of a run be trusted to the last bit? Instructions that the engine ran
// exactly as a GPU does, and those whose last bits may differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/compiled.h"

namespace kiln::results {

struct Approximated {
  std::string opcode, bound;  // "ex2.approx.ftz.f32", "2 ulp": how far a GPU may be off
  int64_t warps = 0;          // instructions, once for each warp that issued one
};

struct Fidelity {
  int64_t instructions = 0;  // of all kinds, once for each warp that issued one
  std::vector<Approximated> approximate;
  std::vector<std::string> branches;  // "f.cu:12": decided by a value that was approximated
  // Of a kernel that runs long: kinds that have no machine code, the most frequent first.
  std::vector<InterpretedKind> interpreted;
};

}  // namespace kiln::results
