// SPDX-License-Identifier: Apache-2.0
// Which sections and segments does an ELF file have? 64-bit little-endian files, host libraries and
// cubins alike; every offset is checked before it is used.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "binary/bytes.h"

namespace kiln::binary {

inline constexpr uint16_t kElfRelocatable = 1, kElfExecutable = 2, kElfShared = 3,
                          kElfCubinLegacy = 0xff00;
inline constexpr uint16_t kMachineX86 = 62, kMachineAarch64 = 183, kMachineCuda = 190;
inline constexpr uint32_t kSectionSymbols = 2, kSectionStrings = 3, kSectionNoBits = 8,
                          kSectionDynamicSymbols = 11;
inline constexpr uint64_t kSectionAlloc = 2, kSectionCode = 4, kSectionWrite = 1;

struct ElfSection {
  std::string_view name;
  uint32_t type = 0;
  uint64_t flags = 0, address = 0, offset = 0, bytes = 0;
  uint32_t link = 0, extra = 0;  // sh_link, sh_info
  uint64_t entry_bytes = 0;

  uint64_t file_bytes() const { return type == kSectionNoBits ? 0 : bytes; }
};

struct ElfSegment {
  uint32_t type = 0, flags = 0;
  uint64_t offset = 0, address = 0, file_bytes = 0, memory_bytes = 0;
};

// Views into the bytes that were read, which must outlive it.
struct Elf {
  Bytes bytes;
  uint8_t os_abi = 0, abi_version = 0;
  uint16_t type = 0, machine = 0;
  uint32_t flags = 0;
  uint64_t section_table_offset = 0, segment_table_offset = 0;
  std::vector<ElfSection> sections;
  std::vector<ElfSegment> segments;

  const ElfSection* find(std::string_view name) const;
  const ElfSection* find_type(uint32_t type) const;
  // Empty for .bss and its like: read_elf has checked that all others are inside the file.
  Bytes content(const ElfSection& section) const;
  // Where a virtual address is in the file, with all bytes to the end of its segment; empty when no
  // segment holds it.
  Bytes at_address(uint64_t address) const;
};

bool is_elf(Bytes bytes);
Result<Elf> read_elf(Bytes bytes);

// The text from `offset` to the next NUL; empty when it does not end inside the table.
std::string_view text_at(Bytes table, uint64_t offset);

// "x86_64", "aarch64", "CUDA", or "machine 123".
std::string machine_name(uint16_t machine);

}  // namespace kiln::binary
