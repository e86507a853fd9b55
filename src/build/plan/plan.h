// SPDX-License-Identifier: Apache-2.0
// What exactly is to be built, from what, with what, and where? Every default and every relative
// path of a request resolved.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "build/plan/request.h"
#include "build/plan/source_scan.h"
#include "build/plan/step.h"
#include "build/plan/variables.h"
#include "project/arch.h"
#include "project/home.h"
#include "project/toolchain.h"

namespace kiln::build {

struct Source {
  fs::path file;      // absolute, links resolved
  std::string shown;  // as the user wrote it
  std::string key;    // its name among the objects: "add.cu"
  bool cuda = false;
  SourceFacts facts;
};

enum class TorchHeaders { None, Compat, Torchs };

struct Plan {
  std::string name;
  bool program = false;
  std::vector<Source> sources;
  project::ArchList arch;
  std::string why_variant;  // an `a` variant that nobody named
  std::vector<std::string> defines, cuda_flags, cflags, ldflags;
  std::vector<fs::path> includes;
  bool fast_math = false;
  TorchHeaders torch = TorchHeaders::None;  // for sources that include torch's headers
  std::vector<std::string> leaked;  // headers that torch's bring along and the sources rely on
  fs::path torch_package, python_include;  // of TorchHeaders::Torchs
  fs::path light_headers;     // torch's own beside the compat headers; empty: none is included
  int torch_language = 17;    // the C++ that they demand
  bool stable_torch = false;  // a source uses torch's stable C++ API
  bool torch_has_cuda = false;
  fs::path build_dir;
  fs::path output;  // empty: none asked for

  project::Home home;
  std::optional<project::Compiler> nvcc;  // none where there is no .cu
  fs::path cuda_include;  // of C++ sources; empty: no nvcc, or nothing that asks for it
  project::HostCompiler host;
  fs::path ninja;
  // Everything outside the command lines that changes what the compilers make: who they are, what
  // their environment says.
  std::string circumstances;
  VariableValues environment;             // the variables among them that every step reads
  VariableValues link_variables;          // those that the linker alone reads
  Words environment_flags;                // nvcc's flags in them
  std::vector<std::string> cpath;         // folders of headers that they name
  std::vector<std::string> library_path;  // folders of libraries that they name
  std::vector<fs::path> host_tools;       // as and ld
  std::vector<Root> roots;                // none where a debugger is to find the sources
  bool debug = false;                     // -g or -G
  bool findings_fail = false, full_lane = false, time_headers = false, release = false;
  bool fresh = false;
  double limit_s = 0;         // of each command; 0: none
  uint64_t memory_bytes = 0;  // the same; 0: as much as the machine has
  fs::path project_dir;       // empty: a lone file
  fs::path directory;         // the user's
  std::function<bool(const fs::path&)> is_program;
};

// What an attempt before this one taught: the compat headers lacked something.
struct HeaderChoice {
  bool torchs_own = false;
  std::set<std::string> added = {};  // headers of kiln's that have it
};
Result<Plan> make_plan(const Request& request, const World& world, const HeaderChoice& choice = {});

}  // namespace kiln::build
