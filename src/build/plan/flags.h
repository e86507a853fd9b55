// SPDX-License-Identifier: Apache-2.0
// What do a user's flags make the compilers read, or do, that no depfile tells?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "build/plan/recipe.h"
#include "sys/files.h"

namespace kiln::build {

struct FlagFacts {
  std::vector<std::string> files;  // that a flag names and that are there, absolute
  std::vector<std::string>
      option_files;         // those among them that hold flags themselves, nested ones too
  std::string opaque;       // why what the flags make can be described by no key; empty: it can
  std::string relocatable;  // the flag that asks for relocatable device code
  std::string missing;      // an option file that is not there
};

// A relative name is looked for in each of `folders`: nvcc's dry run starts in the user's, the
// compilers in the build's.
FlagFacts look_at_flags(const sys::Files& files, const Words& flags,
                        const std::vector<sys::fs::path>& folders);

// The language that flags ask for: "c++17" of -std=c++17, --std=c++17 or "-std c++17", the last
// one; empty: none does.
std::string asked_language(const Words& flags);
Words without_language(const Words& flags);
// 17 of "c++17", "gnu++17" and "c++1z"; 0: of no C++.
int language_year(std::string_view language);

// The first flag that asks for relocatable device code; empty: none does.
std::string relocatable_flag(const Words& flags);
// Relocatable device code needs a device link, which kiln does not do: a library of it cannot be
// loaded.
Error no_relocatable_code(const std::string& flag);

}  // namespace kiln::build
