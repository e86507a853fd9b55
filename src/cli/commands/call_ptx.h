// SPDX-License-Identifier: Apache-2.0
// How does `kiln call x.ptx NAME` launch a kernel that no op wraps? On the engine, with memory that
// the command makes from its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands/call_report.h"
#include "host/op_call.h"

namespace kiln::cli {

struct PtxLaunch {
  std::string file, kernel, device;
  std::vector<std::string> arguments;
  std::string grid, block;  // "4", "4x2", "4,2,1"
  uint64_t shared_bytes = 0;
  uint64_t seed = 0;
  int64_t repeat = 0;
};

// PTX, a fat binary or a cubin by its name; the latter to be refused with the reason.
bool names_ptx(const std::string& target);

// "scale(.u64 x, .f32 a)", a line per kernel.
Result<std::vector<std::string>> ptx_kernels(const std::string& file);

struct PtxResult {
  std::string kernel;                 // with grid and block, for the first line
  std::vector<host::Output> outputs;  // the tensors that the kernel changed
  CallTimes times;
};
Result<PtxResult> call_ptx(const PtxLaunch& launch);

}  // namespace kiln::cli
