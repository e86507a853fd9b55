// SPDX-License-Identifier: Apache-2.0
// Which code generator does this CPU use? Both need AVX2, FMA, F16C and BMI2.
#if defined(__x86_64__)
#include "engine/compile/target.h"

#include <cstdlib>

#include "engine/compile/x64/v3.h"
#include "engine/compile/x64/v4.h"

namespace kiln::engine {

uint32_t least_row_lanes() { return 8; }

namespace {

// clang 14 does not know this name; every CPU with AVX2 has the instructions.
bool has_f16c() {
#if defined(__clang__)
  return true;
#else
  return __builtin_cpu_supports("f16c") != 0;
#endif
}

}  // namespace

bool has_target() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && has_f16c();
}

std::unique_ptr<Target> make_target(uint32_t row_lanes) {
  if (!has_target()) return nullptr;
  if (row_lanes < X64V4::kLanes) return std::make_unique<X64V3>();
  return std::make_unique<X64V4>();
}

}  // namespace kiln::engine

// One object of Debian's asmjit archive for x86-64 cannot be linked into a shared library, because
// of how it refers to stderr. Its three functions are defined here instead, so the linker does not
// take it. asmjit's messages are not printed; a failed assertion of asmjit still ends the process.
ASMJIT_BEGIN_NAMESPACE
namespace DebugUtils {

const char* errorAsString(Error) noexcept { return "an error of asmjit"; }

void debugOutput(const char*) noexcept {}

void assertionFailed(const char*, int, const char*) noexcept { std::abort(); }

}  // namespace DebugUtils
ASMJIT_END_NAMESPACE
#endif
