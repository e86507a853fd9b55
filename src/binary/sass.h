// SPDX-License-Identifier: Apache-2.0
// What do the 128 bits of a SASS instruction (sm_70 and later) say without a disassembler? Its kind
// by the opcode, and the control code that the compiler's scheduler wrote.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "binary/bytes.h"

namespace kiln::binary {

inline constexpr uint64_t kInstructionBytes = 16;

struct ControlCode {
  uint8_t stall = 0;          // cycles to wait before the next instruction issues
  bool yield = false;         // the scheduler may switch to another warp
  uint8_t write_barrier = 7;  // set when the result is there; 7: none
  uint8_t read_barrier = 7;   // set when the operands were read; 7: none
  uint8_t wait_mask = 0;      // barriers to wait for
  uint8_t reuse = 0;          // operands to keep in the reuse cache
};

ControlCode control_code(uint64_t high_word);

enum class SassClass : uint8_t {
  Float32,
  Float64,
  Half,
  Integer,
  Tensor,
  Special,
  Convert,
  Move,
  Global,
  Shared,
  Local,
  Constant,
  Texture,
  Atomic,
  Control,
  Sync,
  Uniform,
  Other,
};
inline constexpr size_t kSassClasses = static_cast<size_t>(SassClass::Other) + 1;
std::string_view name_of(SassClass kind);

struct SassOpcode {
  std::string_view mnemonic;  // "LDG"; empty when the table lacks it
  SassClass kind = SassClass::Other;
};
// By the low word's opcode field.
const SassOpcode& opcode_of(uint64_t low_word);

using SassCounts = std::array<uint32_t, kSassClasses>;
// The instructions of a function by class, without the padding behind its end.
SassCounts count_classes(Bytes code);

// The bytes that one lane moves in a load or store.
uint32_t access_bytes(uint64_t high_word);

}  // namespace kiln::binary
