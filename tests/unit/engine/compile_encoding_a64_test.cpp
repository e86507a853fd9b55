// SPDX-License-Identifier: Apache-2.0
// Are the instructions of aarch64 that the compiler writes itself those that asmjit writes? Each
// with all registers in turn, and with numbers of every kind that it can hold.
#if defined(__aarch64__) && __has_include(<asmjit/arm/a64assembler.h>)
#include <asmjit/arm/a64assembler.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/compile/a64/registers.h"
#include "engine/compile/target.h"
#include "engine/memory/code_memory.h"

namespace kiln::engine {
namespace {

namespace a64 = asmjit::a64;
using a64::Gp;
using a64::Vec;
using Cond = a64::CondCode;

struct NamesA64 {
  Vec a, b, c;
  Gp p, q, r, s;
};

template <class To>
void same_sizes(To& to, const Vec& a, const Vec& b, const Vec& c) {
  to.add(a, b, c), to.sub(a, b, c), to.sshl(a, b, c), to.ushl(a, b, c), to.srshl(a, b, c);
  to.urshl(a, b, c), to.cmgt(a, b, c), to.cmge(a, b, c), to.cmeq(a, b, c), to.cmhi(a, b, c);
  to.cmhs(a, b, c), to.cmtst(a, b, c), to.cmgt(a, b, 0), to.cmge(a, b, 0), to.cmeq(a, b, 0);
  to.cmlt(a, b, 0), to.cmle(a, b, 0), to.uzp1(a, b, c), to.uzp2(a, b, c), to.trn1(a, b, c);
  to.trn2(a, b, c), to.zip1(a, b, c), to.zip2(a, b, c), to.neg(a, b), to.abs(a, b);
  to.sqadd(a, b, c), to.uqadd(a, b, c), to.sqsub(a, b, c), to.uqsub(a, b, c), to.addp(a, b, c);
  to.sqshl(a, b, c), to.uqshl(a, b, c);
}

template <class To>
void integers(To& to, const Vec& a, const Vec& b, const Vec& c) {
  to.mul(a, b, c), to.mla(a, b, c), to.mls(a, b, c), to.smin(a, b, c), to.umin(a, b, c);
  to.smax(a, b, c), to.umax(a, b, c), to.sminp(a, b, c), to.uminp(a, b, c), to.smaxp(a, b, c);
  to.umaxp(a, b, c), to.sabd(a, b, c), to.uabd(a, b, c), to.cls(a, b), to.clz(a, b);
}

template <class To>
void reals(To& to, const Vec& a, const Vec& b, const Vec& c) {
  to.fadd(a, b, c), to.fsub(a, b, c), to.fmul(a, b, c), to.fdiv(a, b, c), to.fabd(a, b, c);
  to.faddp(a, b, c), to.fmin(a, b, c), to.fmax(a, b, c), to.fminnm(a, b, c), to.fmaxnm(a, b, c);
  to.fmla(a, b, c), to.fmls(a, b, c), to.frecps(a, b, c), to.frsqrts(a, b, c), to.fcmeq(a, b, c);
  to.fcmge(a, b, c), to.fcmgt(a, b, c), to.fcmeq(a, b, 0), to.fcmge(a, b, 0), to.fcmgt(a, b, 0);
  to.fcmle(a, b, 0), to.fcmlt(a, b, 0), to.facge(a, b, c), to.facgt(a, b, c), to.fneg(a, b);
  to.fabs(a, b), to.fsqrt(a, b), to.frintn(a, b), to.frintm(a, b), to.frintp(a, b);
  to.frintz(a, b), to.frinta(a, b), to.frintx(a, b), to.frinti(a, b), to.frecpe(a, b);
  to.frsqrte(a, b), to.scvtf(a, b), to.ucvtf(a, b), to.fcvtas(a, b), to.fcvtau(a, b);
  to.fcvtms(a, b), to.fcvtmu(a, b), to.fcvtns(a, b), to.fcvtnu(a, b), to.fcvtps(a, b);
  to.fcvtpu(a, b), to.fcvtzs(a, b), to.fcvtzu(a, b);
}

// Elements of a and twice as wide ones.
template <class To>
void widths(To& to, const Vec& w, const Vec& n, const Vec& m, const Vec& n2, const Vec& m2) {
  to.smull(w, n, m), to.smull2(w, n2, m2), to.umull(w, n, m), to.umull2(w, n2, m2);
  to.smlal(w, n, m), to.smlal2(w, n2, m2), to.umlal(w, n, m), to.umlal2(w, n2, m2);
  to.smlsl(w, n, m), to.smlsl2(w, n2, m2), to.umlsl(w, n, m), to.umlsl2(w, n2, m2);
  to.saddl(w, n, m), to.saddl2(w, n2, m2), to.uaddl(w, n, m), to.uaddl2(w, n2, m2);
  to.ssubl(w, n, m), to.ssubl2(w, n2, m2), to.usubl(w, n, m), to.usubl2(w, n2, m2);
  to.saddw(w, w, m), to.saddw2(w, w, m2), to.uaddw(w, w, m), to.uaddw2(w, w, m2);
  to.addhn(n, w, w), to.addhn2(n2, w, w), to.subhn(n, w, w), to.subhn2(n2, w, w);
  to.xtn(n, w), to.xtn2(n2, w), to.sqxtn(n, w), to.sqxtn2(n2, w), to.uqxtn(n, w);
  to.uqxtn2(n2, w), to.sqxtun(n, w), to.sqxtun2(n2, w), to.sxtl(w, n), to.sxtl2(w, n2);
  to.uxtl(w, n), to.uxtl2(w, n2), to.saddlp(w, n2), to.uaddlp(w, n2), to.sadalp(w, n2);
  to.uadalp(w, n2);
  const uint32_t bits = 4u << w.elementType();
  to.shll(w, n, bits / 2), to.shll2(w, n2, bits / 2);
  for (uint32_t by = 1; by < bits / 2; ++by) {
    to.sshll(w, n, by), to.sshll2(w, n2, by), to.ushll(w, n, by), to.ushll2(w, n2, by);
    to.shrn(n, w, by), to.shrn2(n2, w, by), to.rshrn(n, w, by), to.rshrn2(n2, w, by);
  }
}

template <class To>
void shifts(To& to, const Vec& a, const Vec& b) {
  for (uint32_t by = 1; by < 4u << a.elementType(); ++by) {
    to.shl(a, b, by), to.sshr(a, b, by), to.ushr(a, b, by), to.sli(a, b, by), to.sri(a, b, by);
    to.srshr(a, b, by), to.urshr(a, b, by), to.ssra(a, b, by), to.usra(a, b, by);
  }
}

template <class To>
void lanes(To& to, const NamesA64& n) {
  const auto& [a, b, c, p, q, r, s] = n;
  for (uint32_t i = 0; i < 16; ++i) {
    const auto one = [&](const Vec& at, const Vec& other, const Gp& word) {
      to.ins(at, word), to.ins(at, other), to.ld1(at, a64::ptr(p)), to.st1(at, a64::ptr(q));
    };
    one(a.b(i), b.b(15 - i), p.w()), to.umov(p.w(), b.b(i)), to.dup(a.b16(), b.b(i));
    to.smov(p.w(), b.b(i)), to.smov(p.x(), b.b(i)), to.dup(a.b8(), b.b(i));
    if (i < 8) {
      one(a.h(i), b.h(7 - i), q.w()), to.umov(q.w(), a.h(i)), to.dup(a.h8(), b.h(i));
      to.smov(p.w(), b.h(i)), to.smov(p.x(), b.h(i));
    }
    if (i < 4) {
      one(a.s(i), b.s(3 - i), r.w()), to.umov(r.w(), c.s(i)), to.dup(c.s4(), b.s(i));
      to.smov(p.x(), b.s(i));
    }
    if (i < 2) one(a.d(i), b.d(1 - i), s.x()), to.umov(p.x(), b.d(i)), to.dup(a.d2(), b.d(i));
    to.ext(a.b16(), b.b16(), c.b16(), i);
  }
  to.dup(a.b16(), p.w()), to.dup(a.h8(), p.w()), to.dup(a.s4(), p.w()), to.dup(a.d2(), p.x());
  to.dup(b.s2(), p.w());
  for (const Vec& each : {Vec(a.b16()), Vec(a.h8()), Vec(a.s4()), Vec(a.d2()), Vec(a.s2())})
    to.ld1r(each, a64::ptr(q)), to.ld1(each, a64::ptr(p)), to.st1(each, a64::ptr(r));
}

template <class To>
void vectors_a64(To& to, const NamesA64& n) {
  const auto& [a, b, c, p, q, r, s] = n;
  same_sizes(to, a.b16(), b.b16(), c.b16()), same_sizes(to, a.h8(), b.h8(), c.h8());
  same_sizes(to, a.s4(), b.s4(), c.s4()), same_sizes(to, a.d2(), b.d2(), c.d2());
  same_sizes(to, a.s2(), b.s2(), c.s2());
  integers(to, a.b16(), b.b16(), c.b16()), integers(to, a.h8(), b.h8(), c.h8());
  integers(to, a.s4(), b.s4(), c.s4()), integers(to, a.h4(), b.h4(), c.h4());
  reals(to, a.s4(), b.s4(), c.s4()), reals(to, a.d2(), b.d2(), c.d2());
  reals(to, a.s2(), b.s2(), c.s2());
  widths(to, a.h8(), b.b8(), c.b8(), b.b16(), c.b16());
  widths(to, a.s4(), b.h4(), c.h4(), b.h8(), c.h8());
  widths(to, a.d2(), b.s2(), c.s2(), b.s4(), c.s4());
  shifts(to, a.b16(), b.b16()), shifts(to, a.h8(), b.h8()), shifts(to, a.s4(), b.s4());
  shifts(to, a.d2(), b.d2()), shifts(to, a.s2(), b.s2());
  to.and_(a.b16(), b.b16(), c.b16()), to.bic(a.b16(), b.b16(), c.b16());
  to.orr(a.b16(), b.b16(), c.b16()), to.orn(a.b16(), b.b16(), c.b16());
  to.eor(a.b16(), b.b16(), c.b16()), to.bsl(a.b16(), b.b16(), c.b16());
  to.bit(a.b16(), b.b16(), c.b16()), to.bif(a.b16(), b.b16(), c.b16()),
      to.eor(a.b8(), b.b8(), c.b8());
  to.tbl(a.b16(), b.b16(), c.b16()), to.tbx(a.b16(), b.b16(), c.b16());
  to.not_(a.b16(), b.b16()), to.mvn(a.b16(), b.b16()), to.rbit(a.b16(), b.b16());
  to.cnt(a.b16(), b.b16()), to.rev16(a.b16(), b.b16()), to.rev32(a.b16(), b.b16());
  to.rev32(a.h8(), b.h8()), to.rev64(a.b16(), b.b16()), to.rev64(a.h8(), b.h8());
  to.rev64(a.s4(), b.s4()), to.mov(a.b16(), b.b16()), to.mov(a.b8(), b.b8());
  to.addv(a.s(), b.s4()), to.umaxv(a.s(), b.s4()), to.uminv(a.s(), b.s4());
  to.smaxv(a.h(), b.h8()), to.sminv(a.b(), b.b16()), to.addv(a.b(), b.b8());
  to.fcvtl(a.d2(), b.s2()), to.fcvtl2(a.d2(), b.s4()), to.fcvtl(a.s4(), b.h4());
  to.fcvtl2(a.s4(), b.h8()), to.fcvtn(a.s2(), b.d2()), to.fcvtn2(a.s4(), b.d2());
  to.fcvtn(a.h4(), b.s4()), to.fcvtn2(a.h8(), b.s4()), to.fcvtxn(a.s2(), b.d2());
  to.fcvtxn2(a.s4(), b.d2());
  to.fmov(a.d(), p.x()), to.fmov(p.x(), a.d()), to.fmov(b.s(), q.w()), to.fmov(q.w(), b.s());
  to.movi(a.b16(), 0x5a), to.movi(a.d2(), 0xff00ffff000000ffu), to.movi(a.d2(), 0);
  to.movi(a.s4(), 0x7f), to.mvni(a.s4(), 0x80), to.movi(a.h8(), 0x12);
  for (uint32_t by : {0, 8, 16, 24})
    to.movi(a.s4(), 0xa5, a64::lsl(by)), to.mvni(a.s4(), 0x3c, a64::lsl(by));
  for (uint32_t by : {0, 8})
    to.movi(a.h8(), 0xa5, a64::lsl(by)), to.mvni(a.h8(), 0x3c, a64::lsl(by));
  for (uint32_t by : {8, 16}) to.movi(a.s4(), 0xa5, a64::msl(by)), to.mvni(a.s4(), 1, a64::msl(by));
}

template <class To>
void sums(To& to, const Gp& p, const Gp& q, const Gp& r, const Gp& s) {
  to.add(p, q, r), to.sub(p, q, r), to.add(p, q, r, a64::lsl(3)), to.sub(p, q, r, a64::lsr(9));
  to.add(p, q, r, a64::asr(31)), to.cmp(p, q), to.cmp(p, q, a64::lsl(2)), to.cmn(p, q);
  to.and_(p, q, r), to.orr(p, q, r), to.eor(p, q, r), to.bic(p, q, r), to.orn(p, q, r);
  to.eon(p, q, r), to.orr(p, q, r, a64::lsl(4)), to.and_(p, q, r, a64::ror(5)), to.tst(p, q);
  for (uint32_t number : {0, 1, 31, 4095, 4096, 8192, 0xfff000})
    to.add(p, q, number), to.sub(p, q, number), to.cmp(p, number);
  to.neg(p, q), to.mvn(p, q), to.mov(p, q), to.mul(p, q, r), to.mneg(p, q, r), to.udiv(p, q, r);
  to.sdiv(p, q, r), to.madd(p, q, r, s), to.msub(p, q, r, s), to.rbit(p, q), to.clz(p, q);
  to.cls(p, q), to.lsl(p, q, r), to.lsr(p, q, r), to.asr(p, q, r);
  for (uint32_t by = 1; by < p.size() * 8; ++by) {
    to.lsl(p, q, by), to.lsr(p, q, by), to.asr(p, q, by);
    to.ubfx(p, q, by - 1, p.size() * 8 - by), to.sbfx(p, q, by - 1, 1);
  }
  for (Cond when : {Cond::kEQ, Cond::kNE, Cond::kHS, Cond::kLO, Cond::kMI, Cond::kPL, Cond::kVS,
                    Cond::kVC, Cond::kHI, Cond::kLS, Cond::kGE, Cond::kLT, Cond::kGT, Cond::kLE}) {
    to.csel(p, q, r, when), to.csinc(p, q, r, when), to.csinv(p, q, r, when);
    to.csneg(p, q, r, when), to.cset(p, when), to.csetm(p, when);
  }
}

// Ones in a row, turned, in elements of every size.
template <class To>
void numbers_in_bits(To& to, const Gp& p, const Gp& q) {
  const uint32_t bits = p.size() * 8;
  for (uint32_t size = 2; size <= bits; size *= 2) {
    const uint32_t step = size > 16 ? 5 : 1;
    for (uint32_t ones = 1; ones < size; ones += step) {
      for (uint32_t turn = 0; turn < size; turn += step) {
        const uint64_t row = (uint64_t{1} << ones) - 1;
        uint64_t number = turn ? row >> turn | row << (size - turn) : row;
        number &= ~uint64_t{0} >> (64 - size);
        for (uint32_t each = size; each < bits; each *= 2) number |= number << each;
        to.and_(p, q, number), to.orr(p, q, number), to.eor(p, q, number), to.tst(p, number);
      }
    }
  }
}

template <class To>
void words_a64(To& to, const NamesA64& n) {
  const auto& [a, b, c, p, q, r, s] = n;
  sums(to, p, q, r, s), sums(to, p.w(), q.w(), r.w(), s.w());
  to.umulh(p, q, r), to.smulh(p, q, r), to.umull(p, q.w(), r.w()), to.smull(p, q.w(), r.w());
  to.sxtb(p, q.w()), to.sxth(p, q.w()), to.sxtw(p, q.w()), to.sxtb(p.w(), q.w());
  to.sxth(p.w(), q.w()), to.uxtb(p.w(), q.w()), to.uxth(p.w(), q.w());
  const uint32_t control = a64::Predicate::SysReg::kFPCR, status = a64::Predicate::SysReg::kFPSR;
  to.mrs(p, control), to.msr(control, p), to.mrs(q, status), to.msr(status, r);
}

template <class To>
void memory_a64(To& to, const NamesA64& n) {
  const auto& [a, b, c, p, q, r, s] = n;
  for (int32_t unit : {0, 1, 7, 100, 4095, -1, -2}) {
    const auto at = [&](int32_t bytes) { return a64::ptr(q, unit * bytes); };
    to.ldr(p, at(8)), to.str(p, at(8)), to.ldr(p.w(), at(4)), to.str(p.w(), at(4));
    to.ldrb(p.w(), at(1)), to.strb(p.w(), at(1)), to.ldrh(p.w(), at(2)), to.strh(p.w(), at(2));
    to.ldrsb(p.w(), at(1)), to.ldrsh(p.w(), at(2)), to.ldrsb(p, at(1)), to.ldrsh(p, at(2));
    to.ldrsw(p, at(4)), to.ldr(a.s(), at(4)), to.str(a.s(), at(4)), to.ldr(a.d(), at(8));
    to.str(a.d(), at(8)), to.ldr(a.q(), at(16)), to.str(a.q(), at(16)), to.ldr(a.h(), at(2));
    to.str(a.h(), at(2)), to.ldr(a.b(), at(1)), to.str(a.b(), at(1));
  }
  for (int32_t offset : {1, 3, 255, -256, -17}) {
    const a64::Mem at = a64::ptr(q, offset);
    to.ldr(p, at), to.str(p.w(), at), to.ldr(a.q(), at), to.str(a.s(), at), to.ldrsw(p, at);
  }
  to.ldr(p, a64::ptr(q, r)), to.ldr(p, a64::ptr(q, r, a64::lsl(3))), to.str(p.w(), a64::ptr(q, r));
  to.str(p.w(), a64::ptr(q, r, a64::lsl(2))), to.ldr(a.q(), a64::ptr(q, r, a64::lsl(4)));
  to.ldr(a.s(), a64::ptr(q, r, a64::lsl(2))), to.ldrb(p.w(), a64::ptr(q, r));
  to.ldrh(p.w(), a64::ptr(q, r, a64::lsl(1))), to.str(a.d(), a64::ptr(q, r, a64::lsl(3)));
}

template <class To>
void jumps_a64(To& to, const NamesA64& n) {
  const auto& [a, b, c, p, q, r, s] = n;
  const asmjit::Label back = to.newLabel(), ahead = to.newLabel();
  to.bind(back);
  to.add(p, q, r);
  to.cbz(p, back), to.cbnz(p.w(), ahead), to.tbz(q, 3, ahead), to.tbnz(q, 40, back);
  to.b_ne(ahead), to.b_hi(back), to.b_lt(ahead), to.b_eq(back), to.b(ahead);
  to.add(p, q, r);
  to.bind(ahead);
  to.add(q, p, r);
}

template <class To>
void all_a64(To& to, const NamesA64& names) {
  vectors_a64(to, names), lanes(to, names), words_a64(to, names), memory_a64(to, names);
  numbers_in_bits(to, names.p, names.q), numbers_in_bits(to, names.p.w(), names.q.w());
  jumps_a64(to, names);
}

struct Failures : asmjit::ErrorHandler {
  void handleError(asmjit::Error, const char* message, asmjit::BaseEmitter*) override {
    ADD_FAILURE() << message;
  }
};

std::vector<uint32_t> words_of_asmjit(const NamesA64& names) {
  asmjit::CodeHolder code;
  Failures failures;
  code.init(asmjit::Environment::host());
  code.setErrorHandler(&failures);
  a64::Assembler to(&code);
  all_a64(to, names);
  to.ret(a64::x30);
  const asmjit::CodeBuffer& made = code.sectionById(0)->buffer();
  std::vector<uint32_t> words(made.size() / 4);
  std::memcpy(words.data(), made.data(), made.size());
  return words;
}

std::vector<uint32_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return words;
}

// Without calls there is no frame, and with registers of the CPU none to be saved.
std::vector<uint32_t> our_words(const NamesA64& names) {
  NotesA64 notes;
  RegistersA64 registers;
  all_a64(notes, names);
  notes.ret(a64::x30);
  std::vector<std::byte> bytes;
  EXPECT_TRUE(registers.run(notes, &bytes));
  return words_of(bytes);
}

TEST(CompiledEncodingA64, IsAsmjits) {
  const auto word = [](uint32_t id) { return Gp(a64::x(id % 31)); };
  const auto vec = [](uint32_t id) { return Vec(a64::v(id % 32)); };
  for (uint32_t i = 0; i < 32; ++i) {
    const NamesA64 names{vec(i),      vec(i + 5),   vec(i * 3 + 1), word(i + 4),
                         word(i + 9), word(i + 17), word(i + 23)};
    const std::vector<uint32_t> wanted = words_of_asmjit(names), seen = our_words(names);
    ASSERT_GE(seen.size(), wanted.size());
    for (size_t w = 0; w < wanted.size(); ++w)
      ASSERT_EQ(fmt::format("{:08x}", seen[w]), fmt::format("{:08x}", wanted[w])) << i << " " << w;
  }
}

uint64_t run_a64(NotesA64& notes) {
  notes.ret(a64::x30);
  RegistersA64 registers;
  std::vector<std::byte> bytes;
  EXPECT_TRUE(registers.run(notes, &bytes));
  CodeMemory memory;
  EXPECT_TRUE(memory.fill(bytes));
  const auto pass = std::make_unique<Pass>();
  return std::bit_cast<uint64_t (*)(Pass*)>(memory.begin())(pass.get());
}

TEST(CompiledEncodingA64, MakesNumbers) {
  constexpr uint64_t kParts[] = {0, 1, 0x8000, 0xffff, 0x1234};
  for (uint64_t a : kParts) {
    for (uint64_t b : kParts) {
      for (uint64_t c : kParts) {
        for (uint64_t d : kParts) {
          const uint64_t number = a << 48 | b << 32 | c << 16 | d;
          NotesA64 notes, narrow;
          notes.mov(a64::x0, number);
          ASSERT_EQ(run_a64(notes), number);
          narrow.mov(a64::w0, number);
          ASSERT_EQ(run_a64(narrow), number & 0xffffffff);
        }
      }
    }
  }
}

TEST(CompiledEncodingA64, MakesConstants) {
  std::vector<uint64_t> all = {0,
                               ~uint64_t{0},
                               0xff00ff00ff0000ff,
                               0x3f8000003f800000,
                               0xbf800000bf800000,
                               0x4048000040480000,
                               0x3ff0000000000000,
                               0xc03e000000000000,
                               0x7f8000007f800000,
                               0xfff8000000000000,
                               0x0012001200120012,
                               0x1200120012001200,
                               0xffedffedffedffed,
                               0x7f7f7f7f7f7f7f7f,
                               0x8000000080000000,
                               0xffffff80ffffff80};
  for (uint32_t at = 0; at < 32; at += 4) {
    for (uint64_t byte : {0x5au, 0x80u, 0x01u}) {
      const uint64_t word = (byte << at) & 0xffffffff, ones = word | ((uint64_t{1} << at) - 1);
      for (uint64_t each : {word, ones, ~word & 0xffffffff, ~ones & 0xffffffff})
        all.push_back(each << 32 | each), all.push_back(each);
    }
  }
  for (uint64_t bits : all) {
    for (uint64_t high : {bits, uint64_t{0}, ~bits}) {
      for (uint32_t half : {0u, 1u}) {
        NotesA64 notes;
        const Vec value = notes.new_vector();
        notes.constant(value, {bits, high});
        notes.umov(a64::x0, value.d(half));
        ASSERT_EQ(run_a64(notes), half ? high : bits) << bits << " " << high;
      }
    }
  }
}

// A jump on a bit reaches 32 KB.
TEST(CompiledEncodingA64, JumpsFartherThanTheirFields) {
  for (bool is_set : {false, true}) {
    NotesA64 notes;
    const Gp word = notes.new_word();
    const asmjit::Label far = notes.newLabel(), back = notes.newLabel(), end = notes.newLabel();
    notes.mov(word, is_set ? 8 : 0);
    notes.mov(a64::x0, 0);
    notes.b(far);
    notes.bind(back);
    notes.add(a64::x0, a64::x0, 8192);
    notes.b(end);
    for (uint32_t i = 0; i < 20'000; ++i) notes.add(a64::x0, a64::x0, 1);
    notes.bind(far);
    notes.tbnz(word, 3, back);
    for (uint32_t i = 0; i < 20'000; ++i) notes.add(a64::x0, a64::x0, 1);
    notes.bind(end);
    EXPECT_EQ(run_a64(notes), is_set ? 8192u : 20'000u);
  }
}

}  // namespace
}  // namespace kiln::engine
#endif
