// SPDX-License-Identifier: Apache-2.0
// Does a sink get every event, once, with the lanes and addresses that the kernel used?
#include <algorithm>
#include <map>
#include <thread>

#include "engine/machine/schedule.h"
#include "recorder.h"

namespace kiln::engine {
namespace {

constexpr const char* kIndex =
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
    "add.u64 %rd3, %rd1, %rd2;\n";

TEST(Watch, NeighboursArriveAsBaseAndStep) {
  Watched w(kernel_text(
      "u64 p", std::string(kIndex) + "ld.global.u32 %r2, [%rd3+128];\nst.global.u32 [%rd3], %r2;"));
  std::vector<uint32_t> memory(96, 7);
  uint32_t* at = w.session.allow(memory, "memory");
  ASSERT_EQ(w.session.launch("k", {}, at).code, 0);
  ASSERT_EQ(w.recorder.accesses.size(), 2u);
  const AccessEvent &load = w.recorder.accesses[0], &store = w.recorder.accesses[1];
  EXPECT_EQ(load.kind, AccessKind::Load);
  EXPECT_EQ(load.shape, AddressShape::Run);
  EXPECT_EQ(load.base, reinterpret_cast<uint64_t>(at) + 128);
  EXPECT_EQ(load.step, 4u);
  EXPECT_EQ(load.bytes, 4u);
  EXPECT_EQ(load.by.mask, kFullMask);
  EXPECT_EQ(load.space, ptx::Space::Global);
  EXPECT_EQ(store.kind, AccessKind::Store);
  EXPECT_EQ(store.base, reinterpret_cast<uint64_t>(at));
  EXPECT_EQ(store.by.program->sites[store.by.site].mnemonic, "st");
}

TEST(Watch, AGatherArrivesByLanes) {
  Watched w(kernel_text("u64 p", std::string(kIndex) +
                                     "ld.global.u32 %r2, [%rd3];\nmul.wide.u32 %rd4, %r2, 4;\n"
                                     "add.u64 %rd5, %rd1, %rd4;\nst.global.u32 [%rd5], %r1;"));
  std::vector<uint32_t> memory(64);
  for (uint32_t i = 0; i < 32; ++i) memory[i] = 32 + (i * 7) % 32;
  uint32_t* at = w.session.allow(memory, "memory");
  ASSERT_EQ(w.session.launch("k", {}, at).code, 0);
  ASSERT_EQ(w.recorder.accesses.size(), 2u);
  EXPECT_EQ(w.recorder.accesses[1].shape, AddressShape::Lanes);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(w.recorder.addresses[1][i],
              reinterpret_cast<uint64_t>(at) + 4 * uint64_t{32 + (i * 7) % 32});
  }
}

TEST(Watch, OnlyLanesWhoseGuardHoldsAccess) {
  Watched w(kernel_text("u64 p", std::string(kIndex) +
                                     "setp.lt.u32 %p1, %r1, 5;\n@%p1 st.global.u32 [%rd3], %r1;\n"
                                     "setp.gt.u32 %p2, %r1, 99;\n@%p2 st.global.u32 [%rd3], %r1;"));
  std::vector<uint32_t> memory(32, 100);
  ASSERT_EQ(w.session.launch("k", {}, w.session.allow(memory, "memory")).code, 0);
  ASSERT_EQ(w.recorder.accesses.size(), 1u);
  EXPECT_EQ(w.recorder.accesses[0].by.mask, 0x1fu);
  EXPECT_EQ(memory[4], 4u);
  EXPECT_EQ(memory[5], 100u);
  // Both stores were issued, whoever took part.
  uint32_t stores = 0, lanes = 0;
  for (const InstructionEvent& each : w.recorder.instructions) {
    if (each.by.program->sites[each.by.site].mnemonic != "st") continue;
    ++stores;
    EXPECT_EQ(each.issued, kFullMask);
    lanes += static_cast<uint32_t>(std::popcount(each.by.mask));
  }
  EXPECT_EQ(stores, 2u);
  EXPECT_EQ(lanes, 5u);
}

TEST(Watch, EveryInstructionOfALoopIsCounted) {
  Watched w(kernel_text("u64 p",
                        "mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\n"
                        "setp.lt.u32 %p1, %r1, 10;\n@%p1 bra L;\n"
                        "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], %r1;"),
            kInstructionEvents);
  std::vector<uint32_t> memory(1);
  ASSERT_EQ(w.session.launch("k", {}, w.session.allow(memory, "memory")).code, 0);
  EXPECT_EQ(memory[0], 10u);
  std::map<std::string_view, int> counts;
  for (const auto& each : w.recorder.instructions) {
    ++counts[each.by.program->sites[each.by.site].mnemonic];
  }
  EXPECT_EQ(counts["add"], 10);
  EXPECT_EQ(counts["setp"], 10);
  EXPECT_EQ(counts["bra"], 10);
  EXPECT_EQ(counts["st"], 1);
  EXPECT_EQ(counts["ret"], 1);
  EXPECT_TRUE(w.recorder.accesses.empty()) << "nobody wanted them";
}

TEST(Watch, ABarrierArrivesOnceForEachWarpAndCompletesOnce) {
  Watched w(kernel_text("u64 p", "bar.sync 0;\nbar.sync 3, 96;"), kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {{2, 1, 1}, {96, 1, 1}}, nullptr).code, 0);
  std::map<std::pair<uint64_t, uint32_t>, std::pair<int, int>> seen;  // arrivals, completions
  for (const SyncEvent& each : w.recorder.syncs) {
    ASSERT_EQ(each.kind, SyncKind::Block);
    auto& [arrived, completed] = seen[{each.by.block, each.id}];
    ++(each.completed ? completed : arrived);
  }
  ASSERT_EQ(seen.size(), 4u);
  for (const auto& [where, counts] : seen) EXPECT_EQ(counts, std::make_pair(3, 1)) << where.second;
}

