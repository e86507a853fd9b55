// SPDX-License-Identifier: Apache-2.0
// Does a sink see where lanes go: branches, calls, returns, ends?
#include <bit>
#include <map>

#include "recorder.h"

namespace kiln::engine {
namespace {

TEST(WatchControl, ABranchSaysWhoTakesIt) {
  Watched w(kernel_text("u64 p", R"(
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 bra A;
    add.u32 %r2, %r1, 1;
    A:
    @!%p1 bra B;
    B:
    setp.lt.u32 %p2, %r1, 99;
    @%p2 bra C;
    C:
    bra D;
    D:
  )"),
            kControlEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  ASSERT_EQ(w.recorder.branches.size(), 4u);
  const auto& b = w.recorder.branches;
  EXPECT_EQ(b[0].by.mask, kFullMask);
  EXPECT_EQ(b[0].taken, 0x1fu);
  EXPECT_EQ(b[0].paths, 2u);
  EXPECT_EQ(b[1].taken, ~0x1fu) << "the lanes have met again";
  EXPECT_EQ(b[2].taken, kFullMask);
  EXPECT_EQ(b[2].paths, 1u);
  EXPECT_EQ(b[3].taken, kFullMask) << "without a guard";
  EXPECT_EQ(b[3].by.program->sites[b[3].by.site].mnemonic, "bra");
  EXPECT_TRUE(w.recorder.instructions.empty()) << "nobody wanted them";
}

TEST(WatchControl, ALoopBranchesOnceARound) {
  Watched w(kernel_text("u64 p", R"(
    mov.u32 %r1, %laneid;
    mov.u32 %r2, 0;
    L:
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra L;
  )"),
            kControlEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  // Lane l goes round l times and leaves: one lane fewer in each round.
  ASSERT_EQ(w.recorder.branches.size(), 32u);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(std::popcount(w.recorder.branches[i].by.mask), static_cast<int>(32 - i));
    EXPECT_EQ(std::popcount(w.recorder.branches[i].taken), static_cast<int>(31 - i));
    EXPECT_EQ(w.recorder.branches[i].paths, i == 31 ? 1u : 2u);
  }
}

// The lanes that go elsewhere come back to the Op; the event stands before it.
TEST(WatchControl, AnIndexedBranchIsOneEventWithItsPaths) {
  Watched w(kernel_text("u64 p", R"(
    mov.u32 %r1, %laneid;
    and.b32 %r2, %r1, 3;
    ts: .branchtargets A, B, C, D;
    brx.idx %r2, ts;
    A: bra E;
    B: bra E;
    C: bra E;
    D:
    E:
  )"),
            kControlEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  uint32_t indexed = 0;
  for (const BranchEvent& each : w.recorder.branches) {
    if (mnemonic_of(each.by) != "brx") continue;
    ++indexed;
    EXPECT_EQ(each.by.mask, kFullMask);
    EXPECT_EQ(each.taken, kFullMask);
    EXPECT_EQ(each.paths, 4u);
  }
  EXPECT_EQ(indexed, 1u);
}

const std::string kCalls = module_text(
    ".func f(.param .b64 a)\n{\n.reg .b64 %rd<3>;\nret;\n}\n"
    ".func g(.param .b64 a)\n{\n.reg .b64 %rd<3>;\nret;\n}\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<5>;\n.reg .pred %q<3>;\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %laneid;\nsetp.lt.u32 %q1, %r1, 8;\n"
    "mov.u64 %rd2, f;\nmov.u64 %rd3, g;\nselp.b64 %rd4, %rd2, %rd3, %q1;\n"
    "{\n.param .b64 x;\nst.param.b64 [x], %rd1;\ncall f, (x);\n}\n"
    "{\n.param .b64 x;\nst.param.b64 [x], %rd1;\n"
    "prototype: .callprototype _ (.param .b64 _);\ncall %rd4, (x), prototype;\n}\nret;\n}\n");

TEST(WatchControl, CallsAndReturnsNameTheFunction) {
  Watched w(kCalls, kControlEvents);
  const LaunchOutcome outcome = w.session.launch("k", {}, nullptr);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto& c = w.recorder.calls;
  ASSERT_EQ(c.size(), 6u) << "one direct call, and two groups through a pointer";
  EXPECT_EQ(c[0].by.program->name, "k");
  EXPECT_EQ(c[0].callee->name, "f");
  EXPECT_FALSE(c[0].returns);
  EXPECT_EQ(c[0].by.mask, kFullMask);
  EXPECT_EQ(c[1].by.program->name, "f");
  EXPECT_TRUE(c[1].returns);
  std::map<std::string, std::pair<uint32_t, uint32_t>> masks;  // entered, left
  for (size_t i = 2; i < c.size(); ++i) {
    auto& [entered, left] = masks[c[i].callee->name];
    (c[i].returns ? left : entered) |= c[i].by.mask;
  }
  EXPECT_EQ(masks["f"], std::make_pair(0xffu, 0xffu));
  EXPECT_EQ(masks["g"], std::make_pair(~0xffu, ~0xffu));
}

TEST(WatchControl, LanesEndOnce) {
  Watched w(kernel_text("u64 p",
                        "mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 4;\n@%p1 exit;\n"
                        "setp.gt.u32 %p2, %r1, 40;\n@%p2 exit;\nbar.sync 0;"),
            kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {{2, 1, 1}, {64, 1, 1}}, nullptr).code, 0);
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> ended;
  uint32_t early = 0;
  for (const ExitEvent& each : w.recorder.exits) {
    uint32_t& mask = ended[{each.by.block, each.by.warp}];
    EXPECT_EQ(mask & each.by.mask, 0u) << "a lane ends once";
    mask |= each.by.mask;
    early += mnemonic_of(each.by) == "exit";
  }
  EXPECT_EQ(early, 4u) << "one group of each warp";
  ASSERT_EQ(ended.size(), 4u);
  for (const auto& [who, mask] : ended) EXPECT_EQ(mask, kFullMask);
}

TEST(WatchControl, AnInstructionHasItsWholeOpcode) {
  Watched w(kernel_text("u64 p", "add.rn.ftz.f32 %f1, %f2, %f3;"), kInstructionEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  ASSERT_EQ(w.recorder.instructions.size(), 2u);
  const Actor& by = w.recorder.instructions[0].by;
  EXPECT_EQ(by.program->sites[by.site].opcode, "add.rn.ftz.f32");
  EXPECT_EQ(w.recorder.instructions[1].by.program->sites[by.site + 1].opcode, "ret");
}

// All kinds at once: the kernel computes what it computes unwatched, and every run is the same.
std::vector<std::string> everything(const char* schedule) {
  setenv("KILN_ENGINE_SCHEDULE", schedule, 1);
  Watched w(kernel_text("u64 p", R"(
    .shared .align 8 .b8 tile[512];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r9, tile;
    mad.lo.u32 %r2, %r1, 4, %r9;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    and.b32 %r3, %r1, 31;
    setp.lt.u32 %p1, %r3, 7;
    @%p1 bra A;
    ld.shared.u32 %r4, [%r2];
    atom.global.add.u32 %r5, [%rd1], %r4;
    A:
    membar.gl;
    shfl.sync.bfly.b32 %r6, %r1, 1, 31, 0xffffffff;
    bar.sync 0;
  )"));
  std::vector<uint32_t> memory(1);
  EXPECT_EQ(w.session.launch("k", {{3, 1, 1}, {128, 1, 1}}, w.session.allow(memory, "m")).code, 0);
  unsetenv("KILN_ENGINE_SCHEDULE");
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < 128; ++i) wanted += i % 32 < 7 ? 0 : i;
  EXPECT_EQ(memory[0], 3 * wanted);
  std::vector<std::string> out;
  const auto add = [&](const char* kind, const auto& events) {
    for (const auto& each : events)
      out.push_back(std::string(kind) + " " + std::to_string(each.by.site) + " " +
                    std::to_string(each.by.block) + " " + std::to_string(each.by.warp) + " " +
                    std::to_string(each.by.mask));
  };
  add("access", w.recorder.accesses);
  add("instruction", w.recorder.instructions);
  add("branch", w.recorder.branches);
  add("sync", w.recorder.syncs);
  add("fence", w.recorder.fences);
  add("exit", w.recorder.exits);
  return out;
}

TEST(WatchControl, AScheduleGivesTheSameEventsEachTime) {
  const auto first = everything("0"), other = everything("5");
  EXPECT_EQ(first, everything("0"));
  EXPECT_EQ(other, everything("5"));
  EXPECT_NE(first, other);
}

}  // namespace
}  // namespace kiln::engine
