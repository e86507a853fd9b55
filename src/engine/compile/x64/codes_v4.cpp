// SPDX-License-Identifier: Apache-2.0
// Which vector instructions of x86-64-v4 does the compiler know? All have EVEX, because registers
// from 16 on have no other encoding. Instructions on mask registers have VEX.
#if defined(__x86_64__)
#include "engine/compile/x64/how.h"

namespace kiln::engine {
namespace {

using namespace how;

constexpr uint8_t kVector = How::kUnitVector, kHalf = How::kUnitHalf, kQuarter = How::kUnitQuarter;
constexpr uint8_t kOf1 = How::kUnitBytes, kOf2 = kOf1 + 1, kOf4 = kOf1 + 2, kOf8 = kOf1 + 3,
                  kOf16 = kOf1 + 4, kOf32 = kOf1 + 5;

constexpr How evex(How how, uint8_t unit = kVector) {
  how.unit = unit;
  return how;
}
// With 64-bit lanes.
constexpr How evex_wide(How how, uint8_t unit = kVector) { return evex(wide(how), unit); }
// It also reads the operand that it writes.
constexpr How updates(How how) {
  how.reads |= 1;
  return how;
}
// It writes all lanes: the mask selects between its two operands.
constexpr How by_mask(How how) {
  how.mask_chooses = true;
  return how;
}
// Broadcasts from memory or a vector; from a general register with another opcode.
constexpr How or_of_word(How how, uint8_t opcode) {
  how.extra = opcode;
  return how;
}
// Narrows lanes, into a register or memory.
constexpr How cut(uint32_t id, uint8_t opcode) {
  return never_folds(rm(id, 2, 2, opcode, Form::Mr));
}
constexpr How kmov(uint32_t id) {
  How how = never_folds(rm(id, 0, 1, 0x92, Form::Kmov));
  how.extra = 0x93;
  return how;
}

constexpr How kEvexHows[] = {
    evex(constant(commutes(pure(rvm(Inst::kIdVpxord, 1, 1, 0xef))))),
    evex(commutes(rvm(Inst::kIdVpandd, 1, 1, 0xdb))),
    evex(commutes(rvm(Inst::kIdVpord, 1, 1, 0xeb))),
    evex(updates(rvm_i(Inst::kIdVpternlogd, 1, 3, 0x25))),
    evex(commutes(rvm(Inst::kIdVandps, 0, 1, 0x54))),
    evex_wide(commutes(rvm(Inst::kIdVandpd, 1, 1, 0x54))),
    evex(commutes(rvm(Inst::kIdVorps, 0, 1, 0x56))),
    evex_wide(commutes(rvm(Inst::kIdVorpd, 1, 1, 0x56))),
    evex(commutes(rvm(Inst::kIdVxorps, 0, 1, 0x57))),
    evex(rvm(Inst::kIdVaddps, 0, 1, 0x58)),
    evex_wide(rvm(Inst::kIdVaddpd, 1, 1, 0x58)),
    evex(rvm(Inst::kIdVmulps, 0, 1, 0x59)),
    evex_wide(rvm(Inst::kIdVmulpd, 1, 1, 0x59)),
    evex(rvm(Inst::kIdVsubps, 0, 1, 0x5c)),
    evex_wide(rvm(Inst::kIdVsubpd, 1, 1, 0x5c)),
    evex(rvm(Inst::kIdVminps, 0, 1, 0x5d)),
    evex_wide(rvm(Inst::kIdVminpd, 1, 1, 0x5d)),
    evex(rvm(Inst::kIdVdivps, 0, 1, 0x5e)),
    evex_wide(rvm(Inst::kIdVdivpd, 1, 1, 0x5e)),
    evex(rvm(Inst::kIdVmaxps, 0, 1, 0x5f)),
    evex_wide(rvm(Inst::kIdVmaxpd, 1, 1, 0x5f)),
    evex(commutes(rvm(Inst::kIdVpaddd, 1, 1, 0xfe))),
    evex_wide(commutes(rvm(Inst::kIdVpaddq, 1, 1, 0xd4))),
    evex(rvm(Inst::kIdVpsubd, 1, 1, 0xfa)),
    evex_wide(rvm(Inst::kIdVpsubq, 1, 1, 0xfb)),
    evex(commutes(rvm(Inst::kIdVpmulld, 1, 2, 0x40))),
    evex_wide(commutes(rvm(Inst::kIdVpmullq, 1, 2, 0x40))),
    evex_wide(commutes(rvm(Inst::kIdVpmuludq, 1, 1, 0xf4))),
    evex_wide(commutes(rvm(Inst::kIdVpmuldq, 1, 2, 0x28))),
    evex(commutes(rvm(Inst::kIdVpminsd, 1, 2, 0x39))),
    evex(commutes(rvm(Inst::kIdVpminud, 1, 2, 0x3b))),
    evex(commutes(rvm(Inst::kIdVpmaxsd, 1, 2, 0x3d))),
    evex(commutes(rvm(Inst::kIdVpmaxud, 1, 2, 0x3f))),
    evex_wide(commutes(rvm(Inst::kIdVpminsq, 1, 2, 0x39))),
    evex_wide(commutes(rvm(Inst::kIdVpminuq, 1, 2, 0x3b))),
    evex_wide(commutes(rvm(Inst::kIdVpmaxsq, 1, 2, 0x3d))),
    evex_wide(commutes(rvm(Inst::kIdVpmaxuq, 1, 2, 0x3f))),
    evex(rvm(Inst::kIdVpsllvd, 1, 2, 0x47)),
    evex(rvm(Inst::kIdVpsrlvd, 1, 2, 0x45)),
    evex(rvm(Inst::kIdVpsravd, 1, 2, 0x46)),
    evex(rvm_i(Inst::kIdVcmpps, 0, 1, 0xc2)),
    evex_wide(rvm_i(Inst::kIdVcmppd, 1, 1, 0xc2)),
    evex(rvm_i(Inst::kIdVpcmpd, 1, 3, 0x1f)),
    evex(rvm_i(Inst::kIdVpcmpud, 1, 3, 0x1e)),
    evex_wide(rvm_i(Inst::kIdVpcmpq, 1, 3, 0x1f)),
    evex_wide(rvm_i(Inst::kIdVpcmpuq, 1, 3, 0x1e)),
    evex(rvm(Inst::kIdVptestmd, 1, 2, 0x27)),
    evex(by_mask(rvm(Inst::kIdVblendmps, 1, 2, 0x65))),
    evex_wide(by_mask(rvm(Inst::kIdVblendmpd, 1, 2, 0x65))),
    evex(rvm_i(Inst::kIdVshufps, 0, 1, 0xc6)),
    evex(rvm_i(Inst::kIdVshuff32x4, 1, 3, 0x23)),
    evex_wide(rvm_i(Inst::kIdVshuff64x2, 1, 3, 0x23)),
    evex(rvm(Inst::kIdVpermd, 1, 2, 0x36)),
    evex(updates(rvm(Inst::kIdVpermi2d, 1, 2, 0x76))),
    evex_wide(updates(rvm(Inst::kIdVpermi2q, 1, 2, 0x76))),
    evex_wide(rvm_i(Inst::kIdVinserti64x4, 1, 3, 0x3a), kOf32),
    evex_wide(rvm_i(Inst::kIdVinsertf64x4, 1, 3, 0x1a), kOf32),
    evex(sum(Inst::kIdVfmadd213ps, 0xa8, false)),
    evex(sum(Inst::kIdVfmadd231ps, 0xb8, false)),
    evex_wide(sum(Inst::kIdVfmadd213pd, 0xa8, true)),
    evex_wide(sum(Inst::kIdVfmadd231pd, 0xb8, true)),
    evex_wide(sum(Inst::kIdVfnmadd213pd, 0xac, true)),
    evex(move(Inst::kIdVmovaps, 0x28, 0x29, true)),
    evex(move(Inst::kIdVmovups, 0x10, 0x11, false)),
    evex_wide([] {
      How how = move(Inst::kIdVmovupd, 0x10, 0x11, false);
      how.prefix = 1;
      return how;
    }()),
    evex(rm(Inst::kIdVsqrtps, 0, 1, 0x51)),
    evex_wide(rm(Inst::kIdVsqrtpd, 1, 1, 0x51)),
    evex_wide(rm(Inst::kIdVrsqrt14pd, 1, 2, 0x4e)),
    evex(rm(Inst::kIdVcvtdq2ps, 0, 1, 0x5b)),
    evex(rm(Inst::kIdVcvtudq2ps, 3, 1, 0x7a)),
    evex(rm(Inst::kIdVcvttps2dq, 2, 1, 0x5b)),
    evex(rm(Inst::kIdVcvttps2udq, 0, 1, 0x78)),
    evex(rm(Inst::kIdVcvtps2pd, 0, 1, 0x5a), kHalf),
    evex(rm(Inst::kIdVcvtph2ps, 1, 2, 0x13), kHalf),
    evex_wide(rm(Inst::kIdVcvtpd2ps, 1, 1, 0x5a)),
    evex_wide(rm(Inst::kIdVcvttpd2dq, 1, 1, 0xe6)),
    evex(rm(Inst::kIdVcvtdq2pd, 2, 1, 0xe6), kHalf),
    evex(rm(Inst::kIdVcvtudq2pd, 2, 1, 0x7a), kHalf),
    evex(pure(rm(Inst::kIdVbroadcastss, 1, 2, 0x18)), kOf4),
    evex_wide(pure(rm(Inst::kIdVbroadcastsd, 1, 2, 0x19)), kOf8),
    evex(or_of_word(rm(Inst::kIdVpbroadcastd, 1, 2, 0x58), 0x7c), kOf4),
    evex_wide(or_of_word(rm(Inst::kIdVpbroadcastq, 1, 2, 0x59), 0x7c), kOf8),
    evex(rm(Inst::kIdVpmovsxbd, 1, 2, 0x21), kQuarter),
    evex(rm(Inst::kIdVpmovsxwd, 1, 2, 0x23), kHalf),
    evex(rm(Inst::kIdVpmovsxdq, 1, 2, 0x25), kHalf),
    evex(rm(Inst::kIdVpmovzxbd, 1, 2, 0x31), kQuarter),
    evex(rm(Inst::kIdVpmovzxwd, 1, 2, 0x33), kHalf),
    evex(rm(Inst::kIdVpmovzxdq, 1, 2, 0x35), kHalf),
    evex(cut(Inst::kIdVpmovdb, 0x31), kQuarter),
    evex(cut(Inst::kIdVpmovdw, 0x33), kHalf),
    evex(never_folds(rm(Inst::kIdVpmovm2d, 2, 2, 0x38))),
    evex_wide(never_folds(rm(Inst::kIdVpmovm2q, 2, 2, 0x38))),
    evex(never_folds(rm(Inst::kIdVpmovd2m, 2, 2, 0x39))),
    evex_wide(never_folds(rm(Inst::kIdVpmovq2m, 2, 2, 0x39))),
    evex(rm(Inst::kIdVmovd, 1, 1, 0x6e), kOf4),
    evex_wide(rm(Inst::kIdVmovq, 1, 1, 0x6e), kOf8),
    evex(rm(Inst::kIdVrndscaleps, 1, 3, 0x08, Form::RmI)),
    evex_wide(rm(Inst::kIdVrndscalepd, 1, 3, 0x09, Form::RmI)),
    evex(rm(Inst::kIdVpabsd, 1, 2, 0x1e)),
    evex(vm_i(Inst::kIdVpslld, 0x72, 6)),
    evex(vm_i(Inst::kIdVpsrld, 0x72, 2)),
    evex(vm_i(Inst::kIdVpsrad, 0x72, 4)),
    evex(vm_i(Inst::kIdVprord, 0x72, 0)),
    evex_wide(vm_i(Inst::kIdVpsllq, 0x73, 6)),
    evex_wide(vm_i(Inst::kIdVpsrlq, 0x73, 2)),
    evex_wide(vm_i(Inst::kIdVpsraq, 0x72, 4)),
    evex(mr_i(Inst::kIdVextracti32x4, 0x39), kOf16),
    evex_wide(mr_i(Inst::kIdVextracti64x4, 0x3b), kOf32),
    evex_wide(mr_i(Inst::kIdVextractf64x4, 0x1b), kOf32),
    evex(mr_i(Inst::kIdVcvtps2ph, 0x1d), kHalf),
    evex(mr_i(Inst::kIdVpextrb, 0x14), kOf1),
    evex(mr_i(Inst::kIdVpextrw, 0x15), kOf2),  // to memory
    evex(mr_i(Inst::kIdVpextrd, 0x16), kOf4),
    evex_wide(mr_i(Inst::kIdVpextrq, 0x16), kOf8),
    evex(gather(Inst::kIdVpgatherdd, 0x90), kOf4),
    evex(gather(Inst::kIdVpgatherqd, 0x91), kOf4),
    evex_wide(gather(Inst::kIdVpgatherqq, 0x91), kOf8),
    kmov(Inst::kIdKmovw),
    plain(Inst::kIdKortestw, Form::Rm, 0x98),
    memory(Inst::kIdVldmxcsr, 2),
    memory(Inst::kIdVstmxcsr, 3),
    plain(Inst::kIdVzeroupper, Form::None, 0x77),
};

}  // namespace

constexpr CodesX64 kCodesV4 = codes_of(kEvexHows, 64, 32);

}  // namespace kiln::engine
#endif
