// SPDX-License-Identifier: Apache-2.0
// What does a kernel need for one architecture: registers, memory, instructions?
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace kiln::results {

// How many blocks of a kernel fit on a multiprocessor.
struct Fit {
  uint32_t blocks = 0, block_threads = 0;
  double fraction = 0;  // of the warps it can hold
  std::string limiter;  // "registers"
  uint32_t warps = 0;
};

using Shape = std::array<uint32_t, 3>;  // x, y, z; x of 0: not given

struct ParameterFacts {
  uint32_t offset = 0, bytes = 0;
};

struct KernelFacts {
  std::string name, symbol, arch;  // demangled, mangled, "sm_90a"
  size_t image = 0;                // index into Overview::images
  uint64_t registers = 0, shared_bytes = 0, reserved_shared_bytes = 0, stack_bytes = 0;
  uint64_t spill_store_bytes = 0, spill_load_bytes = 0, constant_bytes = 0, parameter_bytes = 0;
  uint64_t spill_stores = 0, spill_loads = 0;  // instructions
  uint64_t barriers = 0, max_registers = 0, code_bytes = 0, instructions = 0;
  std::vector<ParameterFacts> parameters;
  Shape max_threads{}, required_threads{}, cluster{};
  uint32_t min_blocks = 0;  // that a multiprocessor must hold; 0: not given
  std::optional<Fit> fit;   // none: not known for this architecture
  std::vector<std::pair<std::string, uint32_t>> mix;  // instructions by class, none of them 0
  int listing = -1;  // which of the listings of Inspection::code; -1: its code is not listed
};

Json to_json(const KernelFacts& kernel);

}  // namespace kiln::results
