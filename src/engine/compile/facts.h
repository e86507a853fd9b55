// SPDX-License-Identifier: Apache-2.0
// What was compiled of a program, and how often did it run?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/program/program.h"

namespace kiln::engine {

struct CompiledFacts {
  uint32_t stretches = 0;  // that can be compiled
  uint32_t compiled = 0;   // of these: with code
  uint32_t losing = 0;     // some of its code did not pay, and rested
  uint64_t entered = 0;    // how many times warps entered code
  uint64_t missed = 0;     // of these: interpreted after all
  uint64_t masked = 0;     // of the others: in code for partial warps or for diverging lanes
  uint64_t alone = 0;      // of all entries: by code for one lane
  uint64_t by_double = 0;  // of all entries: by code that computes f32 in f64
  uint32_t asked = 0;      // addresses of loops whose memory is asked for ahead
  uint32_t later = 0;      // versions for patterns of later launches
  uint64_t compiling_ns = 0;
  uint64_t code_bytes = 0;
  uint32_t refused = 0;  // stretches without executable memory
};
// Can this build make machine code for this CPU?
bool compiles();
// All zero: the program has not run long enough, or this build has no compiler.
CompiledFacts compiled_facts(const Program& program);

struct KernelFacts {
  std::string name;  // mangled
  CompiledFacts facts;
  std::map<std::string, uint32_t> interpreted;  // by opcode: Ops outside all stretches
};
// From now on keeps the facts of kernels that run long, for kept_facts(), after their programs are
// gone.
void keep_facts();
std::vector<KernelFacts> kept_facts();

}  // namespace kiln::engine
