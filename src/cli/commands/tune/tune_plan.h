// SPDX-License-Identifier: Apache-2.0
// What is to be tuned? The table [tune.NAME] of kiln.toml, and what the command line says besides
// or instead of it.
//
//   [tune.forward]
//   op = "forward"                                   # else NAME
//   args = ["randn:bf16:32x16x512x128", ...]         # to time with
//   check_args = ["randn:bf16:1x2x200x128", ...]          # to compare results with; else args
//   vary = { BLOCK_M = [64, 128], WARPS = [4, 8] }   # defines and their values
//   where = ["BLOCK_M % (16 * WARPS) == 0"]
//   defines = ["HEAD_DIM=128"]                       # of every variant
//   against = "torch.nn.functional.gelu"             # or expect = "ones:f32:8"
//   rtol = 1e-2
//   atol = 1e-3
//   kernel = "forward_kernel"                        # prune by these kernels alone
//   shared_bytes = "BLOCK_M * 256"                   # dynamic shared memory of a block
//   threads = "32 * WARPS"
//   max_spill_bytes = 0
//   max_registers = 255
//   min_blocks = 1
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tune/prune.h"
#include "tune/space.h"

namespace kiln::cli {

// As it is written; an empty member stands for "not said".
struct TuneWords {
  std::string name, op, against, expect, kernel, shared_bytes, threads;
  std::vector<std::string> arguments, check, vary, where, defines;
  std::optional<double> rtol, atol;
  std::optional<int64_t> max_spill_bytes, max_registers, min_blocks;
};

struct TunePlan {
  std::string name, op, against, expect;
  std::vector<std::string> arguments, check, defines;
  std::optional<double> rtol, atol;
  tune::Space space;
  Json where;                      // the constraints of the space, as written
  std::vector<std::string> notes;  // about keys of the release before
  tune::Rules rules;
};

// `tables` is [tune] of kiln.toml, empty where there is none; `source` is for messages.
Result<TunePlan> tune_plan(const TuneWords& said, const Json& tables, const std::string& source);

// "bf16 32x16x512x128" for a tensor's spec, the text itself for the rest; NAME= stays in front.
std::vector<std::string> argument_kinds(const std::vector<std::string>& arguments);

}  // namespace kiln::cli
