// SPDX-License-Identifier: Apache-2.0
// Do branches become one where nobody can tell, and only there? The random programs compare with
// watched runs, in which each branch stays.
#include "engine/decode/branches.h"

#include <fmt/format.h>

#include <random>

#include "ptx/parser.h"
#include "recorder.h"

namespace kiln::engine {
namespace {

constexpr char kHead[] =
    "ld.param.u64 %rd1, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r1, "
    "32; add.s64 %rd3, %rd1, %rd2;\n";

std::string text_of(const std::string& body) { return kernel_text("u64 q, u32 n", kHead + body); }

// The instructions that are left, by name.
std::string joined(const std::string& body) {
  const std::string text = text_of(body);
  auto module = ptx::parse_module(text);
  if (!module) return format(module.error());
  auto read = ptx::parse_body(*module, *module->find("k"));
  if (!read) return format(read.error());
  std::vector<ptx::FormMatch> matches;
  for (const ptx::Instruction& ins : read->instructions) matches.push_back(*ptx::match_form(ins));
  join_branches(*read, matches);
  std::string out;
  for (size_t i = 5; i < read->instructions.size(); ++i) {
    const ptx::Instruction& ins = read->instructions[i];
    EXPECT_EQ(ptx::match_form(ins)->form, matches[i].form);
    out += (ins.guard == ptx::kNoRegister ? "" : "@") + ins.text() + " ";
  }
  return out;
}

TEST(Branches, ToOnePlaceBecomeOne) {
  EXPECT_EQ(joined("setp.lt.s32 %p1, %r1, 1; @%p1 bra END; add.s32 %r3, %r1, 1;"
                   "setp.ge.s32 %p2, %r3, 9; @!%p2 bra END; st.global.u32 [%rd3], %r3;\nEND:"),
            "setp.lt.s32 add.s32 setp.ge.s32 or.pred @bra st.global.u32 ret ");
  EXPECT_EQ(joined("setp.lt.s32 %p1, %r1, 1; setp.lt.s32 %p2, %r2, 1; @%p1 bra END; @%p2 bra END;"
                   "setp.lt.s32 %p3, %r2, 7; @%p3 bra END; st.global.u32 [%rd3], %r2;\nEND:"),
            "setp.lt.s32 setp.lt.s32 or.pred setp.lt.s32 or.pred @bra st.global.u32 ret ");
}

TEST(Branches, StayWhereSomebodyWouldTell) {
  const std::string first = "setp.lt.s32 %p1, %r1, 1; @%p1 bra END; ";
  const std::string second = "setp.ge.s32 %p2, %r1, 9; @%p2 bra END; st.global.u32 [%rd3], %r1;\n";
  for (const std::string& body : {
           first + "add.s32 %r3, %r1, 1; " + second + "END: st.global.u32 [%rd3+4], %r3;",  // read
           first + "ld.global.u32 %r3, [%rd3]; " + second + "END:",  // it may be a fault
           first + "st.global.u32 [%rd3], %r1; " + second + "END:",  // seen by others
           first + "add.cc.u32 %r3, %r1, 1; " + second + "END:",     // the carry
           first + "@%p1 add.s32 %r3, %r1, 1; " + second + "END:",   // a guard of its own
           first + "setp.lt.s32 %p1, %r1, 5; " + second + "END:",    // what the first asked for
           first + "bar.sync 0; " + second + "END:",                 // all have to come
           first + "activemask.b32 %r3; " + second + "END:",         // who is here
           first + "\nHERE: " + second + "END: @%p1 bra HERE;",      // others come here
           first + second + "\nHERE: add.s32 %r4, %r4, 1;\nEND: @%p1 bra HERE;",
           "setp.lt.s32 %p1, %r1, 1; @%p1 bra OTHER; " + second +
               "OTHER: add.s32 %r4, %r4, 1;\nEND:",
           "\nTOP: add.s32 %r3, %r3, 2; " + first + "add.s32 %r3, %r3, 1; " + second +
               "END: setp.lt.s32 %p3, %r3, 9; @%p3 bra TOP;",
       })
    EXPECT_EQ(joined(body).find("or.pred"), std::string::npos) << body;
}

class Chains {
 public:
  explicit Chains(uint32_t seed) : random_(seed) {}

