// SPDX-License-Identifier: Apache-2.0
// What does a library define and need, who provides each symbol, and which systems does it run on?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace kiln::results {

struct SymbolRow {
  char letter = '?';  // as nm shows it
  std::string name, demangled, version;
  bool default_version = false;
  uint64_t value = 0, bytes = 0;
  uint8_t type = 0, binding = 0, other = 0;
  std::string section;  // its index, "UND", "ABS" or "COM"
};

// As readelf -s names them.
std::string_view type_of(const SymbolRow& row);
std::string_view binding_of(const SymbolRow& row);
std::string_view visibility_of(const SymbolRow& row);

struct NeededSymbol {
  SymbolRow symbol;
  bool weak = false;
  std::string provider;  // a library's name; "python" for CPython's API; empty: nobody
  std::string why;       // for nobody: what is known about it
};

struct SystemFloor {
  std::string glibc, glibcxx, cxxabi;  // "2.34"; empty when none is needed
  std::string tag;  // "manylinux_2_34_aarch64", "linux_aarch64" when no tag allows it
  std::vector<std::string> reasons;  // the versions that keep it from the next older tag
  // Libraries that no manylinux promises: a wheel has to bring them, or leave them to a package it
  // depends on.
  std::vector<std::string> outside;
};

struct LibraryFacts {
  std::string name;           // as NEEDED says
  std::string path;           // empty: not found
  std::string how;            // "RUNPATH $ORIGIN/../lib", "ld.so.cache", ...
  std::string member;         // of the wheel that is looked at; empty: it is on the disk
  bool by_loader = true;      // false: only the folders that were given besides find it
  int parent = -1;            // who asked for it first
  std::vector<int> children;  // whom it asks for, by index
};

struct Symbols {
  std::string soname, rpath, runpath, interpreter;
  std::string origin;  // of a member of a wheel: what $ORIGIN will be; empty: the file's folder
  std::string torch;   // version of the installed one
  std::vector<SymbolRow> defined;  // of the dynamic table
  std::vector<NeededSymbol> needed;
  std::vector<SymbolRow> dynamic, all;  // whole tables; `all` is empty in a stripped file
  std::vector<LibraryFacts> libraries;  // 0 is the file itself; none of an object file
  SystemFloor floor;
  std::vector<std::string> advice;
};

Json to_json(const Symbols& symbols);

}  // namespace kiln::results
