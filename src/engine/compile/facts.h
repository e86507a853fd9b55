// SPDX-License-Identifier: Apache-2.0
// What came of compiling a program?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/program/program.h"

namespace kiln::engine {

struct CompiledFacts {
  uint32_t stretches = 0;  // that could be compiled
  uint32_t compiled = 0;   // of those that a warp has come to
  uint32_t given_up = 0;   // not compiled, or left again too often
  uint32_t losing = 0;     // some code of it did not pay, and rested
  uint64_t entered = 0;    // how often warps came to compiled ones
  uint64_t missed = 0;     // of those, interpreted after all
  uint64_t masked = 0;     // of those that were not: with some lanes alone
  uint64_t by_double = 0;  // of all: by code that computes f32 by way of f64
  uint64_t compiling_ns = 0;
  uint64_t code_bytes = 0;
  uint32_t refused = 0;  // stretches for which the system gave no executable memory
};
// Does this build make machine code for this CPU?
bool compiles();
// All zero: it has not run long enough, or this build compiles nothing.
CompiledFacts compiled_facts(const Program& program);

struct KernelFacts {
  std::string name;  // mangled
  CompiledFacts facts;
  std::map<std::string, uint32_t> interpreted;  // by opcode: Ops that are in no stretch
};
// From now on the facts of kernels that run long are kept, for kept_facts(), after they are gone.
void keep_facts();
std::vector<KernelFacts> kept_facts();

}  // namespace kiln::engine
