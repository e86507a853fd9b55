// SPDX-License-Identifier: Apache-2.0
#include "counters/sass.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "binary/cubin.h"
#include "binary/line_table.h"

namespace kiln::counters {
namespace {

constexpr uint32_t kAlways = 7;  // the guard that is always true

std::optional<Access> access_of(std::string_view mnemonic) {
  if (mnemonic == "LDS") return Access::SharedLoad;
  if (mnemonic == "STS") return Access::SharedStore;
  if (mnemonic == "LDG" || mnemonic == "LD") return Access::GlobalLoad;
  if (mnemonic == "STG" || mnemonic == "ST") return Access::GlobalStore;
  return std::nullopt;
}

// Takes the instructions of a kernel in the order of their addresses.
class LineReader {
 public:
  explicit LineReader(SassOfKernel& out) : out_(out) {}

  void take(uint32_t line_number, uint64_t low, uint64_t high) {
    SassOfLine& line = out_.lines[line_number];
    const std::string_view mnemonic = binary::opcode_of(low).mnemonic;
    const bool guarded = (low >> 12 & 7) != kAlways;
    if (mnemonic != "NOP") ++line.instructions;
    if ((mnemonic == "BRA" && guarded) || mnemonic == "BRX") ++line.branches;
    if (mnemonic == "ATOM" || mnemonic == "ATOMG") ++line.atomics;
    if (mnemonic == "RED" || mnemonic == "REDG") ++line.reductions;
    if ((mnemonic == "BRA" || mnemonic == "EXIT") && guarded)
      last_branch_ = std::max(last_branch_, line_number);
    if (const auto access = access_of(mnemonic)) {
      line.bytes[static_cast<size_t>(*access)].push_back(binary::access_bytes(high));
      line.moved |= line_number < last_branch_;
    }
  }

 private:
  SassOfKernel& out_;
  uint32_t last_branch_ = 0;  // the last line of PTX among the branches so far
};

std::vector<std::string> ptx_text(const binary::Elf& elf) {
  std::vector<std::string> out;
  const binary::ElfSection* section = elf.find(".nv_debug_ptx_txt");
  if (!section) return out;
  const binary::Bytes bytes = elf.content(*section);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::string_view line : text::split(text, '\0')) out.emplace_back(line);
  return out;
}

}  // namespace

SassOfKernel read_sass(const inspect::Analysis& analysis, const inspect::KernelRow& row) {
  SassOfKernel out;
  const auto bytes = inspect::unpack(analysis.images.images[row.image], analysis.file.bytes);
  if (!bytes) return out;
  const auto cubin = binary::read_cubin(*bytes);
  if (!cubin) return out;
  const auto table = binary::read_lines(cubin->elf, ".nv_debug_line_sass");
  if (!table || table->sequences.empty()) return out;
  for (const binary::Kernel& kernel : cubin->kernels) {
    if (kernel.name != row.name) continue;
    const binary::Bytes code = binary::code_of(*cubin, kernel);
    LineReader reader(out);
    for (uint64_t at = 0; at + binary::kInstructionBytes <= code.size();
         at += binary::kInstructionBytes) {
      const binary::LineRow* from = table->find(kernel.section, kernel.code_offset + at);
      if (!from) continue;
      reader.take(from->line, *binary::read_at<uint64_t>(code, at),
                  *binary::read_at<uint64_t>(code, at + 8));
    }
    out.ptx = ptx_text(cubin->elf);
  }
  return out;
}

}  // namespace kiln::counters
