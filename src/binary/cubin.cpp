// SPDX-License-Identifier: Apache-2.0
// Where in a cubin stand a kernel's registers, stack, shared memory, parameters and spills?
#include "binary/cubin.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::binary {
namespace {

constexpr uint8_t kFunctionSymbol = 2, kEntryMark = 0x10;
constexpr uint8_t kAbiOfCuda13 = 8;
// What the driver keeps of a block's shared memory since sm_90: the linker counts it into
// .nv.shared.
constexpr uint64_t kReservedSharedBytes = 1024;

uint32_t arch_of(const Elf& elf) {
  return elf.abi_version >= kAbiOfCuda13 ? (elf.flags >> 8) & 0xff : elf.flags & 0xff;
}

// The owner is "NVIDIA Corp", the description a version and offsets of texts behind them.
void read_tool_note(const Elf& elf, Cubin& cubin) {
  const ElfSection* section = elf.find(".note.nv.tkinfo");
  if (!section) return;
  Bytes note = elf.content(*section);
  auto owner_bytes = read_at<uint32_t>(note, 0);
  if (!owner_bytes) return;
  uint64_t description = 12 + ((*owner_bytes + 3ull) & ~3ull), texts = description + 24;
  auto text = [&](uint64_t field) {
    auto offset = read_at<uint32_t>(note, description + field);
    return offset ? text_at(note, texts + *offset) : std::string_view();
  };
  cubin.compiler = text(12);
  cubin.compiler_options = text(20);
}

// The sections that belong to a .text name its index in sh_info.
struct KernelSections {
  const ElfSection *info = nullptr, *shared = nullptr, *constant = nullptr;
};

std::vector<KernelSections> sections_by_code(const Elf& elf) {
  std::vector<KernelSections> out(elf.sections.size());
  for (const ElfSection& section : elf.sections) {
    if (section.extra >= out.size() || section.extra == 0) continue;
    KernelSections& of = out[section.extra];
    if (section.name.starts_with(".nv.info.")) of.info = &section;
    if (section.name.starts_with(".nv.shared.")) of.shared = &section;
    if (section.name.starts_with(".nv.constant0.")) of.constant = &section;
  }
  return out;
}

void count_spills(Bytes code, Kernel& kernel) {
  for (const Annotation& annotation : kernel.attributes.annotations) {
    if (annotation.kind != kAnnotationSpill) continue;
    auto low = read_at<uint64_t>(code, annotation.code_offset),
         high = read_at<uint64_t>(code, annotation.code_offset + 8ull);
    if (!low || !high) continue;
    bool store = opcode_of(*low).mnemonic.starts_with("ST");
    (store ? kernel.spill_stores : kernel.spill_loads) += 1;
    (store ? kernel.spill_store_bytes : kernel.spill_load_bytes) += access_bytes(*high);
  }
}

}  // namespace

bool is_cubin(const Elf& elf) { return elf.machine == kMachineCuda; }

char variant_of(const Cubin& cubin) {
  constexpr std::string_view kOption = "-arch sm_";
  size_t at = cubin.compiler_options.find(kOption);
  if (at == std::string_view::npos) return 0;
  std::string_view number = cubin.compiler_options.substr(at + kOption.size());
  size_t end = number.find_first_not_of("0123456789");
  if (end == std::string_view::npos) return 0;
  return number[end] == 'a' || number[end] == 'f' ? number[end] : 0;
}

Bytes code_of(const Cubin& cubin, const Kernel& kernel) {
  if (kernel.section >= cubin.elf.sections.size()) return {};
  return slice(cubin.elf.content(cubin.elf.sections[kernel.section]), kernel.code_offset,
               kernel.code_bytes)
      .value_or(Bytes{});
}

// Registers, shared memory, spills and limits of a kernel are spread over symbols, section headers
// and .nv.info; gathered here once, so that no reader has to know where.
Result<Cubin> read_cubin(Bytes bytes) {
  Cubin cubin;
  TRY(cubin.elf, read_elf(bytes));
  const Elf& elf = cubin.elf;
  if (!is_cubin(elf)) {
    return Error{Fault::Work, "cannot read a cubin",
                 fmt::format("at offset 18: it is for {}, expected CUDA ({})",
                             machine_name(elf.machine), kMachineCuda),
                 ""};
  }
  cubin.arch = arch_of(elf);
  cubin.relocatable = elf.type == kElfRelocatable;
  cubin.has_lines = elf.find(".debug_line") != nullptr;
  read_tool_note(elf, cubin);
  const ElfSection* table = elf.find_type(kSectionSymbols);
  if (!table) return cubin;
  TRY(cubin.symbols, read_symbols(elf, *table));
  std::vector<SymbolAttributes> attributes;
  if (const ElfSection* info = elf.find(".nv.info")) {
    TRY(attributes, read_symbol_attributes(elf.content(*info), cubin.symbols.size()));
  }
  bool reserves = std::any_of(
      elf.sections.begin(), elf.sections.end(),
      [](const ElfSection& section) { return section.name.starts_with(".nv.shared.reserved."); });
  std::vector<KernelSections> parts = sections_by_code(elf);
  for (uint32_t i = 0; i < cubin.symbols.size(); ++i) {
    const Symbol& symbol = cubin.symbols[i];
    if (symbol.type != kFunctionSymbol || !(symbol.other & kEntryMark) ||
        symbol.section >= elf.sections.size() || !symbol.defined())
      continue;
    Kernel kernel;
    kernel.name = symbol.name;
    kernel.symbol = i;
    kernel.section = symbol.section;
    kernel.code_offset = symbol.value;
    kernel.code_bytes = symbol.bytes;
    if (i < attributes.size()) {
      kernel.registers = static_cast<uint32_t>(std::max<int64_t>(attributes[i].registers, 0));
      kernel.stack_bytes = static_cast<uint64_t>(std::max<int64_t>(attributes[i].frame_bytes, 0));
    }
    const KernelSections& own = parts[symbol.section];
    if (own.shared) kernel.shared_bytes = own.shared->bytes;
    if (own.constant) kernel.constant_bytes = own.constant->bytes;
    if (reserves && kernel.shared_bytes >= kReservedSharedBytes)
      kernel.shared_reserved_bytes = kReservedSharedBytes;
    if (own.info) {
      TRY(kernel.attributes, read_kernel_attributes(elf.content(*own.info)));
    }
    Bytes code = code_of(cubin, kernel);
    count_spills(code, kernel);
    kernel.counts = count_classes(code);
    cubin.kernels.push_back(std::move(kernel));
  }
  return cubin;
}

}  // namespace kiln::binary
