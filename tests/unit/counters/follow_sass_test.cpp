// SPDX-License-Identifier: Apache-2.0
// Do counts follow what ptxas made of the PTX? The cases were seen in code of ptxas for sm_90, and
// counted on an H200.
#include "counters/follow_sass.h"

#include <gtest/gtest.h>

namespace kiln::counters {
namespace {

using results::Metric;

// A kernel of accesses, one per line of PTX from line 1 on.
struct Kernel {
  SassOfKernel sass;
  results::CounterProgram program;
  results::CounterLaunch launch;

  results::CounterSite& add(const std::string& ptx) {
    sass.ptx.push_back(ptx);
    results::CounterInstruction instruction;
    instruction.ptx_line = static_cast<uint32_t>(sass.ptx.size());
    instruction.ptx = ptx;
    program.instructions.push_back(instruction);
    results::CounterSite site;
    site.instruction = static_cast<uint32_t>(program.instructions.size() - 1);
    site.counts[Metric::inst_executed] = 100;
    launch.sites.push_back(site);
    return launch.sites.back();
  }
  // `passes` of one access if it has 4, 8 and 16 bytes.
  void shared_load(const std::string& ptx, std::array<uint64_t, 3> passes = {1, 2, 4}) {
    results::CounterSite& site = add(ptx);
    site.counts[Metric::shared_ld_requests] = 100;
    site.counts[Metric::shared_ld_wavefronts] = 100 * passes[0];
    site.counts[Metric::shared_ld_ideal_wavefronts] = 100;
    site.counts[Metric::shared_ld_conflicts] = 100 * (passes[0] - 1);
    site.other =
        results::OtherWidths{4, 100 * passes[0], 100, 100 * passes[1], 200, 100 * passes[2], 400};
  }
  void global_load(const std::string& ptx) {
    results::CounterSite& site = add(ptx);
    site.counts[Metric::global_ld_requests] = 100;
    site.counts[Metric::global_ld_sectors] = 400;
  }
  void found(uint32_t line, Access kind, std::vector<uint32_t> bytes) {
    sass.lines[line].bytes[static_cast<size_t>(kind)] = std::move(bytes);
    ++sass.lines[line].instructions;
  }
  uint64_t total(Metric metric) const {
    uint64_t sum = 0;
    for (const results::CounterSite& site : launch.sites) sum += site.counts[metric];
    return sum;
  }
  results::SassChange follow(const std::string& of) {
    const auto changes = follow_sass(sass, program, &launch);
    EXPECT_TRUE(changes);
    for (const results::SassChange& change : *changes)
      if (change.of == of) return change;
    return {};
  }
};

TEST(FollowSass, LoadsThatWereJoinedAreOne) {
  Kernel kernel;
  for (const char* ptx : {"ld.shared.f32 %f1, [%r1];", "ld.shared.f32 %f2, [%r1+4];",
                          "ld.shared.f32 %f3, [%r1+8];", "ld.shared.f32 %f4, [%r1+12];"})
    kernel.shared_load(ptx);
  kernel.found(1, Access::SharedLoad, {16});
  const results::SassChange change = kernel.follow("shared loads");
  EXPECT_EQ(kernel.total(Metric::shared_ld_requests), 100u);
  EXPECT_EQ(kernel.total(Metric::shared_ld_wavefronts), 400u);
  EXPECT_EQ(change.ptx, 4u);
  EXPECT_EQ(change.absent, 3u);
  EXPECT_EQ(change.other_width, 1u);
}

TEST(FollowSass, VariablesAreJoinedAsElementsAre) {
  Kernel kernel;
  kernel.shared_load("ld.shared.u32 %r1, [label];");
  kernel.shared_load("ld.shared.f32 %f1, [prediction];");
  kernel.found(1, Access::SharedLoad, {8});
  kernel.follow("shared loads");
  EXPECT_EQ(kernel.total(Metric::shared_ld_requests), 100u);
  EXPECT_EQ(kernel.total(Metric::shared_ld_wavefronts), 200u);
}

// Rows of a padded tile: ptxas unrolls the loop over them, and each row is aligned otherwise.
TEST(FollowSass, CopiesOfAnUnrolledLoopShareTheExecutions) {
  Kernel kernel;
  for (const char* ptx : {"ld.shared.f32 %f1, [%r1];", "ld.shared.f32 %f2, [%r1+4];",
                          "ld.shared.f32 %f3, [%r1+8];", "ld.shared.f32 %f4, [%r1+12];"})
    kernel.shared_load(ptx, {1, 1, 2});
  kernel.found(1, Access::SharedLoad, {16, 4, 8, 4});  // four rows: 16, 4 + 8 + 4, 8 + 8, 4 + 8 + 4
  kernel.found(2, Access::SharedLoad, {8, 8});
  kernel.found(3, Access::SharedLoad, {8});
  kernel.found(4, Access::SharedLoad, {4, 4});
  kernel.follow("shared loads");
  EXPECT_EQ(kernel.total(Metric::shared_ld_requests), 9 * 100 / 4u);
  EXPECT_EQ(kernel.total(Metric::shared_ld_wavefronts), (200 + 8 * 100) / 4u);
}

// ptxas lists both loads under the first one's line.
TEST(FollowSass, LoadsUnderOneLineAreNotLost) {
  Kernel kernel;
  kernel.shared_load("ld.shared.f32 %f1, [%r1];", {4, 8, 16});
  kernel.shared_load("ld.shared.f32 %f2, [%r1+8];", {4, 8, 16});
  kernel.found(1, Access::SharedLoad, {4, 4});
  kernel.follow("shared loads");
  EXPECT_EQ(kernel.total(Metric::shared_ld_wavefronts), 800u);
  EXPECT_EQ(kernel.total(Metric::shared_ld_conflicts), 600u);
}

TEST(FollowSass, ALoadThatIsRedundantIsNone) {
  Kernel kernel;
  for (const char* ptx : {"ld.global.f32 %f1, [%rd1];", "ld.global.f32 %f2, [%rd1+128];",
                          "ld.global.f32 %f3, [%rd1];"})
    kernel.global_load(ptx);
  kernel.found(1, Access::GlobalLoad, {4});
  kernel.found(2, Access::GlobalLoad, {4});
  EXPECT_EQ(kernel.follow("global loads").absent, 1u);
  EXPECT_EQ(kernel.total(Metric::global_ld_requests), 200u);
  EXPECT_EQ(kernel.total(Metric::global_ld_sectors), 800u);
}

TEST(FollowSass, LinesThatTheTableLacksKeepTheirCounts) {
  Kernel kernel;
  kernel.global_load("ld.global.f32 %f1, [%rd1];");
  kernel.sass.lines[1].instructions = 1;
  kernel.follow("global loads");
  EXPECT_EQ(kernel.total(Metric::global_ld_requests), 100u);
}

// An unread atom.and stayed an ATOMG in code that releases locks.
TEST(FollowSass, AtomicsAreWhatTheyAreInSass) {
  for (const bool reduces : {false, true}) {
    Kernel kernel;
    results::CounterSite& site = kernel.add("atom.global.and.b32 %r1, [%rd1], 1;");
    site.counts[reduces ? Metric::global_atom_requests : Metric::global_red_requests] = 100;
    (reduces ? kernel.sass.lines[1].reductions : kernel.sass.lines[1].atomics) = 1;
    kernel.follow("branches");
    EXPECT_EQ(kernel.total(Metric::global_red_requests), reduces ? 100u : 0u);
    EXPECT_EQ(kernel.total(Metric::global_atom_requests), reduces ? 0u : 100u);
  }
}

TEST(FollowSass, ABranchIsThatOfItsLineOrOfTheJumpBehindIt) {
  for (const uint32_t line : {0u, 1u, 2u}) {
    Kernel kernel;
    results::CounterSite& site = kernel.add("@%p1 bra $A;");
    site.counts[Metric::branches] = 100;
    site.counts[Metric::branches_divergent] = 60;
    kernel.add("bra.uni $B;");
    if (line) kernel.sass.lines[line].branches = 1;
    const results::SassChange change = kernel.follow("branches");
    EXPECT_EQ(kernel.total(Metric::branches_divergent), line ? 60u : 0u) << line;
    EXPECT_EQ(change.absent, line ? 0u : 1u) << line;
    EXPECT_EQ(change.added, 0u);
  }
}

TEST(FollowSass, BranchesInsideADivisionAreAdded) {
  Kernel kernel;
  kernel.add("div.rn.f64 %fd1, %fd2, %fd3;");
  kernel.sass.lines[1].branches = 2;
  EXPECT_EQ(kernel.follow("branches").added, 2u);
}

TEST(FollowSass, CodeOfOtherPtxChangesNothing) {
  Kernel kernel;
  kernel.shared_load("ld.shared.f32 %f1, [%r1];");
  kernel.sass.ptx[0] = "st.global.f32 [%rd1], %f1;";
  EXPECT_FALSE(follow_sass(kernel.sass, kernel.program, &kernel.launch));
  EXPECT_EQ(kernel.total(Metric::shared_ld_requests), 100u);
}

}  // namespace
}  // namespace kiln::counters