  std::string body() {
    std::string out = "ld.param.u32 %r3, [n]; xor.b32 %r4, %r1, %r3; mov.u32 %r5, 3;";
    out += "mov.u32 %r6, 0; mov.u32 %r7, 7; mov.u32 %r8, 0; setp.lt.u32 %p1, %r1, 5;";
    out += "setp.lt.u32 %p2, %r4, 20; mov.pred %p3, %p1; mov.pred %p4, %p2; mov.pred %p5, %p2;";
    out += "mov.u32 %r12, %r1; mov.u32 %r13, %r4; mov.u32 %r14, 9; mov.u32 %r15, 30;\n";
    if (one_of(2)) out += "\nTOP: ";
    const bool loops = out.ends_with("TOP: ");
    for (uint32_t part = 0; part < 3; ++part) {
      const uint32_t count = 2 + one_of(8);
      for (uint32_t i = 0; i < count; ++i) out += statement(part);
      out += fmt::format("\nL{}: ", part);
    }
    if (loops) out += "add.u32 %r8, %r8, 1; setp.lt.u32 %p9, %r8, 3; @%p9 bra TOP;\n";
    for (uint32_t i = 0; i < 5; ++i)
      out += fmt::format("st.global.u32 [%rd3+{}], %r{};", i * 4, i + 3);
    return out +
           "selp.u32 %r9, 1, 0, %p1; selp.u32 %r10, 1, 0, %p2; selp.u32 %r11, 1, 0, %p3;"
           "mad.lo.u32 %r9, %r10, 2, %r9; mad.lo.u32 %r9, %r11, 4, %r9;"
           "st.global.u32 [%rd3+20], %r9;";
  }

 private:
  uint32_t one_of(uint32_t count) { return static_cast<uint32_t>(random_()) % count; }
  // Those that are stored at the end, and those that nobody else reads.
  std::string any() { return fmt::format("%r{}", one_of(3) ? 12 + one_of(4) : 3 + one_of(5)); }
  std::string statement(uint32_t part) {
    const uint32_t p = 1 + one_of(5);
    switch (one_of(5)) {
      case 0:
        return fmt::format("add.u32 {}, {}, {};", any(), any(), any());
      case 1:
        return fmt::format("setp.lt.u32 %p{}, {}, {};", p, any(), one_of(40));
      case 2:
        return fmt::format("@{}%p{} bra L{};", one_of(2) ? "!" : "", p,
                           part + (one_of(4) ? 0 : one_of(3 - part)));
      case 3:
        return fmt::format("xor.b32 {}, {}, {}; and.b32 {}, {}, 63;", any(), any(), any(), any(),
                           any());
      default:
        return fmt::format("setp.gt.u32 %p{}, {}, {}; @%p{} bra L{};", p, any(), one_of(40), p,
                           part);
    }
  }

  std::mt19937 random_;
};

TEST(Branches, OfRandomProgramsDoAsEachByItself) {
  uint32_t joins = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::string body = Chains(seed).body();
    joins += joined(body).find("or.pred") != std::string::npos;
    std::vector<uint32_t> plain(8 * 64), watched(8 * 64);
    const auto launch = [&](Session& session, std::vector<uint32_t>& out) {
      return session
          .launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(out, "out"), uint32_t{seed % 50})
          .text;
    };
    Session session(text_of(body));
    ASSERT_EQ(launch(session, plain), "") << body;
    Watched each(text_of(body), kInstructionEvents);
    ASSERT_EQ(launch(each.session, watched), "");
    ASSERT_FALSE(each.recorder.instructions.empty());
    ASSERT_EQ(plain, watched) << seed << '\n' << body;
  }
  EXPECT_GT(joins, 30u);
}

}  // namespace
}  // namespace kiln::engine
