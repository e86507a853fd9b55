// SPDX-License-Identifier: Apache-2.0
// Are the instructions of x86-64 that the compiler writes itself those that asmjit writes? Each
// with registers of both halves and every form of an address.
#if defined(__x86_64__) && __has_include(<asmjit/x86.h>)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "engine/compile/x64/registers.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
using x86::Gp;
using x86::Mem;
using x86::Ymm;

struct Names {
  Ymm a, b, c, d;
  Gp p, q, r;
  Mem from;  // of general registers
};

template <class To>
void three(To& to, const Ymm& a, const Ymm& b, const auto& c) {
  to.vpxor(a, b, c), to.vxorps(a, b, c), to.vpcmpeqd(a, b, c), to.vpand(a, b, c), to.vpor(a, b, c);
  to.vandps(a, b, c), to.vandpd(a, b, c), to.vandnps(a, b, c), to.vorps(a, b, c);
  to.vorpd(a, b, c), to.vaddps(a, b, c), to.vaddpd(a, b, c), to.vmulps(a, b, c);
  to.vmulpd(a, b, c), to.vsubps(a, b, c), to.vsubpd(a, b, c), to.vminps(a, b, c);
  to.vminpd(a, b, c), to.vdivps(a, b, c), to.vdivpd(a, b, c), to.vmaxps(a, b, c);
  to.vmaxpd(a, b, c), to.vpaddd(a, b, c), to.vpaddq(a, b, c), to.vpsubd(a, b, c);
  to.vpsubq(a, b, c), to.vpmulld(a, b, c), to.vpmuludq(a, b, c), to.vpmuldq(a, b, c);
  to.vpcmpeqq(a, b, c), to.vpcmpgtd(a, b, c), to.vpcmpgtq(a, b, c), to.vpminsd(a, b, c);
  to.vpminud(a, b, c), to.vpmaxsd(a, b, c), to.vpmaxud(a, b, c), to.vpsllvd(a, b, c);
  to.vpsrlvd(a, b, c), to.vpsravd(a, b, c), to.vpackusdw(a, b, c), to.vpackuswb(a, b, c);
  to.vcmpps(a, b, c, 3), to.vcmppd(a, b, c, 17), to.vshufps(a, b, c, 0x88);
  to.vpblendd(a, b, c, 0x90), to.vpermd(a, b, c), to.vfmadd132ps(a, b, c), to.vfmadd213ps(a, b, c);
  to.vfmadd231ps(a, b, c), to.vfmadd213pd(a, b, c), to.vfmadd231pd(a, b, c);
}

template <class To>
void two(To& to, const Ymm& a, const auto& b) {
  to.vmovaps(a, b), to.vmovups(a, b), to.vsqrtps(a, b), to.vsqrtpd(a, b), to.vcvtdq2ps(a, b);
  to.vcvttps2dq(a, b), to.vptest(a, b), to.vroundps(a, b, 9), to.vpermq(a, b, 0xd8);
  to.vroundpd(a, b, 11), to.vpabsd(a, b);
}

template <class To>
void narrow(To& to, const Ymm& a, const auto& b) {
  to.vbroadcastss(a, b), to.vbroadcastsd(a, b), to.vpbroadcastd(a, b), to.vpbroadcastq(a, b);
  to.vpmovsxbd(a, b), to.vpmovsxwd(a, b), to.vpmovsxdq(a, b), to.vpmovzxbd(a, b);
  to.vpmovzxwd(a, b), to.vpmovzxdq(a, b), to.vcvtps2pd(a, b), to.vcvtdq2pd(a, b);
  to.vcvtph2ps(a, b);
}

template <class To>
void vectors(To& to, const Names& n) {
  const auto& [a, b, c, d, p, q, r, from] = n;
  three(to, a, b, c), three(to, a, b, from);
  two(to, a, b), two(to, a, from);
  narrow(to, a, b.xmm()), narrow(to, a, from);
  to.vmovaps(from, a), to.vmovups(from, a), to.vmovups(from, a.xmm());
  to.vblendvps(a, b, c, d), to.vblendvpd(a, b, c, d), to.vblendvps(a, b, from, d);
  to.vinserti128(a, b, c.xmm(), 1), to.vinsertf128(a, b, c.xmm(), 1);
  to.vextracti128(a.xmm(), b, 1), to.vextractf128(a.xmm(), b, 1);
  to.vpackusdw(a.xmm(), b.xmm(), c.xmm()), to.vpackuswb(a.xmm(), b.xmm(), c.xmm());
  to.vcvtpd2ps(a.xmm(), b), to.vcvttpd2dq(a.xmm(), b);
  to.vmovd(a.xmm(), p.r32()), to.vmovq(a.xmm(), p), to.vmovmskps(p.r32(), a);
  to.vpslld(a, b, 7), to.vpsrld(a, b, 7), to.vpsrad(a, b, 31), to.vpsllq(a, b, 3);
  to.vpsrlq(a, b, 60), to.vpextrd(p.r32(), a.xmm(), 3), to.vpextrq(p, a.xmm(), 1);
  to.vpextrd(from, a.xmm(), 2), to.vpextrq(from, a.xmm(), 0);
  to.vpextrb(from, a.xmm(), 12), to.vpextrw(from, a.xmm(), 6);
  to.vmaskmovps(from, a, b), to.vmaskmovpd(from, a, b), to.vpmaskmovd(a, b, from);
  to.vpinsrb(a.xmm(), b.xmm(), from, 5), to.vpinsrw(a.xmm(), b.xmm(), from, 6);
  to.vcvtps2ph(a.xmm(), b, 0), to.vldmxcsr(from), to.vstmxcsr(from);
  to.prefetcht0(from), to.prefetcht0(x86::ptr(q, p, 0, 192));
  to.vzeroupper();
  const Mem apart = x86::ptr(q, d, 0, 1234), far = x86::ptr(q, d, 0, 8);
  to.vpgatherdd(a, apart, b), to.vpgatherqq(a, far, b);
  to.vpgatherqd(a.xmm(), apart, b.xmm());
}

