// SPDX-License-Identifier: Apache-2.0
// What does a user read when an index of a View is out of bounds? And is a good index never
// reported?
#include <gmock/gmock.h>

#include "harness.h"

namespace kiln::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

// What kiln/view.h writes.
std::string check(const std::string& index, const std::string& size, int dimension = 0,
                  const std::string& data = "%rd1") {
  const std::string name = "kiln_bounds_" + std::to_string(dimension);
  return "{.reg .pred " + name + "; .reg .b64 kiln_base; setp.ge.u64 " + name + ", " + index +
         ", " + size + "; mov.b64 kiln_base, " + data + ";}\n";
}

// %rd1: the pointer p; %rd2: the size n; %rd3: %tid.x.
std::string checking(const std::string& body) {
  return kernel_text("u64 p, u64 n",
                     "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [n]; mov.u32 %r1, %tid.x; "
                     "cvt.u64.u32 %rd3, %r1;\n" +
                         body);
}

constexpr Shape3 kWarp{{1, 1, 1}, {32, 1, 1}};

TEST(ViewCheck, TellsIndexSizeDimensionAndTensor) {
  for (bool for_rows : {false, true}) {
    Session session(checking(check("%rd3", "%rd2", 2)));
    session.for_rows = for_rows;
    std::vector<float> x(64), y(64);
    session.allow(y, "y");
    const float* p = session.allow(x, "x") + 3;  // anywhere inside
    EXPECT_EQ(session.launch("k", kWarp, p, uint64_t{32}).code, 0);
    LaunchOutcome outcome = session.launch("k", kWarp, p, uint64_t{30});
    EXPECT_EQ(outcome.code, kIllegalAddress);
    EXPECT_THAT(outcome.text,
                HasSubstr("Index out of bounds: index 30 of 30 in dimension 2 of tensor 'x'\n"));
    EXPECT_THAT(outcome.text, HasSubstr("by thread (30,0,0) in block (0,0,0)"));
  }
}

TEST(ViewCheck, EveryWayAnIndexIsKept) {
  struct Case {
    const char* setup;  // of %rd4, the index
    uint64_t size;
    const char* wanted;
  };
  const Case kCases[] = {
      {"mov.u64 %rd4, -1;", 8, "index -1 of 8"},         // a scalar
      {"sub.s64 %rd4, %rd3, 4;", 32, "index -4 of 32"},  // rises from below 0
      {"mul.lo.s64 %rd4, %rd3, -2; add.s64 %rd4, %rd4, 60;", 60,
       "index 60 of 60"},  // written twice: lanes
      {"mul.lo.s64 %rd5, %rd3, -2; add.s64 %rd4, %rd5, 61;", 60, "index 61 of 60"},  // falls
      {"and.b64 %rd4, %rd3, 7;", 7, "index 7 of 7"},                                 // lanes
      {"shl.b64 %rd4, %rd3, 59;", ~uint64_t{0} >> 1,
       "index -9223372036854775808 of"},        // wraps around
      {"mov.u64 %rd4, 0;", 0, "index 0 of 0"},  // an empty tensor
  };
  for (const Case& c : kCases) {
    for (bool for_rows : {false, true}) {
      Session session(checking(c.setup + check("%rd4", "%rd2")));
      session.for_rows = for_rows;
      std::vector<float> x(8);
      LaunchOutcome outcome = session.launch("k", kWarp, session.allow(x, "x"), c.size);
      EXPECT_EQ(outcome.code, kIllegalAddress) << c.setup;
      EXPECT_THAT(outcome.text, HasSubstr(c.wanted)) << c.setup;
    }
  }
}

TEST(ViewCheck, TakesImmediatesAndSizesOfEachLane) {
  Session good(checking(check("7", "8") + check("0", "%rd2") + "add.s64 %rd4, %rd3, 1;" +
                        check("%rd3", "%rd4")));
  std::vector<float> x(8);
  EXPECT_EQ(good.launch("k", kWarp, good.allow(x, "x"), uint64_t{1}).code, 0);
  Session bad(checking("sub.s64 %rd4, 16, %rd3;" + check("8", "%rd4")));
  LaunchOutcome outcome = bad.launch("k", kWarp, bad.allow(x, "x"), uint64_t{1});
  EXPECT_THAT(outcome.text, HasSubstr("index 8 of 8"));
  EXPECT_THAT(outcome.text, HasSubstr("by thread (8,0,0)"));
}

