// SPDX-License-Identifier: Apache-2.0
// Which symbols, versions and libraries does an ELF file define and need?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "binary/elf.h"

namespace kiln::binary {

inline constexpr uint16_t kUndefinedSection = 0, kAbsoluteSection = 0xfff1, kCommonSection = 0xfff2;

struct Symbol {
  std::string_view name;
  uint64_t value = 0, bytes = 0;
  uint8_t type = 0, binding = 0, other = 0;  // STT_, STB_, st_other
  uint32_t section = 0;                      // index, or one of the constants above
  std::string_view version;                  // "GLIBC_2.17"; empty when it has none
  std::string_view version_library;          // a needed one: "libc.so.6"
  bool default_version = false;              // name@@version

  bool defined() const { return section != kUndefinedSection; }
};

// Of a .symtab or .dynsym; of the latter with versions.
Result<std::vector<Symbol>> read_symbols(const Elf& elf, const ElfSection& table);

// The letter that nm shows: T, U, w, ...; '?' where nm has none.
char nm_letter(const Elf& elf, const Symbol& symbol);

struct NeededVersion {
  std::string_view library, version;
  bool operator==(const NeededVersion&) const = default;
};

struct Dynamic {
  bool present = false;
  std::vector<std::string_view> needed;
  std::string_view soname, rpath, runpath, interpreter;
  std::vector<NeededVersion> versions;
  std::vector<std::string_view> defined_versions;
};

Result<Dynamic> read_dynamic(const Elf& elf);

// A C++ name as people write it; others unchanged.
std::string demangle(std::string_view name);

}  // namespace kiln::binary
