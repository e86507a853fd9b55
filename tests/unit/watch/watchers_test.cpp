// SPDX-License-Identifier: Apache-2.0
// What do watchers make of events? RecordedRun ones: no kernel runs here.
#include <gtest/gtest.h>

#include "base/json.h"
#include "watch/fanout.h"
#include "watch/line_counts.h"
#include "watch/trace.h"

namespace kiln::watch {
namespace {

using namespace engine;

// A kernel of three instructions, two of them of one line.
struct RecordedRun {
  RecordedRun() {
    module.files[1] = "k.cu";
    program.name = "_Z1kPf";
    program.module = &module;
    for (uint32_t line : {7u, 7u, 9u}) {
      Site site;
      site.source.file = 1;
      site.source.line = line;
      site.ptx_line = 20 + static_cast<uint32_t>(program.sites.size());
      program.sites.push_back(site);
    }
  }
  Actor actor(uint32_t site, uint32_t mask) const { return {&program, site, 2, 1, mask}; }
  LaunchEvent launch(bool ended) const {
    LaunchEvent event;
    event.program = &program;
    event.number = 3;
    event.grid = event.block = {4, 1, 1};
    event.ended = ended;
    return event;
  }

  ptx::Module module;
  Program program;
};

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out.push_back(Json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

TEST(AccessTrace, WritesALineForEachAccess) {
  RecordedRun r;
  std::string text;
  int ended = 0;
  AccessTrace trace([&](std::string_view line) { text += line; }, [&] { ++ended; }, 10);
  trace.on(r.launch(false));
  AccessEvent run;
  run.by = r.actor(0, 0xf);
  run.space = ptx::Space::Global;
  run.bytes = 4;
  run.shape = AddressShape::Run;
  run.base = 4096;
  run.step = 8;
  trace.on(run);
  const uint64_t addresses[kWarpSize] = {(uint64_t{1} << 56) + 16, 0, (uint64_t{1} << 56) + 32};
  AccessEvent gather;
  gather.by = r.actor(2, 0b101);
  gather.space = ptx::Space::Generic;
  gather.kind = AccessKind::Atomic;
  gather.strength = Strength::AcquireRelease;
  gather.bytes = 8;
  gather.addresses = addresses;
  trace.on(gather);
  EXPECT_EQ(ended, 0);
  trace.on(r.launch(true));
  EXPECT_EQ(ended, 1) << "behind the last line of a launch";
  const std::vector<Json> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["kernel"], "k(float*)");
  EXPECT_EQ(lines[1]["at"], "k.cu:7");
  EXPECT_EQ(lines[1]["kind"], "load");
  EXPECT_EQ(lines[1]["space"], "global");
  EXPECT_EQ(lines[1]["address"], 4096);
  EXPECT_EQ(lines[1]["step"], 8);
  EXPECT_EQ(lines[1]["lanes"], "0000000f");
  EXPECT_FALSE(lines[1].contains("order"));
  EXPECT_EQ(lines[2]["at"], "k.cu:9");
  EXPECT_EQ(lines[2]["space"], "shared") << "the address says so";
  EXPECT_EQ(lines[2]["order"], "acq_rel");
  EXPECT_EQ(lines[2]["addresses"], (Json{16, 32}));
  EXPECT_EQ(lines[3]["written"], 2);
  EXPECT_EQ(lines[3]["left_out"], 0);
}

TEST(AccessTrace, CountsWhatItLeavesOut) {
  RecordedRun r;
  std::string text;
  AccessTrace trace([&](std::string_view line) { text += line; }, [] {}, 2);
  AccessEvent event;
  event.by = r.actor(0, 1);
  event.shape = AddressShape::Uniform;
  trace.on(r.launch(false));
  for (int i = 0; i < 5; ++i) trace.on(event);
  trace.on(r.launch(true));
  const std::vector<Json> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3]["left_out"], 3);
}