TEST(ViewCheck, InactiveLanesAreNotChecked) {
  for (const char* index : {"%rd3", "%rd4"}) {  // base and step, lanes
    for (bool for_rows : {false, true}) {
      Session session(checking(
          "and.b64 %rd4, %rd3, 31; setp.ge.u64 %p1, %rd3, %rd2; setp.lt.u64 %p2, %rd3, 2;\n"
          "@%p1 bra END; @%p2 bra END;\n" +
          check(index, "%rd2") + "END:"));
      session.for_rows = for_rows;
      std::vector<float> x(8);
      const float* p = session.allow(x, "x");
      for (uint64_t size : {3, 20, 31, 32}) {
        LaunchOutcome outcome = session.launch("k", kWarp, p, size);
        EXPECT_EQ(outcome.code, 0) << outcome.text;
      }
    }
  }
  Session session(
      checking("setp.lt.u64 %p1, %rd3, 5;\n@%p1 bra END;\n" + check("%rd3", "%rd2") + "END:"));
  std::vector<float> x(8);
  LaunchOutcome outcome = session.launch("k", kWarp, session.allow(x, "x"), uint64_t{4});
  EXPECT_THAT(outcome.text, HasSubstr("index 5 of 4")) << "of the lanes that are active, the first";
}

TEST(ViewCheck, ManyWarpsAndBlocksRunWithoutAReport) {
  Session session(
      checking("mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;\n"
               "cvt.u64.u32 %rd4, %r4; setp.ge.u64 %p1, %rd4, %rd2; @%p1 bra END;\n" +
               check("%rd4", "%rd2") + "END:"));
  std::vector<float> x(8);
  const float* p = session.allow(x, "x");
  for (uint64_t size : {1, 100, 256, 1000}) {
    LaunchOutcome outcome = session.launch("k", {{4, 1, 1}, {256, 1, 1}}, p, size);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
}

// out(i) = a(i) + b(i): three checks of one index, which run as one.
TEST(ViewCheck, EachOfSeveralChecksOfOneIndexIsReported) {
  for (const char* setup :
       {"mov.u64 %rd6, %rd3;", "and.b64 %rd6, %rd3, 31;", "mov.u64 %rd6, 31;"}) {
    for (uint32_t bad = 0; bad < 4; ++bad) {
      std::string body = std::string("ld.param.u64 %rd8, [nb]; ld.param.u64 %rd9, [nc];\n") + setup;
      body += "shl.b64 %rd10, %rd6, 2; add.s64 %rd11, %rd1, %rd10;\n.loc 1 1 1\n" +
              check("%rd6", "%rd2", 0);
      body += "ld.global.f32 %f1, [%rd11];\n.loc 1 2 1\n" + check("%rd6", "%rd8", 1) +
              "ld.global.f32 %f2, [%rd11];\n";
      body += "add.f32 %f3, %f1, %f2;\n.loc 1 3 1\n" + check("%rd6", "%rd9", 2) +
              "st.global.f32 [%rd11], %f3;\n";
      std::string text = checking(body);
      text.replace(text.find("u64 n)"), 6, "u64 n, .param .u64 nb, .param .u64 nc)");
      text.insert(text.find(".visible"), ".file 1 \"a.cu\"\n");
      Session session(text);
      std::vector<float> x(32, 1.0f);
      uint64_t sizes[] = {40, 33, 35};
      if (bad < 3) sizes[bad] = 20;
      LaunchOutcome outcome =
          session.launch("k", kWarp, session.allow(x, "x"), sizes[0], sizes[1], sizes[2]);
      if (bad == 3) {
        EXPECT_EQ(outcome.code, 0) << outcome.text;
        EXPECT_EQ(x[31], 2.0f);
        continue;
      }
      const std::string wanted = " of 20 in dimension " + std::to_string(bad) +
                                 " of tensor 'x'\n  at k in a.cu:" + std::to_string(bad + 1) + "\n";
      EXPECT_THAT(outcome.text, HasSubstr(wanted)) << setup;
    }
  }
}

TEST(ViewCheck, ChecksOfOneIndexAreApartWhereItOrTheSizeChanges) {
  // The index of the second check is another one; the label is jumped to, past the first.
  Session index(checking("mov.u64 %rd4, 1;" + check("%rd4", "%rd2") + "add.s64 %rd4, %rd4, 6;" +
                         check("%rd4", "%rd2", 1)));
  std::vector<float> x(8);
  const float* p = index.allow(x, "x");
  EXPECT_EQ(index.launch("k", kWarp, p, uint64_t{8}).code, 0);
  EXPECT_THAT(index.launch("k", kWarp, p, uint64_t{7}).text,
              HasSubstr("index 7 of 7 in dimension 1"));
  Session label(checking("setp.lt.u64 %p1, %rd3, 16;\n@%p1 bra L;\n" + check("%rd3", "40") +
                         "L:\n" + check("%rd3", "%rd2", 1)));
  p = label.allow(x, "x");
  EXPECT_EQ(label.launch("k", kWarp, p, uint64_t{32}).code, 0);
  EXPECT_THAT(label.launch("k", kWarp, p, uint64_t{9}).text,
              HasSubstr("index 9 of 9 in dimension 1"));
  Session loop(checking("mov.u64 %rd4, 0;\nL:\n" + check("%rd4", "%rd2") +
                        "add.s64 %rd5, %rd4, 1;\n" + check("%rd4", "9", 1) +
                        "mov.u64 %rd4, %rd5;\nsetp.lt.u64 %p1, %rd4, 8;\n@%p1 bra L;"));
  p = loop.allow(x, "x");
  EXPECT_EQ(loop.launch("k", kWarp, p, uint64_t{8}).code, 0);
  EXPECT_THAT(loop.launch("k", kWarp, p, uint64_t{7}).text,
              HasSubstr("index 7 of 7 in dimension 0"));
}

TEST(ViewCheck, SaysWhatItKnowsOfOtherData) {
  auto text = [](const std::string& setup, auto... more) {
    Session session(checking(setup + check("9", "4", 1, "%rd4")));
    std::vector<float> made(8), none;
    session.allow(made, "a tensor made by the op");
    session.regions.push_back({reinterpret_cast<void*>(0x7000), 0, "empty", true});
    void* own = session.heap.allocate(4000, AllocationKind::Device);
    const uint64_t pointers[] = {reinterpret_cast<uint64_t>(made.data()),
                                 reinterpret_cast<uint64_t>(own), 0x7000, 0};
    std::string said = session.launch("k", kWarp, pointers[(more + ...)], uint64_t{4}).text;
    session.heap.release(own);
    return said;
  };
  EXPECT_THAT(text("mov.u64 %rd4, %rd1;", 0),
              HasSubstr("in dimension 1 of a tensor made by the op\n"));
  EXPECT_THAT(text("add.s64 %rd4, %rd1, 16;", 1), HasSubstr(", in the allocation at 0x"));
  EXPECT_THAT(text("add.s64 %rd4, %rd1, 16;", 1), HasSubstr("of size 4,000 bytes\n"));
  EXPECT_THAT(text("mov.u64 %rd4, %rd1;", 2), HasSubstr("of tensor 'empty'\n"));
  EXPECT_THAT(text("mov.u64 %rd4, %rd1;", 3), HasSubstr("in dimension 1 of the View at 0x0\n"));
  EXPECT_THAT(
      text(".shared .b32 s[8]; mov.u32 %r2, s; cvt.u64.u32 %rd5, %r2; cvta.shared.u64 %rd4, %rd5;",
           0),
      HasSubstr("in dimension 1 of a View of shared memory\n"));
  EXPECT_THAT(text(".local .b32 l[8]; mov.u64 %rd5, l; cvta.local.u64 %rd4, %rd5;", 0),
              HasSubstr("in dimension 1 of a View of local memory\n"));
  EXPECT_THAT(text("shl.b64 %rd5, %rd3, 2; add.s64 %rd4, %rd1, %rd5;", 0),
              Not(HasSubstr("'a tensor")))
      << "an address of each lane";
}

TEST(ViewCheck, InADeviceFunctionItNamesKernelAndFunction) {
  Session session(module_text(
      ".func f(.param .b64 n) {\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [n];\n" +
      check("5", "%rd1", 0, "%rd1") +
      "ret;\n}\n.visible .entry k(.param .u64 n) {\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [n];\n"
      "{ .param .b64 a; st.param.b64 [a], %rd1; call f, (a); }\nret;\n}\n"));
  EXPECT_EQ(session.launch("k", kWarp, uint64_t{6}).code, 0);
  LaunchOutcome outcome = session.launch("k", kWarp, uint64_t{5});
  EXPECT_THAT(outcome.text, HasSubstr("index 5 of 5"));
  EXPECT_THAT(outcome.text, HasSubstr("at k in PTX line"));
  EXPECT_THAT(outcome.text, HasSubstr(" in f\n"));
}

}  // namespace
}  // namespace kiln::engine
