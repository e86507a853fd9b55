// SPDX-License-Identifier: Apache-2.0
// Who provides each symbol that a library needs, and where nobody does, why?
#pragma once

#include <string>
#include <vector>

#include "inspect/analysis.h"
#include "inspect/loader.h"
#include "inspect/wheel_tag.h"
#include "results/inspect/symbols.h"

namespace kiln::inspect {

using results::NeededSymbol;
using results::SymbolRow;

struct InstalledTorch {
  sys::fs::path folder;  // empty: none
  std::string version;   // "2.11.0+cu130"
};

struct SymbolView {
  std::string soname, rpath, runpath, interpreter;
  std::string origin;  // of a member of a wheel: what $ORIGIN will be once pip has installed it;
                       // empty: the file's folder
  std::vector<SymbolRow> defined;  // of the dynamic table
  std::vector<NeededSymbol> needed;
  std::vector<SymbolRow> dynamic,
      all;  // whole tables as readelf -s has them; `all` is empty in a stripped file
  std::vector<LoadedLibrary> libraries;
  SystemFloor floor;
  InstalledTorch torch;
  std::vector<std::string>
      advice;  // lines for people: the libc10.so case, the torch it was built for
};

InstalledTorch find_torch(const sys::Files& files, sys::Processes& processes,
                          const sys::Environment& env);

struct SymbolOptions {
  bool whole_tables = false;
};
Result<SymbolView> read_symbol_view(const Artifact& file, const sys::Files& files,
                                    sys::Processes& processes, const sys::Environment& env,
                                    const SymbolOptions& options);

// "2.3 to 2.5", out of all names of libc10 that a library needs; empty when they say nothing, "no
// release" when they contradict each other.
std::string torch_range(const std::vector<std::string>& names);

// The same function as text, whatever the string ABI.
std::string without_string_abi(std::string demangled);

}  // namespace kiln::inspect