TEST(AccessTrace, ARowOfABlockIsItsLanes) {
  RecordedRun r;
  std::string text;
  AccessTrace trace([&](std::string_view line) { text += line; }, [] {}, 10);
  AccessEvent event;
  event.by = r.actor(0, 0x30003);
  event.shape = AddressShape::Rows;
  event.base = 1000;
  event.step = 4;
  event.row_lanes = 16;
  event.row_step = 64;
  trace.on(event);
  EXPECT_EQ(lines_of(text)[0]["addresses"], (Json{1000, 1004, 1064, 1068}));
}

TEST(LineCounts, AddsUpTheInstructionsOfALine) {
  RecordedRun r;
  LineCounts::Table seen;
  LineCounts counts([&](const LineCounts::Table& table) { seen = table; });
  for (int i = 0; i < 3; ++i) counts.on(InstructionEvent{r.actor(0, 0xff), kFullMask});
  counts.on(InstructionEvent{r.actor(1, 1), kFullMask});
  counts.on(InstructionEvent{r.actor(2, 0), kFullMask});
  counts.on(r.launch(true));
  counts.on(InstructionEvent{r.actor(2, 3), kFullMask});
  counts.on(r.launch(true));
  const auto& lines = seen.at("k(float*)");
  EXPECT_EQ(lines.at("k.cu:7").warps, 4u);
  EXPECT_EQ(lines.at("k.cu:7").lanes, 25u);
  EXPECT_EQ(lines.at("k.cu:9").warps, 2u);
  EXPECT_EQ(lines.at("k.cu:9").lanes, 2u);
  const Json json = Json::parse(to_json(seen));
  EXPECT_EQ(json["functions"][0]["lines"][0]["thread_instructions"], 25);
}

struct Counting : Sink {
  Counting(uint32_t bits, int* accesses, int* syncs)
      : bits_(bits), accesses_(accesses), syncs_(syncs) {}
  uint32_t wanted() const override { return bits_; }
  bool can_merge() const override { return bits_ == kSyncEvents; }
  void on(const AccessEvent&) override { ++*accesses_; }
  void on(const SyncEvent&) override { ++*syncs_; }
  void on(const ExitEvent&) override { ++*syncs_; }
  void on(const BranchEvent&) override { ++*accesses_; }
  void on(const CallEvent&) override { ++*accesses_; }
  void on(const MbarrierEvent&) override { ++*accesses_; }
  uint32_t bits_;
  int *accesses_, *syncs_;
};

TEST(Fanout, PassesEventsToThoseThatWantThem) {
  int accesses = 0, syncs = 0;
  Fanout fanout;
  EXPECT_TRUE(fanout.empty());
  fanout.add(std::make_unique<Counting>(kSyncEvents, &accesses, &syncs));
  EXPECT_TRUE(fanout.can_merge());
  fanout.add(std::make_unique<Counting>(kAccessEvents | kSyncEvents, &accesses, &syncs));
  EXPECT_FALSE(fanout.can_merge());
  EXPECT_EQ(fanout.wanted(), uint32_t{kAccessEvents | kSyncEvents});
  fanout.on(AccessEvent{});
  fanout.on(SyncEvent{});
  EXPECT_EQ(accesses, 1);
  EXPECT_EQ(syncs, 2);
  fanout.on(ExitEvent{});
  EXPECT_EQ(syncs, 4) << "lanes that end belong to the syncs";
  fanout.on(BranchEvent{});
  fanout.on(CallEvent{});
  fanout.on(MbarrierEvent{});
  EXPECT_EQ(accesses, 1) << "nobody wants these";
  fanout.add(std::make_unique<Counting>(kControlEvents | kMbarrierEvents, &accesses, &syncs));
  fanout.on(BranchEvent{});
  fanout.on(CallEvent{});
  fanout.on(MbarrierEvent{});
  EXPECT_EQ(accesses, 4);
}

}  // namespace
}  // namespace kiln::watch