template <class To>
void words(To& to, const Names& n) {
  const auto& [a, b, c, d, p, q, r, from] = n;
  for (const auto& [x, y, z] :
       {std::tuple{p, q, r}, std::tuple{Gp(p.r32()), Gp(q.r32()), Gp(r.r32())}}) {
    to.add(x, y), to.or_(x, y), to.and_(x, y), to.sub(x, y), to.xor_(x, y), to.cmp(x, y);
    to.add(x, from), to.cmp(x, from), to.test(x, y), to.imul(x, y), to.imul(x, from);
    to.xor_(x, 0xff), to.and_(x, 0xffff), to.cmp(x, 31), to.cmp(x, -5), to.test(x, 0x7fffffff);
    to.mov(x, y), to.mov(x, from), to.mov(from, x), to.cmovb(x, y), to.cmova(x, y);
    to.cmovz(x, y), to.cmovnz(x, y), to.cmovl(x, y), to.cmovg(x, from), to.tzcnt(x, y);
    to.shlx(x, y, z), to.shrx(x, y, z), to.sarx(x, y, z), to.blsr(x, y), to.not_(x);
    to.neg(x), to.shl(x, 9), to.shr(x, 9);
  }
  Mem of = from;
  of.setSize(4), to.cmp(of, 300), to.cmp(of, 3), to.test(of, 4);
  of.setSize(8), to.cmp(of, -300);
  of.setSize(1), to.movzx(p.r32(), of), to.movsx(p.r32(), of);
  of.setSize(2), to.movzx(p.r32(), of), to.movsx(p.r32(), of);
  to.movsxd(p, q.r32()), to.lea(p, from), to.mov(from, p.r8()), to.mov(from, p.r16());
  for (x86::CondCode when :
       {x86::CondCode::kE, x86::CondCode::kNE, x86::CondCode::kL, x86::CondCode::kLE,
        x86::CondCode::kG, x86::CondCode::kGE, x86::CondCode::kB, x86::CondCode::kBE,
        x86::CondCode::kA, x86::CondCode::kAE})
    to.set(when, p.r8());
  to.mov(p.r32(), 77), to.mov(p, int64_t{0x123456789abcdef}), to.mov(p, -3);
  to.call(p), to.push(p), to.pop(p);
}

std::vector<std::byte> by_asmjit(const Names& names) {
  asmjit::CodeHolder code;
  code.init(asmjit::Environment::host());
  x86::Assembler to(&code);
  vectors(to, names), words(to, names);
  to.ret();
  const asmjit::CodeBuffer& made = code.sectionById(0)->buffer();
  std::vector<std::byte> bytes(made.size());
  std::memcpy(bytes.data(), made.data(), made.size());
  return bytes;
}

std::vector<std::byte> by_us(const Names& names) {
  NotesX64 notes;
  notes.clear(kCodesV3);
  RegistersX64 registers;
  vectors(notes, names), words(notes, names);
  notes._emitI(x86::Inst::kIdRet);
  std::vector<std::byte> bytes;
  EXPECT_TRUE(registers.run(notes, &bytes));
  return bytes;
}

std::string first_difference(const std::vector<std::byte>& seen,
                             const std::vector<std::byte>& wanted) {
  const auto [a, b] = std::mismatch(seen.begin(), seen.end(), wanted.begin(), wanted.end());
  if (a == seen.end() && b == wanted.end()) return "";
  const auto from = std::min<ptrdiff_t>(a - seen.begin(), 6);
  std::string out = fmt::format("at {}: ", a - seen.begin());
  for (auto at = a - from; at != seen.end() && at < a + 8; ++at)
    out += fmt::format("{:02x} ", std::to_integer<int>(*at));
  out += "wanted: ";
  for (auto at = b - from; at != wanted.end() && at < b + 8; ++at)
    out += fmt::format("{:02x} ", std::to_integer<int>(*at));
  return out;
}

TEST(CompiledEncoding, IsAsmjits) {
  const auto gp = [](uint32_t id) { return Gp(x86::gpq(id % 16)); };
  const auto ymm = [](uint32_t id) { return Ymm(id % 16); };
  for (uint32_t i = 0; i < 16; ++i) {
    if (i == Gp::kIdSp) continue;  // no index, and never used
    for (uint32_t other = 0; other < 16; ++other) {
      if (other == i) continue;  // copies to themselves are left out
      const Gp index = gp(other == Gp::kIdSp ? 0 : other);
      for (const Mem& from :
           {x86::ptr(gp(i)), x86::ptr(gp(i), 12), x86::ptr(gp(i), -1200), x86::ptr(gp(i), index),
            x86::ptr(gp(i), index, 3, 4), x86::ptr(gp(i), index, 2, 999)}) {
        const Names names{ymm(i), ymm(other), ymm(other + 3), ymm(i + 9),
                          gp(i),  gp(other),  gp(other + 11), from};
        std::vector<std::byte> wanted = by_asmjit(names), seen = by_us(names);
        seen.resize(wanted.size());  // constants may follow, aligned
        ASSERT_EQ(first_difference(seen, wanted), "") << i << " " << other;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::engine
#endif
