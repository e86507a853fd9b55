// SPDX-License-Identifier: Apache-2.0
// Which variants need not be measured? Those that cannot be launched on the GPU, and those whose
// code says that they are slow: spills, registers, too few blocks on a multiprocessor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sys/files.h"
#include "tune/expression.h"

namespace kiln::tune {

struct Rules {
  std::string kernel;  // part of a kernel's demangled name; "": all of the library
  std::optional<Expression>
      shared;  // dynamic shared memory of a block, in bytes; a cubin does not know it
  std::optional<Expression> threads;  // of a block, where launch bounds do not say it
  int64_t most_spill_bytes = 0;       // -1: any
  int64_t most_registers = 0;         // 0: any
  int64_t least_blocks = 1;           // on a multiprocessor
};

// Of the kernels that `rules.kernel` names: each figure is the worst among them.
struct CodeFacts {
  size_t kernels = 0;  // 0: there is no SASS for the GPU, so nothing is known
  int64_t registers = 0, spill_bytes = 0;
  int64_t shared_bytes = 0;  // static, and dynamic where the rules tell it
  int64_t threads = 0;       // 0: not known
  int64_t blocks = -1;       // that fit on a multiprocessor; -1: not known
  double occupancy = 0;
  std::string limiter;
};
Json to_json(const CodeFacts& facts);

// `compute` is the GPU's, 90 for 9.0; 0: the newest that the library has code for. `defines` as
// "K=V".
Result<CodeFacts> code_facts(const sys::fs::path& library, uint32_t compute, const Rules& rules,
                             const std::vector<std::string>& defines);

// "" or why it is not measured.
std::string why_pruned(const CodeFacts& facts, const Rules& rules);

}  // namespace kiln::tune
