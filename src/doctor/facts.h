// SPDX-License-Identifier: Apache-2.0
// What does the doctor know about a machine, a library, a project? Plain values, gathered once;
// every check is a function of them alone, so that a test can make up any machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "project/arch.h"

namespace kiln::doctor {

struct Program {
  std::string path;        // empty: it is nowhere
  std::string version;     // "1.13.0"; empty: it does not tell
  bool on_path = true;     // false: it is there, and a shell does not find it
  std::string trouble;     // why it does not run, though it is there
  bool kiln_finds = true;  // `kiln build` does, whatever a shell finds
  bool found() const { return !path.empty(); }
};

struct Toolkit {
  Program nvcc;      // version is the release, "13.0"
  std::string home;  // the folder with include/cuda_runtime.h
  std::vector<project::Arch> archs;
  int newest_gcc = 0;                         // that host_config.h allows; 0: not known
  int newest_clang = 0;                       // the same
  std::string cuda_home, cuda_home_variable;  // what CUDA_HOME or CUDA_PATH says
  bool cuda_home_has_nvcc = false;
};

struct HostCompiler {
  Program program;
  bool clang = false;
  std::string named_by;            // "CXX", "NVCC_CCBIN"; empty: PATH
  bool allow_unsupported = false;  // -allow-unsupported-compiler in nvcc's flags
};

struct Python {
  Program program;
  std::string platform_tag;  // "linux_aarch64"
  std::string include;       // where Python.h should be
  bool has_header = false;
  std::vector<std::string> packages;  // the folders where packages are
  std::string prefix;                 // sys.prefix
  bool is_environment = false;        // a venv or conda's
  bool has_pip = false;
};

struct Torch {
  std::string folder;   // empty: none
  std::string version;  // "2.11.0+cu130"
  std::string cuda;     // "13.0"; empty: a build for CPUs
  bool found() const { return !folder.empty(); }
};

struct Gpu {
  bool device_nodes = false;  // /dev/nvidia0, /dev/nvidiactl or /dev/dxg
  std::vector<project::Arch> archs;
  std::string driver;   // "580.65.06"; empty: not known
  std::string libcuda;  // path of libcuda.so.1; empty: the loader does not find it
};

struct Machine {
  std::string cpu;  // "x86_64", "aarch64"
  int cores = 1;
  uint64_t memory_bytes = 0;                    // available, limits of control groups counted
  std::optional<uint64_t> address_space_bytes;  // ulimit -v
  double load = 0;                              // mean of the last minute
  std::string glibc;                            // "2.36"; empty: not known
};

// The variables that decide how code is built, as they are set.
struct Variables {
  std::string arch_list;     // TORCH_CUDA_ARCH_LIST
  std::string max_jobs;      // MAX_JOBS
  std::string nvcc;          // NVCC, PYTORCH_NVCC or CUDA_NVCC_EXECUTABLE
  std::string nvcc_flags;    // NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS
  std::string cxx_flags;     // CXXFLAGS
  int nvcc_threads = 0;      // NVCC_THREADS
  std::string library_path;  // LD_LIBRARY_PATH
};

struct Ccache {
  Program program;
  bool for_nvcc = false;  // nvcc is started through it
  bool depend_mode = false;
  int64_t hits = 0, misses = 0;
};

struct CacheFolder {
  std::string folder;        // empty: the cache is off
  std::string refused, fix;  // why it must not be used
  bool writable = true;
  std::string why_not_writable;
  std::string file_system;  // "nfs4"
  uint64_t free_bytes = 0;
  int64_t hits = 0, misses = 0;
};

struct StaleLock {
  std::string path;
  bool owned = false;  // a process has it open
  double age_s = 0;
};

// A libcudart in a process or on the way to one.
struct Cudart {
  std::string path;
  std::string from;  // "process 1234", "LD_LIBRARY_PATH"
  int major = 0;     // 0: not known
};

struct MissingSymbol {
  std::string name, demangled;
  std::string why;  // "built for torch 2.3 to 2.5; torch 2.11 has ..."
  bool string_abi = false;
};

struct MissingLibrary {
  std::string name;
  std::string needed_by;
  std::string beside;  // torch/lib has it, and the loader does not look there
};

// A library as this machine would load it.
struct Library {
  std::string name;
  std::string machine;  // "x86_64"
  std::string trouble;  // it cannot be read at all
  std::string trouble_fix;
  bool shared = true;
  std::vector<MissingLibrary> missing;
  std::vector<MissingSymbol> symbols;
  std::string built_for_torch;  // "2.3 to 2.5"
  std::vector<std::string>
      cudarts;                 // names in NEEDED of it and of what it loads: "libcudart.so.12"
  std::string glibc, glibcxx;  // the newest that it needs
  std::string glibc_here, glibcxx_here;  // of the libraries that would be loaded
  std::string glibcxx_file;
  bool uses_python = false, is_kiln = false;
  std::string
      module;  // the name that `import` would use, of a file named as an extension module is
  bool has_init = true;             // PyInit_<module>
  std::vector<std::string> images;  // "sm_90", "compute_80"
  struct Serves {
    project::Arch gpu;
    bool native = false, jit = false;
  };
  std::vector<Serves> serves;  // each GPU that is here
  int driver_sass = 0, driver_ptx = 0;
  std::string why_sass, why_ptx;
};

struct Wheel {
  std::string name;
  std::vector<std::string> tags;  // "cp311-cp311-manylinux_2_34_x86_64"
  std::string trouble;            // no name of a wheel
};

struct SourceFile {
  std::string name;
  bool cuda = false;
  std::vector<std::string> heavy;   // headers of torch and others that cost: "torch/extension.h"
  std::string variant_instruction;  // "wgmma": runs on sm_90a, sm_100a ... alone
};

struct PastStep {
  std::string output;
  double seconds = 0;
};

// A project that is built here: kiln's own, or one with setup.py or a call of cpp_extension.load.
struct Project {
  std::string folder;
  bool kiln = false, setup_py = false, pyproject = false, jit = false;
  std::vector<SourceFile> sources;
  std::string arch_list;              // of kiln.toml
  std::vector<std::string> gencodes;  // "sm_90" in the flags of setup.py
  std::string flags;                  // all flags found, blank-separated
  bool imports_torch = false;         // setup.py does
  bool requires_torch = false;        // build-system.requires names it
  bool no_ninja = false;              // use_ninja=False
  int nvcc_threads = 0;               // --threads in its flags
  bool has_build = false;             // it was built here before
  std::vector<PastStep> steps;        // of the last build, the slowest first
  double wall_s = 0, work_s = 0;      // of that build
  std::string log;                    // the file that says so
};

struct TimedCompile {
  bool ran = false;
  std::string trouble, trouble_fix;
  double cold_s = 0, cached_s = 0;
};

struct Facts {
  Machine machine;
  Variables variables;
  Program ninja, nvdisasm;
  Toolkit toolkit;
  HostCompiler host;
  Python python;
  Torch torch;
  Gpu gpu;
  Ccache ccache;
  CacheFolder cache;
  std::vector<StaleLock> locks;
  std::vector<Cudart> cudarts;
  std::string setup_folder;  // where `kiln setup` keeps what it installs
  bool setup_done = false;   // its env file is there
  std::optional<TimedCompile> timed;
  std::vector<Library> libraries;
  std::optional<Wheel> wheel;
  std::optional<Project> project;
};

}  // namespace kiln::doctor
