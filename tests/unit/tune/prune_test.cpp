// SPDX-License-Identifier: Apache-2.0
#include "tune/prune.h"

#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

CodeFacts facts() {
  CodeFacts made;
  made.kernels = 1;
  made.registers = 128;
  made.threads = 256;
  made.shared_bytes = 1000;
  made.blocks = 2;
  made.limiter = "registers";
  return made;
}

TEST(Prune, WhatFitsIsMeasured) { EXPECT_EQ(why_pruned(facts(), {}), ""); }

TEST(Prune, NothingIsPrunedThatIsNotKnown) {
  CodeFacts none;
  none.spill_bytes = 100;
  EXPECT_EQ(why_pruned(none, {}), "");
  EXPECT_EQ(dump(to_json(none)), "{}");
}

TEST(Prune, Spills) {
  CodeFacts spilled = facts();
  spilled.spill_bytes = 40;
  EXPECT_EQ(why_pruned(spilled, {}), "40 bytes of registers spill to local memory");
  Rules rules;
  rules.most_spill_bytes = 40;
  EXPECT_EQ(why_pruned(spilled, rules), "");
  spilled.spill_bytes = 4000;
  rules.most_spill_bytes = -1;
  EXPECT_EQ(why_pruned(spilled, rules), "");
}

TEST(Prune, Registers) {
  Rules rules;
  rules.most_registers = 96;
  EXPECT_EQ(why_pruned(facts(), rules), "128 registers per thread");
}

TEST(Prune, BlocksThatFit) {
  Rules rules;
  rules.least_blocks = 3;
  EXPECT_EQ(why_pruned(facts(), rules),
            "only 2 blocks fit on a multiprocessor, limited by registers");
  CodeFacts large = facts();
  large.blocks = 0;
  large.limiter = "too large";
  EXPECT_EQ(why_pruned(large, {}),
            "no block of 256 threads with 128 registers each fits on a multiprocessor");
}

TEST(Prune, SharedMemory) {
  CodeFacts large = facts();
  large.blocks = 0;
  large.shared_bytes = 300000;
  large.limiter = "shared memory, 232448 bytes per block";
  EXPECT_EQ(why_pruned(large, {}),
            "a block needs 300000 bytes of shared memory, the GPU has 232448 bytes per block");
}

TEST(Prune, AFormulaMustHaveItsValues) {
  Rules rules;
  rules.shared = *Expression::parse("BLOCK * 4");
  EXPECT_FALSE(code_facts("/proc/self/exe", 90, rules, {"OTHER=1"}));
  auto known = code_facts("/proc/self/exe", 90, rules, {"BLOCK=1", "BLOCK=2"});
  ASSERT_TRUE(known) << format(known.error());
  EXPECT_EQ(known->kernels, 0u);
}

TEST(Prune, AFileThatIsNotThereIsAnError) { EXPECT_FALSE(code_facts("/nowhere.so", 90, {}, {})); }

}  // namespace
}  // namespace kiln::tune
