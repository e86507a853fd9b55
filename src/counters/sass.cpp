// SPDX-License-Identifier: Apache-2.0
#include "counters/sass.h"

#include <algorithm>

#include "base/text.h"
#include "binary/cubin.h"
#include "binary/line_table.h"

namespace kiln::counters {
namespace {

using results::Counts;
using results::Metric;

constexpr uint32_t kAlways = 7;  // the guard that is always true

void note_instruction(uint64_t low, uint64_t high, SassOfLine& line) {
  const binary::SassOpcode& opcode = binary::opcode_of(low);
  const uint32_t guard = low >> 12 & 7;
  if (opcode.mnemonic != "NOP") ++line.instructions;
  if ((opcode.mnemonic == "BRA" && guard != kAlways) || opcode.mnemonic == "BRX") ++line.branches;
  if (opcode.mnemonic == "LDS") {
    ++line.shared_loads;
    line.shared_load_bytes = std::max(line.shared_load_bytes, binary::access_bytes(high));
  }
  if (opcode.mnemonic == "STS") {
    ++line.shared_stores;
    line.shared_store_bytes = std::max(line.shared_store_bytes, binary::access_bytes(high));
  }
}

std::vector<std::string> ptx_text(const binary::Elf& elf) {
  std::vector<std::string> out;
  const binary::ElfSection* section = elf.find(".nv_debug_ptx_txt");
  if (!section) return out;
  const binary::Bytes bytes = elf.content(*section);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::string_view line : text::split(text, '\0')) out.emplace_back(line);
  return out;
}

// The word of an instruction without its guard: "ld.shared.f32".
std::string_view opcode_in(std::string_view ptx) {
  ptx = text::trim(ptx);
  if (ptx.starts_with('@')) ptx = text::trim(ptx.substr(std::min(ptx.find(' '), ptx.size())));
  return ptx.substr(0, ptx.find_first_of(" \t;"));
}

bool is_same_ptx(const SassOfKernel& sass, const results::CounterProgram& program) {
  return std::all_of(program.instructions.begin(), program.instructions.end(),
                     [&](const results::CounterInstruction& one) {
                       return one.ptx_line >= 1 && one.ptx_line <= sass.ptx.size() &&
                              sass.ptx[one.ptx_line - 1].find(opcode_in(one.ptx)) !=
                                  std::string::npos;
                     });
}

// What one access of `bytes` would have cost instead.
void take_width(const results::OtherWidths& other, uint32_t bytes, bool load, Counts& counts) {
  using enum Metric;
  const uint64_t passes = bytes == 16 ? other.passes16 : bytes == 8 ? other.passes8 : other.passes4;
  const uint64_t ideal = bytes == 16 ? other.ideal16 : bytes == 8 ? other.ideal8 : other.ideal4;
  if (passes == 0) return;  // not a width that was counted
  counts[load ? shared_ld_wavefronts : shared_st_wavefronts] = passes;
  counts[load ? shared_ld_ideal_wavefronts : shared_st_ideal_wavefronts] = ideal;
  counts[load ? shared_ld_conflicts : shared_st_conflicts] = passes > ideal ? passes - ideal : 0;
}

void drop_shared(bool load, Counts& counts) {
  using enum Metric;
  counts[load ? shared_ld_requests : shared_st_requests] = 0;
  counts[load ? shared_ld_wavefronts : shared_st_wavefronts] = 0;
  counts[load ? shared_ld_ideal_wavefronts : shared_st_ideal_wavefronts] = 0;
  counts[load ? shared_ld_conflicts : shared_st_conflicts] = 0;
}

// A load without a SASS instruction of its own is part of another one, which is wider; one whose
// other bytes nothing uses is narrower.
void follow_shared(const SassOfLine& line, bool load, results::CounterSite& site) {
  if (!site.other) return;
  const uint32_t found = load ? line.shared_loads : line.shared_stores;
  const uint32_t bytes = load ? line.shared_load_bytes : line.shared_store_bytes;
  if (found == 0)
    drop_shared(load, site.counts);
  else if (std::max(bytes, 4u) != std::max(site.other->bytes, 4u))
    take_width(*site.other, std::max(bytes, 4u), load, site.counts);
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
    for (uint64_t at = 0; at + binary::kInstructionBytes <= code.size();
         at += binary::kInstructionBytes) {
      const binary::LineRow* from = table->find(kernel.section, kernel.code_offset + at);
      if (!from) continue;
      note_instruction(*binary::read_at<uint64_t>(code, at),
                       *binary::read_at<uint64_t>(code, at + 8), out.lines[from->line]);
    }
    out.ptx = ptx_text(cubin->elf);
  }
  return out;
}

void follow_sass(const SassOfKernel& sass, const results::CounterProgram& program,
                 results::CounterLaunch* launch) {
  if (sass.empty() || !is_same_ptx(sass, program)) return;
  for (results::CounterSite& site : launch->sites) {
    if (site.program != program.id || site.instruction >= program.instructions.size()) continue;
    const auto found = sass.lines.find(program.instructions[site.instruction].ptx_line);
    const SassOfLine line = found == sass.lines.end() ? SassOfLine() : found->second;
    site.sass_instructions = line.instructions;
    if (line.branches == 0) site.counts[Metric::branches_divergent] = 0;
    if (site.counts[Metric::shared_ld_requests]) follow_shared(line, true, site);
    if (site.counts[Metric::shared_st_requests]) follow_shared(line, false, site);
  }
}

}  // namespace kiln::counters
