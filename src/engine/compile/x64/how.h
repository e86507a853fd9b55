// SPDX-License-Identifier: Apache-2.0
// How are the tables of instructions written (codes_v3.cpp, codes_v4.cpp)? With these functions.
// Also the instructions that all levels of x86-64 have: those on general registers.
#pragma once

#include <cstddef>
#include <iterator>

#include "engine/compile/x64/registers.h"

namespace kiln::engine::how {

namespace Inst = asmjit::x86::Inst;
using How = EncodingX64;
using Form = EncodingX64::Form;

constexpr How rvm(uint32_t id, uint8_t prefix, uint8_t map, uint8_t opcode) {
  How how{static_cast<uint16_t>(id), Form::Rvm, opcode, prefix, map};
  how.reads = 6, how.writes = 1, how.folds = 2;
  return how;
}
constexpr How rvm_i(uint32_t id, uint8_t prefix, uint8_t map, uint8_t opcode) {
  How how = rvm(id, prefix, map, opcode);
  how.form = Form::RvmI;
  return how;
}
constexpr How rvmr(uint32_t id, uint8_t opcode) {
  How how = rvm(id, 1, 3, opcode);
  how.form = Form::Rvmr, how.reads = 14;
  return how;
}
constexpr How sum(uint32_t id, uint8_t opcode, bool wide) {
  How how = rvm(id, 1, 2, opcode);
  how.wide = wide, how.reads = 7;
  return how;
}
// For operations of a register with itself whose result does not depend on the register.
constexpr How constant(How how) {
  how.may_be_constant = true;
  return how;
}
// The two operands that it reads may be swapped.
constexpr How commutes(How how) {
  how.commutes = true;
  return how;
}
constexpr How pure(How how) {
  how.pure = true;
  return how;
}
constexpr How wide(How how) {
  how.wide = true;
  return how;
}
constexpr How never_folds(How how) {
  how.folds = -1;
  return how;
}
constexpr How rm(uint32_t id, uint8_t prefix, uint8_t map, uint8_t opcode, Form form = Form::Rm) {
  How how{static_cast<uint16_t>(id), form, opcode, prefix, map};
  how.reads = 2, how.writes = 1, how.folds = 1;
  return how;
}
constexpr How move(uint32_t id, uint8_t load, uint8_t store, bool copies) {
  How how = pure(rm(id, 0, 1, load));
  how.extra = store, how.copies = copies;
  return how;
}
constexpr How only_reads(How how) {
  how.reads = 3, how.writes = 0;
  return how;
}
// Shifts by an immediate.
constexpr How vm_i(uint32_t id, uint8_t opcode, uint8_t extra) {
  How how = never_folds(rm(id, 1, 1, opcode, Form::VmiE));
  how.extra = extra;
  return how;
}
constexpr How mr_i(uint32_t id, uint8_t opcode) {
  return never_folds(rm(id, 1, 3, opcode, Form::MrI));
}
constexpr How mvr(uint32_t id, uint8_t opcode) {
  How how{static_cast<uint16_t>(id), Form::Mvr, opcode, 1, 2};
  how.reads = 6;
  return how;
}
constexpr How gather(uint32_t id, uint8_t opcode) {
  How how{static_cast<uint16_t>(id), Form::Gather, opcode, 1, 2};
  how.reads = how.writes = 5;
  return how;
}
constexpr How rmv(uint32_t id, uint8_t prefix) {
  How how = rm(id, prefix, 2, 0xf7, Form::Rmv);
  how.reads = 6;
  return how;
}
constexpr How alu(uint32_t id, uint8_t extra) {
  How how = rm(id, 0, 0, static_cast<uint8_t>(extra << 3 | 3), Form::Alu);
  how.extra = extra, how.reads = 3;
  return how;
}
constexpr How word(uint32_t id, uint8_t prefix, uint8_t map, uint8_t opcode) {
  return rm(id, prefix, map, opcode, Form::WordRm);
}
constexpr How changes(How how) {
  how.reads = 3;
  return how;
}
constexpr How one(uint32_t id, Form form, uint8_t opcode, uint8_t extra = 0) {
  How how{static_cast<uint16_t>(id), form, opcode};
  how.extra = extra, how.reads = how.writes = 1;
  return how;
}
constexpr How plain(uint32_t id, Form form, uint8_t opcode, uint8_t reads = 0) {
  How how{static_cast<uint16_t>(id), form, opcode};
  how.reads = reads;
  return how;
}

// The only operand is in memory.
constexpr How memory(uint32_t id, uint8_t extra) {
  How how = plain(id, Form::ME, 0xae);
  how.extra = extra;
  return how;
}

inline constexpr How kWordHows[] = {
    rmv(Inst::kIdShlx, 1),
    rmv(Inst::kIdShrx, 3),
    rmv(Inst::kIdSarx, 2),
    [] {
      How how = rm(Inst::kIdBlsr, 0, 2, 0xf3, Form::VmE);
      how.extra = 1;
      return how;
    }(),
    alu(Inst::kIdAdd, 0),
    alu(Inst::kIdOr, 1),
    alu(Inst::kIdAnd, 4),
    alu(Inst::kIdSub, 5),
    alu(Inst::kIdXor, 6),
    [] {
      How how = alu(Inst::kIdCmp, 7);
      how.writes = 0;
      return how;
    }(),
    plain(Inst::kIdTest, Form::Test, 0x85, 3),
    [] {
      How how = pure(rm(Inst::kIdMov, 0, 0, 0x8b, Form::Mov));
      how.copies = true;
      return how;
    }(),
    pure(word(Inst::kIdLea, 0, 0, 0x8d)),
    pure(word(Inst::kIdMovsxd, 0, 0, 0x63)),
    changes(word(Inst::kIdImul, 0, 1, 0xaf)),
    changes(word(Inst::kIdCmovb, 0, 1, 0x42)),
    changes(word(Inst::kIdCmovz, 0, 1, 0x44)),
    changes(word(Inst::kIdCmovnz, 0, 1, 0x45)),
    changes(word(Inst::kIdCmova, 0, 1, 0x47)),
    changes(word(Inst::kIdCmovl, 0, 1, 0x4c)),
    changes(word(Inst::kIdCmovg, 0, 1, 0x4f)),
    word(Inst::kIdTzcnt, 2, 1, 0xbc),
    rm(Inst::kIdMovzx, 0, 1, 0xb6, Form::Widen),
    rm(Inst::kIdMovsx, 0, 1, 0xbe, Form::Widen),
    one(Inst::kIdSetb, Form::SetByte, 0x92),
    one(Inst::kIdSetae, Form::SetByte, 0x93),
    one(Inst::kIdSete, Form::SetByte, 0x94),
    one(Inst::kIdSetne, Form::SetByte, 0x95),
    one(Inst::kIdSetbe, Form::SetByte, 0x96),
    one(Inst::kIdSeta, Form::SetByte, 0x97),
    one(Inst::kIdSetl, Form::SetByte, 0x9c),
    one(Inst::kIdSetge, Form::SetByte, 0x9d),
    one(Inst::kIdSetle, Form::SetByte, 0x9e),
    one(Inst::kIdSetg, Form::SetByte, 0x9f),
    one(Inst::kIdNot, Form::OneE, 0xf7, 2),
    one(Inst::kIdNeg, Form::OneE, 0xf7, 3),
    one(Inst::kIdShl, Form::OneEi, 0xc1, 4),
    one(Inst::kIdShr, Form::OneEi, 0xc1, 5),
    plain(Inst::kIdPrefetcht0, Form::Ask, 0x18),
    plain(Inst::kIdJmp, Form::Jump, 0),
    plain(Inst::kIdJz, Form::Jump, 4),
    plain(Inst::kIdJnz, Form::Jump, 5),
    plain(Inst::kIdJne, Form::Jump, 5),
    plain(Inst::kIdJa, Form::Jump, 7),
    plain(Inst::kIdCall, Form::Call, 0xff, 1),
    plain(Inst::kIdPush, Form::Push, 0x50, 1),
    plain(Inst::kIdPop, Form::Pop, 0x58),
    plain(Inst::kIdRet, Form::Ret, 0xc3),
};

template <size_t kVectors>
constexpr CodesX64 codes_of(const How (&vectors)[kVectors], uint32_t vector_bytes,
                            uint32_t vector_count) {
  static_assert(kVectors + std::size(kWordHows) < 255);
  CodesX64 out;
  out.vector_bytes = vector_bytes, out.vector_count = vector_count;
  size_t at = 1;  // code 0 is unknown
  const auto add = [&](const How& each) {
    out.by_id[each.id] = static_cast<uint8_t>(at);
    out.encodings[at++] = each;
  };
  for (const How& each : vectors) add(each);
  for (const How& each : kWordHows) add(each);
  return out;
}

}  // namespace kiln::engine::how
