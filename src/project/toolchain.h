// SPDX-License-Identifier: Apache-2.0
// Which compilers make the code, and are they the same as last time?
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::project {

struct Compiler {
  std::vector<std::string> command;  // {"ccache", "/usr/local/cuda/bin/nvcc"}
  sys::fs::path path;                // of the compiler itself, links resolved
  std::string identity;  // path, size and times of each program that takes part; changes when one
                         // of them does
  std::vector<sys::fs::path> parts;  // those programs
};

// NVCC (also "ccache nvcc"), CUDA_HOME or CUDA_PATH, PATH, /usr/local/cuda, PyPI's next to this
// kiln, setup's, /usr/local/cuda-*, PyPI's in the packages of the Python on PATH (KILN_PYTHON,
// python3, python).
Result<Compiler> find_nvcc(const sys::Files& files, const sys::Environment& env);

// "CUDA_HOME=/nowhere has no bin/nvcc"; "" where the variable is not set, or leads to one. An nvcc
// that is found elsewhere may be of another version than the one that is meant.
std::string misleading_cuda_home(const sys::Files& files, const sys::Environment& env);

struct HostCompiler : Compiler {
  bool chosen = false;  // by CXX: nvcc must be given it; else nvcc finds its own (NVCC_CCBIN, PATH)
};

// CXX, NVCC_CCBIN, then g++ and c++ of PATH.
Result<HostCompiler> find_host_compiler(const sys::Files& files, const sys::Environment& env);

Result<sys::fs::path> find_ninja(const sys::Files& files,
                                 const sys::Environment& env);  // setup's, PATH's, PyPI's

// "5.0, 5.2, ..., 12.1": what `nvcc --list-gpu-code` prints. Starts nvcc: for error messages only.
std::string supported_archs(const Compiler& nvcc, sys::Processes& processes);

}  // namespace kiln::project