// Lanes that come later park the first ones: the event comes when all are there, once.
TEST(Watch, AWarpsSyncArrivesOnceAlsoWhereLanesWaited) {
  Watched w(kernel_text("u64 p",
                        "mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\n"
                        "add.u32 %r2, %r1, 1;\nL:\nbar.warp.sync 0xffffffff;"),
            kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  uint32_t lanes = 0;
  for (const SyncEvent& each : w.recorder.syncs) {
    EXPECT_EQ(each.kind, SyncKind::Warp);
    EXPECT_EQ(each.expected, kFullMask);
    EXPECT_EQ(lanes & each.by.mask, 0u) << "a lane passes once";
    lanes |= each.by.mask;
  }
  EXPECT_EQ(lanes, kFullMask);
}

TEST(Watch, AtomicsSayTheirOrderAndWhatTheyRead) {
  Watched w(kernel_text("u64 p",
                        "ld.param.u64 %rd1, [p];\n"
                        "atom.global.acq_rel.cta.add.u32 %r2, [%rd1], 1;\n"
                        "red.global.add.u32 [%rd1], 1;\nfence.acq_rel.gpu;\n"
                        "ld.acquire.sys.global.u32 %r3, [%rd1];"));
  std::vector<uint32_t> memory(1, 100);
  ASSERT_EQ(w.session.launch("k", {}, w.session.allow(memory, "memory")).code, 0);
  EXPECT_EQ(memory[0], 164u);
  ASSERT_EQ(w.recorder.accesses.size(), 3u);
  EXPECT_EQ(w.recorder.accesses[0].kind, AccessKind::Atomic);
  EXPECT_EQ(w.recorder.accesses[0].strength, Strength::AcquireRelease);
  EXPECT_EQ(w.recorder.accesses[0].scope, Scope::Block);
  EXPECT_EQ(w.recorder.accesses[1].kind, AccessKind::Reduction);
  EXPECT_EQ(w.recorder.accesses[1].strength, Strength::Relaxed);
  EXPECT_EQ(w.recorder.accesses[1].scope, Scope::Gpu);
  EXPECT_EQ(w.recorder.accesses[2].strength, Strength::Acquire);
  EXPECT_EQ(w.recorder.accesses[2].scope, Scope::System);
  ASSERT_EQ(w.recorder.fences.size(), 1u);
  EXPECT_EQ(w.recorder.fences[0].scope, Scope::Gpu);
  ASSERT_EQ(w.recorder.values.size(), 64u) << "32 of the atomic, 32 of the acquire";
  std::vector<uint64_t> read(w.recorder.values.begin(), w.recorder.values.begin() + 32);
  std::sort(read.begin(), read.end());
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(read[i], 100 + i);
  EXPECT_EQ(w.recorder.values[40], 164u);
}

TEST(Watch, AnAsynchronousCopyReadsAndWrites) {
  Watched w(kernel_text("u64 p", ".shared .align 16 .b8 tile[512];\n" + std::string(kIndex) +
                                     "mov.u32 %r3, tile;\nmad.lo.u32 %r4, %r1, 4, %r3;\n"
                                     "cp.async.ca.shared.global [%r4], [%rd3], 4;\n"
                                     "cp.async.commit_group;\ncp.async.wait_group 0;"));
  std::vector<uint32_t> memory(32, 3);
  ASSERT_EQ(w.session.launch("k", {}, w.session.allow(memory, "memory")).code, 0);
  ASSERT_EQ(w.recorder.accesses.size(), 2u);
  for (const AccessEvent& each : w.recorder.accesses) EXPECT_TRUE(each.async);
  EXPECT_EQ(w.recorder.accesses[0].space, ptx::Space::Shared);
  EXPECT_EQ(w.recorder.accesses[0].kind, AccessKind::Store);
  EXPECT_EQ(w.recorder.accesses[1].kind, AccessKind::Load);
  ASSERT_EQ(w.recorder.asyncs.size(), 3u);
  EXPECT_EQ(w.recorder.asyncs[2].step, AsyncStep::Wait);
}

// 41 words in copies of 16 bytes: ten whole ones, one of 4 bytes at the end of the memory, and
// lanes beyond it that copy nothing.
constexpr const char* kCopyOf41Words =
    ".shared .align 16 .b8 tile[512];\nld.param.u64 %rd1, [p];\nld.param.u64 %rd4, [q];\n"
    "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 16;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "add.u64 %rd5, %rd4, %rd2;\nmov.u32 %r3, tile;\nmad.lo.u32 %r4, %r1, 16, %r3;\n"
    "mul.lo.s32 %r5, %r1, 4;\nsub.s32 %r6, 41, %r5;\nmax.s32 %r6, %r6, 0;\n"
    "min.s32 %r6, %r6, 4;\nmul.lo.s32 %r7, %r6, 4;\n"
    "cp.async.cg.shared.global [%r4], [%rd3], 16, %r7;\ncp.async.wait_all;\n"
    "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r4];\n"
    "st.global.v4.b32 [%rd5], {%r10, %r11, %r12, %r13};";

TEST(Watch, AnAsynchronousCopyReadsOnlyTheBytesOfItsSource) {
  const std::string text = kernel_text("u64 p, u64 q", kCopyOf41Words);
  std::vector<uint32_t> memory(41), out(128, 1);
  for (uint32_t i = 0; i < 41; ++i) memory[i] = 100 + i;
  for (bool watched : {false, true}) {
    Watched w(text);
    if (!watched) w.session.device.sink = nullptr;
    const LaunchOutcome outcome =
        w.session.launch("k", {}, w.session.allow(memory, "p"), w.session.allow(out, "q"));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i < 41 ? 100 + i : 0) << i;
    if (!watched) continue;
    ASSERT_GE(w.recorder.accesses.size(), 3u);
    EXPECT_EQ(w.recorder.accesses[1].bytes, 16u);
    EXPECT_EQ(w.recorder.accesses[1].by.mask, 0x3ffu);
    EXPECT_EQ(w.recorder.accesses[2].bytes, 4u);
    EXPECT_EQ(w.recorder.accesses[2].by.mask, 0x400u);
  }
  std::vector<uint32_t> shorter(40);
  Session session(text);
  EXPECT_NE(session.launch("k", {}, session.allow(shorter, "p"), session.allow(out, "q")).code, 0)
      << "the 41st word is outside";
}

