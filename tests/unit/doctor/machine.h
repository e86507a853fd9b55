// SPDX-License-Identifier: Apache-2.0
// Which machine, library and project have nothing wrong with them? Each test breaks one thing of
// these.
#pragma once

#include "doctor/facts.h"

namespace kiln::doctor {

inline Facts good_machine() {
  Facts facts;
  facts.machine = {"x86_64", 8, 64'000'000'000, std::nullopt, 0, "2.36"};
  facts.variables.arch_list = "9.0";
  facts.variables.max_jobs = "8";
  facts.ninja = {"/usr/bin/ninja", "1.11.1", true, "", true};
  facts.nvdisasm.path = "/usr/local/cuda/bin/nvdisasm";
  facts.toolkit.nvcc = {"/usr/local/cuda/bin/nvcc", "13.0", true, "", true};
  facts.toolkit.home = "/usr/local/cuda";
  facts.toolkit.archs = {{7, 5, 0}, {8, 0, 0}, {9, 0, 0}, {12, 1, 0}};
  facts.toolkit.newest_gcc = 15;
  facts.toolkit.newest_clang = 20;
  facts.host.program = {"/usr/bin/g++", "12.2.0", true, "", true};
  facts.python.program = {"/usr/bin/python3", "3.11.7", true, "", true};
  facts.python.include = "/usr/include/python3.11";
  facts.python.has_header = true;
  facts.torch = {"/venv/torch", "2.11.0+cu130", "13.0"};
  facts.gpu = {true, {{9, 0, 0}}, "580.65.06", "/usr/lib/libcuda.so.1"};
  facts.cache.folder = "/h/u/.cache/kiln/store";
  facts.cache.file_system = "ext4";
  facts.cache.free_bytes = 100'000'000'000;
  return facts;
}

inline Library good_library() {
  Library library;
  library.name = "libadd.so";
  library.machine = "x86_64";
  library.glibc = "2.17";
  library.glibc_here = "2.36";
  library.glibcxx = "3.4.19";
  library.glibcxx_here = "3.4.30";
  library.glibcxx_file = "/usr/lib/libstdc++.so.6";
  library.images = {"sm_90", "compute_90"};
  library.serves = {{{9, 0, 0}, true, false}};
  library.driver_sass = library.driver_ptx = 580;
  library.why_sass = "CUDA 13.0";
  library.why_ptx = "PTX ISA 9.0 (CUDA 13.0)";
  return library;
}

inline Project good_project() {
  Project project;
  project.folder = "/h/u/add";
  project.kiln = true;
  project.sources = {{"add.cu", true, {}, ""}};
  return project;
}

// The same work as a setup.py project, whose user knows what to do.
inline Project classic_project() {
  Project project;
  project.folder = "/h/u/classic";
  project.setup_py = project.imports_torch = project.pyproject = project.requires_torch = true;
  project.sources = {{"bind.cpp", false, {"torch/extension.h"}, ""}, {"add.cu", true, {}, ""}};
  return project;
}

}  // namespace kiln::doctor
