// SPDX-License-Identifier: Apache-2.0
// Which source line does each instruction come from? DWARF 2 line programs as ptxas writes them:
// one sequence a function, told apart by relocations, with NVIDIA's opcode 0x90 for inlined calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "binary/elf.h"

namespace kiln::binary {

struct LineRow {
  uint64_t address = 0;  // inside of the function's section
  uint32_t file = 0;     // index into LineTable::files
  uint32_t line = 0;
  int32_t inlined_at = -1;    // the row of the call that this code was inlined for
  std::string_view function;  // the inlined function's mangled name, where it is known
};

struct LineSequence {
  uint32_t section = 0;  // of the code; 0 when no relocation names it
  uint64_t end_address = 0;
  std::vector<LineRow> rows;
};

struct LineTable {
  std::vector<std::string> files;  // 0 is "" (unknown)
  std::vector<LineSequence> sequences;

  // The last row at or before the address; null when none covers it.
  const LineRow* find(uint32_t section, uint64_t address, const LineSequence** in = nullptr) const;
};

// `section_name`: ".debug_line" (to the source) or ".nv_debug_line_sass" (to the PTX in
// .nv_debug_ptx_txt). A cubin without it gives an empty table.
Result<LineTable> read_lines(const Elf& elf, std::string_view section_name);

}  // namespace kiln::binary