TEST(Watch, AnAsynchronousCopyOfATailIsAlignedAsAWholeOne) {
  Session session(
      kernel_text("u64 p",
                  ".shared .align 16 .b8 tile[16];\nld.param.u64 %rd1, [p];\nmov.u32 %r4, tile;\n"
                  "cp.async.cg.shared.global [%r4], [%rd1+4], 16, 4;\ncp.async.wait_all;"));
  std::vector<uint64_t> memory(64);
  EXPECT_EQ(session.launch("k", {}, session.allow(memory, "p")).code, kMisalignedAddress);
}

TEST(Watch, AFunctionBehindAPointerIsWatchedToo) {
  const std::string text = module_text(
      ".func f(.param .b64 a)\n{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [a];\n"
      "st.global.u32 [%rd1], 5;\nret;\n}\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<5>;\nld.param.u64 %rd1, [p];\n"
      "mov.u64 %rd2, f;\n{\n.param .b64 x;\nst.param.b64 [x], %rd1;\n"
      "prototype: .callprototype _ (.param .b64 _);\ncall %rd2, (x), prototype;\n}\nret;\n}\n");
  Watched w(text, kAccessEvents);
  std::vector<uint32_t> memory(1);
  const LaunchOutcome outcome = w.session.launch("k", {}, w.session.allow(memory, "memory"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(memory[0], 5u);
  ASSERT_EQ(w.recorder.accesses.size(), 1u);
  EXPECT_EQ(w.recorder.accesses[0].by.program->name, "f");
}

TEST(Watch, BlocksAndLaunchesBeginAndEnd) {
  Watched w(kernel_text("u64 p", ""), kBlockEvents);
  ASSERT_EQ(w.session.launch("k", {{3, 2, 1}, {64, 1, 1}}, nullptr).code, 0);
  ASSERT_EQ(w.recorder.blocks.size(), 12u);
  ASSERT_EQ(w.recorder.launches.size(), 2u);
  EXPECT_FALSE(w.recorder.launches[0].ended);
  EXPECT_TRUE(w.recorder.launches[1].ended);
}

// A sink that cannot merge is not thread-safe: launches of two threads take turns.
TEST(Watch, LaunchesOfTwoThreadsDoNotMeetInASink) {
  Watched w(kernel_text("u64 p", "ld.param.u64 %rd1, [p];\nld.global.u32 %r2, [%rd1];"),
            kAccessEvents);
  std::vector<uint32_t> memory(1);
  uint32_t* at = w.session.allow(memory, "memory");
  auto work = [&] {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(w.session.launch("k", {{4, 1, 1}}, at).code, 0);
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(w.recorder.accesses.size(), 2u * 200 * 4);
  ASSERT_EQ(w.recorder.launches.size(), 2u * 2 * 200);
  for (size_t i = 0; i < w.recorder.launches.size(); ++i)
    EXPECT_EQ(w.recorder.launches[i].ended, i % 2 == 1);
}

// How often each event stands for an access, where a sink takes groups.
std::vector<uint32_t> groups_of(const std::string& between, uint32_t bits) {
  Watched w(
      kernel_text("u64 p", std::string(kIndex) +
                               ".shared .align 4 .b8 other[4];\nmov.u64 %rd9, %rd3;\n"
                               "ld.global.u32 %r2, [%rd9];\nld.global.u32 %r3, [%rd9+128];\n" +
                               between +
                               "ld.global.u32 %r4, [%rd9+256];\n"
                               "add.u32 %r5, %r2, %r3;\nadd.u32 %r6, %r5, %r4;\n"
                               "st.global.u32 [%rd3], %r6;"),
      bits);
  std::vector<uint32_t> memory(160);
  for (uint32_t i = 0; i < memory.size(); ++i) memory[i] = 1u << i / 32;
  EXPECT_EQ(w.session.launch("k", {}, w.session.allow(memory, "memory")).code, 0);
  const bool moved = between.find("add.u64 %rd9") != between.npos;
  EXPECT_EQ(memory[5], moved ? 1u + 2 + 8 : 7u);
  std::vector<uint32_t> out;
  for (const AccessEvent& each : w.recorder.accesses) {
    if (each.kind == AccessKind::Load && each.space != ptx::Space::Shared)
      out.push_back(each.repeats);
    EXPECT_EQ(each.repeat_step, each.repeats > 1 ? 128 : 0);
  }
  return out;
}

TEST(Watch, LoadsOfAnUnrolledLoopArriveTogetherWhereThatIsAskedFor) {
  using Counts = std::vector<uint32_t>;
  constexpr uint32_t kBits = kAccessEvents | kGroupedAccesses;
  EXPECT_EQ(groups_of("", kAccessEvents), (Counts{1, 1, 1}));
  EXPECT_EQ(groups_of("", kBits), Counts{3});
  EXPECT_EQ(groups_of("mul.lo.u32 %r8, %r1, 3;\n", kBits), Counts{3});
  for (const char* ends : {"bar.sync 0;\n", "membar.gl;\n", "st.shared.u32 [other], %r1;\n",
                           "ld.volatile.shared.u32 %r8, [other];\n", "next:\n",
                           "add.u64 %rd9, %rd9, 128;\n", "bar.warp.sync 0xffffffff;\n"})
    EXPECT_EQ(groups_of(ends, kBits), (Counts{2, 1})) << ends;
}

// ---- Schedules

std::vector<uint64_t> order_of_stores(const char* schedule) {
  setenv("KILN_ENGINE_SCHEDULE", schedule, 1);
  Watched w(kernel_text("u64 p",
                        "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"
                        "st.global.u32 [%rd1], %r1;"),
            kAccessEvents);
  std::vector<uint32_t> memory(1);
  EXPECT_EQ(w.session.launch("k", {{5, 1, 1}, {128, 1, 1}}, w.session.allow(memory, "m")).code, 0);
  unsetenv("KILN_ENGINE_SCHEDULE");
  std::vector<uint64_t> out;
  for (const AccessEvent& each : w.recorder.accesses)
    out.push_back(each.by.block * 4 + each.by.warp);
  return out;
}

TEST(Schedule, ZeroIsTheOrderOfTheNumbers) {
  const std::vector<uint64_t> order = order_of_stores("0");
  EXPECT_EQ(order.size(), 20u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Schedule, OthersRunAllInAnOrderOfTheirOwn) {
  const std::vector<uint64_t> first = order_of_stores("1"), again = order_of_stores("1"),
                              other = order_of_stores("2");
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  std::vector<uint64_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, order_of_stores("0"));
  EXPECT_NE(first, sorted);
}

TEST(Schedule, IsAPermutationForEveryCount) {
  for (uint64_t schedule : {1u, 2u, 77u}) {
    for (uint64_t count = 1; count < 200; ++count) {
      std::vector<bool> seen(count), in_windows(count);
      for (uint64_t i = 0; i < count; ++i) {
        seen[scheduled(i, count, schedule)] = true;
        const uint64_t at = scheduled_in(16, i, count, schedule);
        EXPECT_EQ(at / 16, i / 16) << "windows keep their order";
        in_windows[at] = true;
      }
      EXPECT_TRUE(std::find(seen.begin(), seen.end(), false) == seen.end()) << count;
      EXPECT_TRUE(std::find(in_windows.begin(), in_windows.end(), false) == in_windows.end());
    }
  }
}

// As in a scan by decoupled look-back. No more than 64 blocks of a thread are under way: in an
// order of the whole grid all of them could wait for one that is not.
TEST(Schedule, ABlockMayWaitForAnEarlierOne) {
  constexpr uint32_t kBlocks = 300;
  setenv("KILN_ENGINE_STEP_LIMIT", "10000000", 1);
  for (const char* schedule : {"0", "1", "7"}) {
    for (const char* threads : {"1", "3"}) {
      setenv("KILN_ENGINE_SCHEDULE", schedule, 1);
      setenv("KILN_ENGINE_THREADS", threads, 1);
      for (uint32_t cluster : {1u, 4u}) {
        Session session(kernel_text("u64 p", R"(
          ld.param.u64 %rd1, [p];
          mov.u32 %r1, %ctaid.x;
          mad.wide.u32 %rd2, %r1, 4, %rd1;
          mov.u32 %r2, 1;
          setp.eq.u32 %p1, %r1, 0;
          @%p1 bra READY;
          WAIT:
          ld.volatile.global.u32 %r2, [%rd2+-4];
          setp.eq.u32 %p2, %r2, 0;
          @%p2 bra WAIT;
          add.u32 %r2, %r2, 1;
          READY:
          st.volatile.global.u32 [%rd2], %r2;
        )"));
        std::vector<uint32_t> flags(kBlocks);
        const LaunchOutcome outcome =
            session.launch("k", {{kBlocks, 1, 1}, {32, 1, 1}, 0, 0, {cluster, 1, 1}},
                           session.allow(flags, "flags"));
        EXPECT_EQ(outcome.code, 0) << schedule << " " << threads << " " << outcome.text;
        EXPECT_EQ(flags[kBlocks - 1], kBlocks);
      }
    }
  }
  for (const char* name : {"SCHEDULE", "THREADS", "STEP_LIMIT"})
    unsetenv((std::string("KILN_ENGINE_") + name).c_str());
}

}  // namespace
}  // namespace kiln::engine
