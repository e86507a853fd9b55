// SPDX-License-Identifier: Apache-2.0
// What does a cubin hold? Kernels with their resources, and what compiled them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "binary/elf.h"
#include "binary/nv_info.h"
#include "binary/sass.h"
#include "binary/symbols.h"

namespace kiln::binary {

// Names are views into the cubin's bytes.
struct Kernel {
  std::string_view name;
  uint32_t symbol = 0;                       // its index, as nvdisasm -fun takes it
  uint32_t section = 0;                      // index of its .text
  uint64_t code_offset = 0, code_bytes = 0;  // inside that section
  uint32_t registers = 0;
  uint64_t shared_bytes = 0;  // static, the reserved part with it (as cuobjdump -res-usage counts)
  uint64_t shared_reserved_bytes = 0;  // the driver's part of it
  uint64_t stack_bytes = 0;
  uint64_t constant_bytes = 0;  // bank 0: parameters and what the driver puts before them
  uint32_t spill_stores = 0, spill_loads = 0;  // instructions
  uint64_t spill_store_bytes = 0, spill_load_bytes = 0;
  KernelAttributes attributes;
  SassCounts counts{};
};

struct Cubin {
  Elf elf;
  uint32_t arch = 0;         // 90 of sm_90
  bool relocatable = false;  // -rdc, not linked yet
  bool has_lines = false;    // .debug_line
  std::string_view
      compiler;  // "Cuda compilation tools, release 13.0, V13.0.88"; empty when it does not say
  std::string_view compiler_options;
  std::vector<Symbol> symbols;
  std::vector<Kernel> kernels;
};

bool is_cubin(const Elf& elf);
// 'a', 'f' or 0: what the options in it name, "-arch sm_90a".
char variant_of(const Cubin& cubin);
Result<Cubin> read_cubin(Bytes bytes);

// The kernel's instructions; empty when its section is too short.
Bytes code_of(const Cubin& cubin, const Kernel& kernel);

}  // namespace kiln::binary
