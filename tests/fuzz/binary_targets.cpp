// SPDX-License-Identifier: Apache-2.0
// How is untrusted input driven through the readers of binary formats?
#include "binary_targets.h"

#include <string>
#include <vector>

#include "binary/containers.h"
#include "binary/cubin.h"
#include "binary/fatbin.h"
#include "binary/line_table.h"
#include "binary/nv_info.h"
#include "binary/symbols.h"

namespace kiln::fuzz {
namespace {

binary::Bytes bytes_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

constexpr NamedTarget kTargets[] = {{"elf", elf},         {"fatbin", fatbin}, {"cubin", cubin},
                                    {"nv_info", nv_info}, {"lines", lines},   {"archive", archive}};

}  // namespace

std::span<const NamedTarget> binary_targets() { return kTargets; }

bool elf(const uint8_t* data, size_t size) {
  auto file = binary::read_elf(bytes_of(data, size));
  if (!file) return false;
  bool whole = static_cast<bool>(binary::read_dynamic(*file));
  for (const binary::ElfSection& section : file->sections) {
    if (section.type != binary::kSectionSymbols && section.type != binary::kSectionDynamicSymbols)
      continue;
    auto symbols = binary::read_symbols(*file, section);
    if (!symbols) {
      whole = false;
      continue;
    }
    for (const binary::Symbol& symbol : *symbols) {
      binary::nm_letter(*file, symbol);
      // The demangler is the C++ library's: its speed on hostile names is not what is tested here.
      if (symbol.name.size() < 256) binary::demangle(symbol.name);
    }
  }
  return whole;
}

bool fatbin(const uint8_t* data, size_t size) {
  binary::Bytes bytes = bytes_of(data, size);
  auto entries = binary::read_container(bytes);
  if (!entries) return false;
  bool unpacked = false;
  for (const binary::FatbinEntry& entry : *entries)
    unpacked |= static_cast<bool>(binary::read_image(bytes, entry));
  return unpacked;
}

bool cubin(const uint8_t* data, size_t size) {
  auto file = binary::read_cubin(bytes_of(data, size));
  if (!file) return false;
  for (const binary::Kernel& kernel : file->kernels) {
    binary::Bytes code = binary::code_of(*file, kernel);
    for (uint64_t at = 0; at + binary::kInstructionBytes <= code.size();
         at += binary::kInstructionBytes)
      binary::control_code(*binary::read_at<uint64_t>(code, at + 8));
  }
  binary::variant_of(*file);
  return !file->kernels.empty();
}

bool nv_info(const uint8_t* data, size_t size) {
  bool kernel = static_cast<bool>(binary::read_kernel_attributes(bytes_of(data, size)));
  return static_cast<bool>(binary::read_symbol_attributes(bytes_of(data, size), 1000)) && kernel;
}

bool lines(const uint8_t* data, size_t size) {
  auto file = binary::read_elf(bytes_of(data, size));
  if (!file) return false;
  bool found = false;
  for (const char* section : {".debug_line", ".nv_debug_line_sass"}) {
    auto table = binary::read_lines(*file, section);
    if (!table) continue;
    for (const binary::LineSequence& sequence : table->sequences) {
      found = true;
      for (uint64_t address = 0; address < 256; address += 16)
        table->find(sequence.section, address);
      // Every chain of calls must end.
      for (const binary::LineRow& row : sequence.rows)
        for (const binary::LineRow* at = &row; at->inlined_at >= 0;)
          at = &sequence.rows[static_cast<size_t>(at->inlined_at)];
    }
  }
  return found;
}

bool archive(const uint8_t* data, size_t size) {
  binary::Bytes bytes = bytes_of(data, size);
  auto members = binary::is_ar(bytes) ? binary::read_ar(bytes) : binary::read_zip(bytes);
  if (!members) return false;
  bool unpacked = false;
  for (const binary::Member& member : *members)
    // A claim of gigabytes that the ratio allows only costs time here.
    if (member.unpacked_bytes < (1 << 24))
      unpacked |= static_cast<bool>(binary::unpack_member(member));
  return unpacked;
}

}  // namespace kiln::fuzz
