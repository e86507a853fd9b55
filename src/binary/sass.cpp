// SPDX-License-Identifier: Apache-2.0
// Which bits of an instruction hold its opcode, and which its control code?
#include "binary/sass.h"

#include <array>

namespace kiln::binary {
namespace {

constexpr size_t kOpcodes = 4096, kFormBits = 9;

struct Row {
  uint16_t opcode;
  bool exact;
  SassOpcode value;
};

constexpr Row kRows[] = {
#define KILN_OPCODE(opcode, mnemonic, kind) {opcode, false, {mnemonic, SassClass::kind}},
#define KILN_OPCODE_FORM(opcode, mnemonic, kind) {opcode, true, {mnemonic, SassClass::kind}},
#include "binary/sass_opcodes.def"
#undef KILN_OPCODE
#undef KILN_OPCODE_FORM
};

std::array<SassOpcode, kOpcodes> make_table() {
  std::array<SassOpcode, kOpcodes> table;
  for (bool exact : {false, true})
    for (const Row& row : kRows) {
      if (row.exact != exact) continue;
      if (exact) {
        table[row.opcode] = row.value;
        continue;
      }
      for (size_t form = 0; form < kOpcodes >> kFormBits; ++form)
        table[row.opcode | form << kFormBits] = row.value;
    }
  return table;
}

const std::array<SassOpcode, kOpcodes>& opcode_table() {
  static const std::array<SassOpcode, kOpcodes> table = make_table();
  return table;
}

}  // namespace

ControlCode control_code(uint64_t high_word) {
  uint64_t bits = high_word >> 41;
  ControlCode code;
  code.stall = bits & 15;
  code.yield = !(bits >> 4 & 1);  // the bit forbids it
  code.write_barrier = bits >> 5 & 7;
  code.read_barrier = bits >> 8 & 7;
  code.wait_mask = bits >> 11 & 63;
  code.reuse = bits >> 17 & 15;
  return code;
}

std::string_view name_of(SassClass kind) {
  constexpr std::string_view kNames[kSassClasses] = {
      "fp32",   "fp64",  "fp16",     "integer", "tensor", "special", "convert", "move",    "global",
      "shared", "local", "constant", "texture", "atomic", "control", "sync",    "uniform", "other"};
  return kNames[static_cast<size_t>(kind)];
}

const SassOpcode& opcode_of(uint64_t low_word) { return opcode_table()[low_word & (kOpcodes - 1)]; }

SassCounts count_classes(Bytes code) {
  constexpr uint64_t kNop = 0x118, kBranch = 0x147;
  const std::array<SassOpcode, kOpcodes>& table = opcode_table();
  uint64_t end = code.size() / kInstructionBytes;
  auto low = [&](uint64_t i) { return *read_at<uint64_t>(code, i * kInstructionBytes); };
  // A function ends with a branch to itself and NOPs up to the next 128 bytes.
  while (end > 0 && (low(end - 1) & 0x1ff) == kNop) --end;
  if (end > 0 && end < code.size() / kInstructionBytes && (low(end - 1) & 0x1ff) == kBranch) --end;
  std::array<uint32_t, kOpcodes> by_opcode{};
  SassCounts counts{};
  if (end < 256) {
    for (uint64_t i = 0; i < end; ++i)
      ++counts[static_cast<size_t>(table[low(i) & (kOpcodes - 1)].kind)];
    return counts;
  }
  for (uint64_t i = 0; i < end; ++i) ++by_opcode[low(i) & (kOpcodes - 1)];
  for (size_t i = 0; i < kOpcodes; ++i)
    if (by_opcode[i]) counts[static_cast<size_t>(table[i].kind)] += by_opcode[i];
  return counts;
}

uint32_t access_bytes(uint64_t high_word) {
  // Bits 73 to 75 of the instruction: U8, S8, U16, S16, 32, 64, 128.
  constexpr uint32_t kBytes[8] = {1, 1, 2, 2, 4, 8, 16, 4};
  return kBytes[high_word >> 9 & 7];
}

}  // namespace kiln::binary
