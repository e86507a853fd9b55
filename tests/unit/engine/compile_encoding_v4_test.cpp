// SPDX-License-Identifier: Apache-2.0
// Are the instructions of x86-64-v4 that the compiler writes itself those that asmjit writes? Each
// with registers of all quarters and every form of an address.
#if defined(__x86_64__) && __has_include(<asmjit/x86.h>)
#include <gtest/gtest.h>

#include <cstring>

#include "engine/compile/x64/registers.h"

namespace kiln::engine::v4 {
namespace {

namespace x86 = asmjit::x86;
using x86::Gp;
using x86::Mem;
using x86::Zmm;

struct Names {
  Zmm a, b, c;
  Zmm high, other;  // from 16 on: asmjit writes narrower vectors without EVEX where it can
  Gp p, q;
  Mem from;
};

template <class To>
void three(To& to, const Zmm& a, const Zmm& b, const auto& c) {
  to.vpxord(a, b, c), to.vpandd(a, b, c), to.vpord(a, b, c), to.vpternlogd(a, b, c, 0xd8);
  to.vandps(a, b, c), to.vandpd(a, b, c), to.vorps(a, b, c), to.vorpd(a, b, c);
  to.vxorps(a, b, c), to.vaddps(a, b, c), to.vaddpd(a, b, c), to.vmulps(a, b, c);
  to.vmulpd(a, b, c), to.vsubps(a, b, c), to.vsubpd(a, b, c), to.vminps(a, b, c);
  to.vminpd(a, b, c), to.vdivps(a, b, c), to.vdivpd(a, b, c), to.vmaxps(a, b, c);
  to.vmaxpd(a, b, c), to.vpaddd(a, b, c), to.vpaddq(a, b, c), to.vpsubd(a, b, c);
  to.vpsubq(a, b, c), to.vpmulld(a, b, c), to.vpmullq(a, b, c), to.vpmuludq(a, b, c);
  to.vpmuldq(a, b, c), to.vpminsd(a, b, c), to.vpminud(a, b, c), to.vpmaxsd(a, b, c);
  to.vpmaxud(a, b, c), to.vpminsq(a, b, c), to.vpminuq(a, b, c), to.vpmaxsq(a, b, c);
  to.vpmaxuq(a, b, c), to.vpsllvd(a, b, c), to.vpsrlvd(a, b, c), to.vpsravd(a, b, c);
  to.vcmpps(x86::k1, b, c, 3), to.vcmppd(x86::k1, b, c, 17), to.vpcmpd(x86::k1, b, c, 1);
  to.vpcmpud(x86::k1, b, c, 6), to.vpcmpq(x86::k2, b, c, 2), to.vpcmpuq(x86::k1, b, c, 5);
  to.vptestmd(x86::k1, b, c), to.vshufps(a, b, c, 0x88), to.vshuff32x4(a, b, c, 0x4e);
  to.vshuff64x2(a, b, c, 0x44), to.vpermd(a, b, c), to.vpermi2d(a, b, c), to.vpermi2q(a, b, c);
  to.vfmadd213ps(a, b, c), to.vfmadd231ps(a, b, c), to.vfmadd213pd(a, b, c);
  to.vfmadd231pd(a, b, c), to.vfnmadd213pd(a, b, c);
}

template <class To>
void two(To& to, const Zmm& a, const auto& b) {
  to.vmovaps(a, b), to.vmovups(a, b), to.vmovupd(a, b), to.vsqrtps(a, b), to.vsqrtpd(a, b);
  to.vcvtdq2ps(a, b), to.vcvtudq2ps(a, b), to.vcvttps2dq(a, b), to.vcvttps2udq(a, b);
  to.vrndscaleps(a, b, 9), to.vrndscalepd(a, b, 11), to.vpabsd(a, b), to.vrsqrt14pd(a, b);
}

// Of fewer lanes, or one.
template <class To>
void narrow(To& to, const Zmm& a, const auto& half, const auto& one) {
  to.vcvtps2pd(a, half), to.vcvtdq2pd(a, half), to.vcvtudq2pd(a, half), to.vcvtph2ps(a, half);
  to.vpmovsxwd(a, half), to.vpmovzxwd(a, half), to.vpmovsxdq(a, half), to.vpmovzxdq(a, half);
  to.vpmovsxbd(a, one), to.vpmovzxbd(a, one), to.vbroadcastss(a, one), to.vbroadcastsd(a, one);
  to.vpbroadcastd(a, one), to.vpbroadcastq(a, one);
}

template <class To>
void all(To& to, const Names& n) {
  const auto& [a, b, c, high, other, p, q, from] = n;
  three(to, a, b, c), three(to, a, b, from);
  two(to, a, b), two(to, a, from);
  narrow(to, a, b.ymm(), b.xmm()), narrow(to, a, from, from);
  to.vaddps(a, b, from._1to16()), to.vaddpd(a, b, from._1to8());
  to.vpternlogd(a, b, from._1to16(), 0xca), to.vcmpps(x86::k1, b, from._1to16(), 13);
  to.vmovaps(from, a), to.vmovups(from, a), to.vmovupd(from, a);
  to.k(x86::k1).vmovups(from, a), to.k(x86::k1).vmovupd(from, a);
  to.k(x86::k3).vmovaps(a, b), to.k(x86::k1).z().vmovaps(a, b);
  to.k(x86::k1).z().vmovups(a, from), to.k(x86::k1).vbroadcastss(a, from);
  to.k(x86::k1).vblendmps(a, b, c), to.k(x86::k2).vblendmps(a, b, from._1to16());
  to.k(x86::k1).vblendmpd(a, b, c), to.k(x86::k2).vblendmpd(a, b, from._1to8());
  to.k(x86::k1).vmulps(a, b, c), to.k(x86::k1).vandps(a, b, from._1to16());
  to.vinserti64x4(a, b, c.ymm(), 1), to.vinsertf64x4(a, b, c.ymm(), 1);
  to.vextracti32x4(a.xmm(), b, 3), to.vextracti64x4(a.ymm(), b, 1);
  to.vextractf64x4(a.ymm(), b, 1), to.vcvtpd2ps(a.ymm(), b), to.vcvttpd2dq(a.ymm(), b);
  to.vcvtps2ph(a.ymm(), b, 0), to.vpmovdw(a.ymm(), b), to.vpmovdw(from, a), to.vpmovdb(from, a);
  to.vpbroadcastd(a, p.r32()), to.vpbroadcastq(a, p);
  to.vpslld(a, b, 7), to.vpsrld(a, b, 7), to.vpsrad(a, b, 31), to.vprord(a, b, 13);
  to.vpsllq(a, b, 3), to.vpsrlq(a, b, 60), to.vpsraq(a, b, 33);
  to.vpmovm2d(a, x86::k1), to.vpmovm2q(a, x86::k1), to.vpmovd2m(x86::k1, a);
  to.vpmovq2m(x86::k1, a), to.kmovw(x86::k1, p.r32()), to.kmovw(p.r32(), x86::k1);
  to.kortestw(x86::k1, x86::k1);
  // (VMOVQ from memory has two encodings, and asmjit takes the other one.)
  to.vmovd(high.xmm(), p.r32()), to.vmovq(high.xmm(), p), to.vmovd(high.xmm(), from);
  to.vpextrd(p.r32(), high.xmm(), 3), to.vpextrq(p, high.xmm(), 1);
  to.vpextrd(from, high.xmm(), 2), to.vpextrq(from, high.xmm(), 0);
  to.vpextrb(from, high.xmm(), 12), to.vpextrw(from, high.xmm(), 6);
  const Mem apart = x86::ptr(q, other, 0, 1234), far = x86::ptr(q, other, 1, 8);
  to.k(x86::k1).vpgatherdd(a, apart), to.k(x86::k1).vpgatherqq(a, far);
  to.k(x86::k1).vpgatherqd(high.ymm(), apart);
  to.vldmxcsr(from), to.vstmxcsr(from), to.vzeroupper();
  to.prefetcht0(from), to.prefetcht0(x86::ptr(q, p, 0, 192));
}

std::vector<std::byte> by_asmjit(const Names& names) {
  asmjit::CodeHolder code;
  code.init(asmjit::Environment::host());
  x86::Assembler to(&code);
  all(to, names);
  to.ret();
  const asmjit::CodeBuffer& made = code.sectionById(0)->buffer();
  std::vector<std::byte> bytes(made.size());
  std::memcpy(bytes.data(), made.data(), made.size());
  return bytes;
}

std::vector<std::byte> by_us(const Names& names) {
  NotesX64 notes;
  notes.clear(kCodesV4);
  RegistersX64 registers;
  all(notes, names);
  notes._emitI(x86::Inst::kIdRet);
  std::vector<std::byte> bytes;
  EXPECT_TRUE(registers.run(notes, &bytes));
  return bytes;
}

TEST(CompiledEncodingV4, IsAsmjits) {
  const auto gp = [](uint32_t id) { return Gp(x86::gpq(id % 16)); };
  const auto zmm = [](uint32_t id) { return Zmm(id % 32); };
  for (uint32_t i = 0; i < 32; ++i) {
    if (i % 16 == Gp::kIdSp) continue;  // no index, and never used
    for (uint32_t add = 1; add < 32; add += 3) {
      const uint32_t other = i + add;
      const Gp index = gp(other % 16 == Gp::kIdSp ? 0 : other);
      for (const Mem& from :
           {x86::ptr(gp(i)), x86::ptr(gp(i), 12), x86::ptr(gp(i), 128), x86::ptr(gp(i), -192),
            x86::ptr(gp(i), 16384), x86::ptr(gp(i), index), x86::ptr(gp(i), index, 3, 64)}) {
        const Names names{zmm(i),
                          zmm(other),
                          zmm(other + 3),
                          zmm(i % 16 + 16),
                          zmm(i % 16 + 17),
                          gp(i),
                          gp(other % 16 == 4 ? 5 : other),
                          from};
        const std::vector<std::byte> wanted = by_asmjit(names);
        std::vector<std::byte> seen = by_us(names);
        seen.resize(wanted.size());  // constants may follow, aligned
        const auto [at, of] = std::mismatch(seen.begin(), seen.end(), wanted.begin());
        std::string first;
        for (auto byte = of; byte < std::min(of + 12, wanted.end()); ++byte)
          first += " " + std::to_string(std::to_integer<int>(*byte));
        ASSERT_TRUE(at == seen.end()) << "registers " << i << ", " << other << " at byte "
                                      << at - seen.begin() << ":" << first;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::engine::v4
#endif
