// SPDX-License-Identifier: Apache-2.0
// What must be asked of the compilers themselves? Which programs nvcc starts, where headers are
// looked for. The answers are kept in the cache folder: asking takes 50 ms.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "build/plan/flags.h"
#include "build/plan/plan.h"
#include "build/plan/recipe.h"

namespace kiln::build {

struct Facts {
  // By whether the source has an extended lambda; none where nvcc has to do it by itself.
  std::map<bool, Recipe> recipes;
  std::vector<std::string> search;       // the host compiler's own folders, in order
  std::vector<std::string> cuda_search;  // those of the one that nvcc starts
  std::vector<std::string>
      library_search;  // the folders in which the host compiler's linker looks, in order
  std::vector<std::string>
      host_programs;                // cc1plus, as, collect2 and ld, as the host compiler finds them
  bool linker_tells_files = false;  // it knows --dependency-file (binutils 2.35)
  bool path_matters = false;        // a compiler is a script: what it starts depends on PATH
  FlagFacts cuda_flags, host_flags, link_flags;
  // JSON for keys of the cache: the hash of each program's content, and the variables that they
  // read, by name.
  std::string circumstances;
};

// Never fails for what can be done without: a compiler that does not answer gives empty facts.
Facts learn_facts(const Plan& plan, const World& world);

// The folders in `gcc -v -E`'s list.
std::vector<std::string> parse_search_list(std::string_view text);

}  // namespace kiln::build
