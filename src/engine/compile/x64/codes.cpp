// SPDX-License-Identifier: Apache-2.0
// Which instructions of x86-64 does the compiler know? Those that it uses, so that noting and
// writing one takes a look at one line: asmjit's own tables know all there are, and take three
// times as long.
#if defined(__x86_64__)
#include "engine/compile/x64/registers.h"

namespace kiln::engine {
namespace {

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
// Of one register with itself: the result does not depend on it.
constexpr How constant(How how) {
  how.may_be_constant = true;
  return how;
}
// The operands that it reads may change places.
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
// By a number of bits.
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

// One operand, in memory.
constexpr How memory(uint32_t id, uint8_t extra) {
  How how = plain(id, Form::ME, 0xae);
  how.extra = extra;
  return how;
}

constexpr How kVectorHows[] = {
    constant(commutes(pure(rvm(Inst::kIdVpxor, 1, 1, 0xef)))),
    constant(commutes(rvm(Inst::kIdVxorps, 0, 1, 0x57))),
    constant(commutes(rvm(Inst::kIdVpcmpeqd, 1, 1, 0x76))),
    commutes(rvm(Inst::kIdVpand, 1, 1, 0xdb)),
    commutes(rvm(Inst::kIdVpor, 1, 1, 0xeb)),
    commutes(rvm(Inst::kIdVandps, 0, 1, 0x54)),
    commutes(rvm(Inst::kIdVandpd, 1, 1, 0x54)),
    rvm(Inst::kIdVandnps, 0, 1, 0x55),
    commutes(rvm(Inst::kIdVorps, 0, 1, 0x56)),
    commutes(rvm(Inst::kIdVorpd, 1, 1, 0x56)),
    rvm(Inst::kIdVaddps, 0, 1, 0x58),
    rvm(Inst::kIdVaddpd, 1, 1, 0x58),
    rvm(Inst::kIdVmulps, 0, 1, 0x59),
    rvm(Inst::kIdVmulpd, 1, 1, 0x59),
    rvm(Inst::kIdVsubps, 0, 1, 0x5c),
    rvm(Inst::kIdVsubpd, 1, 1, 0x5c),
    rvm(Inst::kIdVminps, 0, 1, 0x5d),
    rvm(Inst::kIdVminpd, 1, 1, 0x5d),
    rvm(Inst::kIdVdivps, 0, 1, 0x5e),
    rvm(Inst::kIdVdivpd, 1, 1, 0x5e),
    rvm(Inst::kIdVmaxps, 0, 1, 0x5f),
    rvm(Inst::kIdVmaxpd, 1, 1, 0x5f),
    commutes(rvm(Inst::kIdVpaddd, 1, 1, 0xfe)),
    commutes(rvm(Inst::kIdVpaddq, 1, 1, 0xd4)),
    rvm(Inst::kIdVpsubd, 1, 1, 0xfa),
    rvm(Inst::kIdVpsubq, 1, 1, 0xfb),
    commutes(rvm(Inst::kIdVpmulld, 1, 2, 0x40)),
    commutes(rvm(Inst::kIdVpmuludq, 1, 1, 0xf4)),
    commutes(rvm(Inst::kIdVpmuldq, 1, 2, 0x28)),
    commutes(rvm(Inst::kIdVpcmpeqq, 1, 2, 0x29)),
    rvm(Inst::kIdVpcmpgtd, 1, 1, 0x66),
    rvm(Inst::kIdVpcmpgtq, 1, 2, 0x37),
    commutes(rvm(Inst::kIdVpminsd, 1, 2, 0x39)),
    commutes(rvm(Inst::kIdVpminud, 1, 2, 0x3b)),
    commutes(rvm(Inst::kIdVpmaxsd, 1, 2, 0x3d)),
    commutes(rvm(Inst::kIdVpmaxud, 1, 2, 0x3f)),
    rvm(Inst::kIdVpsllvd, 1, 2, 0x47),
    rvm(Inst::kIdVpsrlvd, 1, 2, 0x45),
    rvm(Inst::kIdVpsravd, 1, 2, 0x46),
    rvm(Inst::kIdVpackusdw, 1, 2, 0x2b),
    rvm(Inst::kIdVpackuswb, 1, 1, 0x67),
    rvm_i(Inst::kIdVcmpps, 0, 1, 0xc2),
    rvm_i(Inst::kIdVcmppd, 1, 1, 0xc2),
    rvm_i(Inst::kIdVshufps, 0, 1, 0xc6),
    rvm_i(Inst::kIdVpblendd, 1, 3, 0x02),
    rvm(Inst::kIdVpermd, 1, 2, 0x36),
    rvm_i(Inst::kIdVpinsrb, 1, 3, 0x20),  // from memory
    rvm_i(Inst::kIdVpinsrw, 1, 1, 0xc4),  // from memory
    rvm_i(Inst::kIdVinserti128, 1, 3, 0x38),
    rvm_i(Inst::kIdVinsertf128, 1, 3, 0x18),
    rvmr(Inst::kIdVblendvps, 0x4a),
    rvmr(Inst::kIdVblendvpd, 0x4b),
    sum(Inst::kIdVfmadd132ps, 0x98, false),
    sum(Inst::kIdVfmadd213ps, 0xa8, false),
    sum(Inst::kIdVfmadd231ps, 0xb8, false),
    sum(Inst::kIdVfmadd213pd, 0xa8, true),
    sum(Inst::kIdVfmadd231pd, 0xb8, true),
    move(Inst::kIdVmovaps, 0x28, 0x29, true),
    move(Inst::kIdVmovups, 0x10, 0x11, false),
    rm(Inst::kIdVsqrtps, 0, 1, 0x51),
    rm(Inst::kIdVsqrtpd, 1, 1, 0x51),
    rm(Inst::kIdVcvtdq2ps, 0, 1, 0x5b),
    rm(Inst::kIdVcvttps2dq, 2, 1, 0x5b),
    rm(Inst::kIdVcvtps2pd, 0, 1, 0x5a),
    rm(Inst::kIdVcvtph2ps, 1, 2, 0x13),
    rm(Inst::kIdVcvtpd2ps, 1, 1, 0x5a),
    rm(Inst::kIdVcvttpd2dq, 1, 1, 0xe6),
    rm(Inst::kIdVcvtdq2pd, 2, 1, 0xe6),
    pure(rm(Inst::kIdVbroadcastss, 1, 2, 0x18)),
    pure(rm(Inst::kIdVbroadcastsd, 1, 2, 0x19)),
    rm(Inst::kIdVpbroadcastd, 1, 2, 0x58),
    rm(Inst::kIdVpbroadcastq, 1, 2, 0x59),
    rm(Inst::kIdVpmovsxbd, 1, 2, 0x21),
    rm(Inst::kIdVpmovsxwd, 1, 2, 0x23),
    rm(Inst::kIdVpmovsxdq, 1, 2, 0x25),
    rm(Inst::kIdVpmovzxbd, 1, 2, 0x31),
    rm(Inst::kIdVpmovzxwd, 1, 2, 0x33),
    rm(Inst::kIdVpmovzxdq, 1, 2, 0x35),
    rm(Inst::kIdVmovd, 1, 1, 0x6e),
    wide(rm(Inst::kIdVmovq, 1, 1, 0x6e)),
    never_folds(rm(Inst::kIdVmovmskps, 0, 1, 0x50)),
    only_reads(rm(Inst::kIdVptest, 1, 2, 0x17)),
    rm(Inst::kIdVroundps, 1, 3, 0x08, Form::RmI),
    rm(Inst::kIdVroundpd, 1, 3, 0x09, Form::RmI),
    rm(Inst::kIdVpabsd, 1, 2, 0x1e),
    wide(rm(Inst::kIdVpermq, 1, 3, 0x00, Form::RmI)),
    vm_i(Inst::kIdVpslld, 0x72, 6),
    vm_i(Inst::kIdVpsrld, 0x72, 2),
    vm_i(Inst::kIdVpsrad, 0x72, 4),
    vm_i(Inst::kIdVpsllq, 0x73, 6),
    vm_i(Inst::kIdVpsrlq, 0x73, 2),
    mr_i(Inst::kIdVextracti128, 0x39),
    mr_i(Inst::kIdVextractf128, 0x19),
    mr_i(Inst::kIdVcvtps2ph, 0x1d),
    mr_i(Inst::kIdVpextrb, 0x14),
    mr_i(Inst::kIdVpextrw, 0x15),  // to memory
    mr_i(Inst::kIdVpextrd, 0x16),
    wide(mr_i(Inst::kIdVpextrq, 0x16)),
    rvm(Inst::kIdVpmaskmovd, 1, 2, 0x8c),  // from memory
    mvr(Inst::kIdVmaskmovps, 0x2e),
    mvr(Inst::kIdVmaskmovpd, 0x2f),
    gather(Inst::kIdVpgatherdd, 0x90),
    gather(Inst::kIdVpgatherqd, 0x91),
    wide(gather(Inst::kIdVpgatherqq, 0x91)),
    memory(Inst::kIdVldmxcsr, 2),
    memory(Inst::kIdVstmxcsr, 3),
    plain(Inst::kIdVzeroupper, Form::None, 0x77),
};

constexpr How kWordHows[] = {
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

constexpr size_t kHows = std::size(kVectorHows) + std::size(kWordHows);
static_assert(kHows < 255);

}  // namespace

constexpr std::array<EncodingX64, 256> kEncodingsX64 = [] {
  std::array<EncodingX64, 256> all{};
  size_t at = 1;  // the first is unknown
  for (const How& each : kVectorHows) all[at++] = each;
  for (const How& each : kWordHows) all[at++] = each;
  return all;
}();
constexpr std::array<uint8_t, Inst::_kIdCount> kCodesX64 = [] {
  std::array<uint8_t, Inst::_kIdCount> by_id{};
  for (size_t i = 1; i <= kHows; ++i) by_id[kEncodingsX64[i].id] = static_cast<uint8_t>(i);
  return by_id;
}();

}  // namespace kiln::engine
#endif
