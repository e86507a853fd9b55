// SPDX-License-Identifier: Apache-2.0
// What does a C++ project get of a release? A folder: the library, a header for it, a CMake
// package, and what it needs.
//
//   lib/libmy_ext.so   include/my_ext.h   include/kiln/abi.h   lib/cmake/my_ext/my_extConfig.cmake
//   release.json
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "build/plan/request.h"
#include "build/run/outcome.h"
#include "inspect/analysis.h"
#include "inspect/wheel_tag.h"
#include "ship/op_facts.h"

namespace kiln::ship {

namespace fs = std::filesystem;

// What a library asks of the machine it runs on.
struct LibraryNeeds {
  inspect::SystemFloor system;
  inspect::DriverFloor driver;
  std::vector<std::string> images;  // "sm_80", "compute_80"
  std::vector<std::string> needed;  // NEEDED
  std::string rpath, runpath, machine;
};
Result<LibraryNeeds> needs_of(const inspect::Artifact& file);
// Of a file that holds one library.
Result<LibraryNeeds> needs_of(const fs::path& library);

struct Release {
  fs::path folder;
  LibraryFacts library;
  LibraryNeeds needs;
  uint64_t library_bytes = 0;
  std::vector<std::string> files;  // relative to the folder
};

// A file whose content is as it was is not written again: who builds on it need not build again.
Result<Release> write_release(const build::Outcome& outcome, const fs::path& folder,
                              const build::World& world);

// Also of the wheel: an error for a library without ops.
Result<LibraryFacts> facts_of_library(const fs::path& library);

// "3 files differ from the last commit (my_ext.cu, ...)"; empty for a clean tree, and where git
// does not answer.
std::string uncommitted(const fs::path& folder, const build::World& world);

Json to_json(const Release& release);

}  // namespace kiln::ship
