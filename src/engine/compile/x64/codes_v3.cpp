// SPDX-License-Identifier: Apache-2.0
// Which vector instructions of x86-64-v3 does the compiler know? Only those that it uses, so that
// recording and encoding an instruction looks at one line. asmjit's tables have all instructions
// and take three times as long.
#if defined(__x86_64__)
#include "engine/compile/x64/how.h"

namespace kiln::engine {
namespace {

using namespace how;

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

}  // namespace

constexpr CodesX64 kCodesV3 = codes_of(kVectorHows, 32, 16);

}  // namespace kiln::engine
#endif
