// SPDX-License-Identifier: Apache-2.0
// What do the checkers of kiln sanitize make of events? Recorded ones: no kernel runs here.
#include <gtest/gtest.h>

#include "report/findings.h"
#include "results/suppress.h"
#include "watch/sanitize/memory_checker.h"
#include "watch/sanitize/objects.h"
#include "watch/sanitize/sanitizer.h"
#include "watch/sanitize/sync_checker.h"

namespace kiln::watch {
namespace {

using namespace engine;
using results::Finding;
using results::Rule;

// A kernel of four instructions in three lines; the last one is inlined from a header.
struct Recorded {
  Recorded() {
    module.files[1] = "/a/k.cu";
    module.files[2] = "/usr/local/cuda/include/header.h";
    program.name = "_Z1kPf";
    program.serial = 7;
    program.module = &module;
    for (uint32_t line : {7u, 7u, 9u, 11u}) {
      Site site;
      site.source.file = 1;
      site.source.line = line;
      site.ptx_line = 20 + static_cast<uint32_t>(program.sites.size());
      site.opcode = "shfl.sync.down.b32";
      program.sites.push_back(site);
    }
    program.sites[3].source = {2, 300, 1, 11, 1};
    program.inlined_calls = {{}, {1, 11, 0}};
    program.shared_variables = {{"_ZZ1kPfE4tile", 16, 128}, {"more", 0, 0}};
    launch.program = &program;
    launch.number = 3;
    launch.grid = {2, 1, 1};
    launch.block = {64, 1, 1};
    launch.shared_bytes = 256;
    launch.dynamic_shared_bytes = 64;
    memory.begin(nullptr, 0, true, heap);
    launch.memory = &memory;
  }
  void begin(std::initializer_list<Sink*> sinks) {
    for (Sink* sink : sinks) sink->on(launch);
  }
  Actor actor(uint32_t site, uint32_t mask, uint32_t warp = 1, uint64_t block = 1) const {
    return {&program, site, block, warp, mask};
  }

  ptx::Module module;
  Program program;
  std::vector<Region> heap{{0x1000, 0x1100, true, ""}};
  MemoryMap memory;
  LaunchEvent launch;
};

// From a function in a header of the user's, which calls one of the toolkit's.
TEST(SiteTable, NamesTheCallsOnTheWayToTheKernel) {
  Recorded r;
  r.module.files[3] = "/a/helpers.cuh";
  r.program.inlined_calls = {{}, {1, 11, 0}, {3, 40, 1}, {2, 280, 2}, {3, 41, 1}, {2, 280, 4}};
  for (uint32_t call : {3u, 3u, 5u}) {
    Site site;
    site.source = {2, 300, 1, 11, call};
    r.program.sites.push_back(site);
  }
  SiteTable table;
  const auto at = [&](uint32_t site) -> const KnownSite& {
    return table[table.id_of(r.actor(site, 1))];
  };
  std::vector<std::pair<std::string, int64_t>> lines;
  for (const auto& each : at(4).stack) lines.emplace_back(each.file, each.line);
  EXPECT_EQ(lines, (std::vector<std::pair<std::string, int64_t>>{
                       {"/a/helpers.cuh", 40}, {"/a/k.cu", 11}, {r.module.file_name(2), 300}}));
  EXPECT_EQ(at(4).line_id, at(5).line_id);
  EXPECT_NE(at(4).line_id, at(6).line_id);
}

TEST(Collector, KeepsOneFindingForAPairOfLines) {
  Recorded r;
  Collector collector;
  r.begin({&collector});
  auto& sites = collector.sites();
  const SiteId a = sites.id_of(r.actor(0, 1)), b = sites.id_of(r.actor(1, 1)),
               c = sites.id_of(r.actor(2, 1));
  EXPECT_NE(a, b);
  EXPECT_EQ(a, sites.id_of(r.actor(0, 2)));
  EXPECT_NE(collector.found(Rule::SharedRace, a, c), nullptr);
  EXPECT_EQ(collector.found(Rule::SharedRace, c, b), nullptr);  // the same lines, turned around
  EXPECT_NE(collector.found(Rule::GlobalRace, a, c), nullptr);
  EXPECT_NE(collector.found(Rule::SharedRace, a, b), nullptr);
  ASSERT_EQ(collector.findings().findings.size(), 3u);
  EXPECT_EQ(collector.findings().findings[0].count, 2);
}

TEST(Collector, IsBoundedAndCountsTheRest) {
  Recorded r;
  Collector collector;
  r.begin({&collector});
  for (size_t i = 0; i < Collector::kMostFindings + 5; ++i)
    collector.found(Rule::Leak, kNoSite, kNoSite, std::to_string(i));
  EXPECT_EQ(collector.findings().findings.size(), Collector::kMostFindings);
  EXPECT_EQ(collector.findings().left_out, 5);
  EXPECT_EQ(collector.findings().by_rule[0].second, int64_t{Collector::kMostFindings} + 5);
}

TEST(Collector, NamesThreadAndTheLineThatTheUserWrote) {
  Recorded r;
  Collector collector;
  r.begin({&collector});
  const Actor by = r.actor(3, 1u << 5);
  const auto place =
      collector.place(collector.sites().id_of(by), who(3, by, 5), "write of 4 bytes");
  EXPECT_EQ(place.kernel, "k(float*)");
  EXPECT_EQ(place.thread, (std::vector<int64_t>{37, 0, 0}));
  EXPECT_EQ(place.block, (std::vector<int64_t>{1, 0, 0}));
  ASSERT_EQ(place.stack.size(), 2u);
  EXPECT_EQ(place.stack[0].line, 11);
  EXPECT_EQ(place.stack[1].line, 300);
}

TEST(Objects, NameSharedVariablesWithTheirIndex) {
  Recorded r;
  EXPECT_EQ(indexed_text_of(shared_object(r.launch, 24, 4)), "shared variable 'tile'[2]");
  EXPECT_EQ(indexed_text_of(shared_object(r.launch, 196, 4)), "shared variable 'more'[1]");
  EXPECT_EQ(text_of(global_object(r.memory, 0x1004, 4)), "an allocation of 256 bytes");
}

TEST(MemoryChecker, GoesOnBehindABadAddress) {
  Recorded r;
  Collector collector;
  MemoryChecker checker(collector);
  r.begin({&collector, &checker});
  FaultEvent fault;
  fault.kind = FaultKind::Bounds;
  fault.by = r.actor(0, 1);
  fault.address = 0x1108;
  fault.bytes = 4;
  EXPECT_TRUE(collector.recovers(fault));
  checker.recovers(fault);
  checker.recovers(fault);
  ASSERT_EQ(collector.findings().findings.size(), 1u);
  const Finding& finding = collector.findings().findings[0];
  EXPECT_EQ(finding.rule, "out-of-bounds");
  EXPECT_EQ(finding.count, 2);
  EXPECT_EQ(finding.notes[0],
            "it is element 66 of an allocation of 256 bytes, which has 64 of this size");
}

TEST(MemoryChecker, TellsFreedMemoryFromMemoryThatNeverWas) {
  Recorded r;
  Collector collector;
  MemoryChecker checker(collector);
  r.begin({&collector, &checker});
  HostEvent free;
  free.kind = HostKind::Free;
  free.to.at = 0x5000;
  free.width = 64;
  free.call = "cudaFree";
  checker.on(free);
  FaultEvent fault;
  fault.kind = FaultKind::Bounds;
  fault.by = r.actor(0, 1);
  fault.address = 0x5010;
  fault.bytes = 4;
  checker.recovers(fault);
  free.code = 1;
  checker.on(free);
  free.to.at = 0x7000;
  checker.on(free);
  std::vector<std::string> rules;
  for (const Finding& each : collector.findings().findings) rules.push_back(each.rule);
  EXPECT_EQ(rules, (std::vector<std::string>{"use-after-free", "double-free", "invalid-free"}));
}

SyncEvent arrival(const Actor& by) {
  SyncEvent event;
  event.by = by;
  event.aligned = true;
  return event;
}
SyncEvent completion(uint64_t block) {
  SyncEvent event;
  event.by.block = block;
  event.completed = true;
  return event;
}

struct Synced : Recorded {
  Synced() { begin({&collector, &checker}); }
  std::vector<std::string> rules() {
    std::vector<std::string> out;
    for (const Finding& each : collector.findings().findings) out.push_back(each.rule);
    return out;
  }
  Collector collector;
  SyncChecker checker{collector};
};

TEST(SyncChecker, TakesLanesThatArriveOneAfterTheOtherForOne) {
  Synced s;
  s.checker.on(arrival(s.actor(2, 0xffff, 0)));
  s.checker.on(arrival(s.actor(2, kFullMask, 1)));
  s.checker.on(arrival(s.actor(2, 0xffff0000, 0)));
  s.checker.on(completion(1));
  EXPECT_EQ(s.rules(), std::vector<std::string>());
}

TEST(SyncChecker, FindsABarrierInTwoBranches) {
  Synced s;
  s.checker.on(arrival(s.actor(0, 0xffff, 0)));
  s.checker.on(arrival(s.actor(2, 0xffff0000, 0)));
  s.checker.on(arrival(s.actor(2, kFullMask, 1)));
  s.checker.on(completion(1));
  EXPECT_EQ(s.rules(), std::vector<std::string>{"divergent-barrier"});
}

TEST(SyncChecker, FindsABarrierBehindAnEarlyReturn) {
  Synced s;
  s.checker.on(ExitEvent{s.actor(0, 0xff000000, 1)});
  s.checker.on(arrival(s.actor(2, kFullMask, 0)));
  s.checker.on(arrival(s.actor(2, 0x00ffffff, 1)));
  s.checker.on(completion(1));
  EXPECT_EQ(s.rules(), std::vector<std::string>{"divergent-barrier"});
  s.checker.on(ExitEvent{s.actor(0, 0x00ffffff, 1)});
  s.checker.on(arrival(s.actor(3, kFullMask, 0)));
  s.checker.on(completion(1));
  EXPECT_EQ(s.rules().back(), "barrier-after-exit");
}

FaultEvent deadlock_of(uint64_t block, const std::vector<Waiter>& waiters) {
  FaultEvent fault;
  fault.kind = FaultKind::Deadlock;
  fault.by.block = block;
  fault.waiters = &waiters;
  return fault;
}

// In whichever order the two come: together, or one after the other and then a deadlock.
TEST(SyncChecker, CountsThatDifferAreOneFindingInEitherOrder) {
  auto counted = [](const Actor& by, uint32_t count) {
    SyncEvent event = arrival(by);
    event.expected = count;
    return event;
  };
  Synced together;
  together.checker.on(counted(together.actor(0, kFullMask, 0), 64));
  together.checker.on(counted(together.actor(2, kFullMask, 1), 32));
  together.checker.on(completion(1));
  EXPECT_EQ(together.rules(), std::vector<std::string>{"barrier-count"});

  Synced apart;
  apart.checker.on(counted(apart.actor(2, kFullMask, 1), 32));
  apart.checker.on(completion(1));
  apart.checker.on(counted(apart.actor(0, kFullMask, 0), 64));
  std::vector<Waiter> waiters(1);
  waiters[0].by = apart.actor(0, kFullMask, 0);
  const FaultEvent fault = deadlock_of(1, waiters);
  apart.collector.recovers(fault);
  apart.checker.recovers(fault);
  EXPECT_EQ(apart.rules(), std::vector<std::string>{"barrier-count"});
}

TEST(Collector, AdviceOfADeadlockFitsWhatIsWaitedFor) {
  Synced s;
  std::vector<Waiter> waiters(2);
  waiters[0].by = s.actor(0, 1, 0);
  waiters[1].by = s.actor(2, 1, 1);
  waiters[1].waits_for = WaitsFor::Memory;
  s.collector.recovers(deadlock_of(1, waiters));
  ASSERT_EQ(s.rules(), std::vector<std::string>{"deadlock"});
  EXPECT_TRUE(s.collector.findings().findings[0].advice.starts_with("write the value"));
}

TEST(SyncChecker, ChecksMasksAndSources) {
  Synced s;
  int8_t sources[kWarpSize];
  for (int8_t& source : sources) source = -1;
  SyncEvent event;
  event.kind = SyncKind::Exchange;
  event.completed = true;
  event.by = s.actor(0, 0xff);
  event.expected = 0xf0;  // lanes 0 to 3 are not in it
  s.checker.on(event);
  event.by = s.actor(2, 0xff);
  event.expected = kFullMask;  // lanes 8 to 31 live, and are elsewhere
  s.checker.on(event);
  event.by = s.actor(3, 0xffff);
  event.expected = 0xffff;
  event.sources = sources;
  sources[0] = 1;
  sources[15] = 16;  // the end of a reduction: nobody uses it
  s.checker.on(event);
  EXPECT_EQ(s.rules(), (std::vector<std::string>{"mask-without-caller", "missing-member"}));
  sources[0] = 20;  // now no lane reads a good value
  s.checker.on(event);
  EXPECT_EQ(s.rules().back(), "inactive-source");
}

TEST(SyncChecker, CountsArrivalsOfMbarriers) {
  Synced s;
  MbarrierEvent event;
  event.by = s.actor(0, 1);
  event.address = kSharedWindow | 8;
  event.step = MbarrierStep::Arrive;
  event.count = 1;
  s.checker.on(event);  // before it is set up
  event.step = MbarrierStep::Init;
  event.count = 2;
  s.checker.on(event);
  event.step = MbarrierStep::Arrive;
  event.by = s.actor(2, 1);
  event.count = 3;
  s.checker.on(event);
  EXPECT_EQ(s.rules(), (std::vector<std::string>{"mbarrier-misuse", "mbarrier-misuse"}));
}

TEST(Suppressions, MatchRuleKernelAndLine) {
  results::Findings findings;
  Finding finding;
  finding.rule = "global-race";
  finding.check = "race";
  finding.places.emplace_back();
  finding.places[0].kernel = "histogram(int*)";
  finding.places[0].stack = {{"/a/src/histogram.cu", 41, ""}};
  findings.findings.push_back(finding);
  auto used = [&](std::string_view text) {
    auto all = results::parse_suppressions(text, "file");
    EXPECT_TRUE(all);
    findings.findings[0].suppressed.reset();
    results::suppress(findings, *all);
    return findings.findings[0].suppressed.value_or("-");
  };
  EXPECT_EQ(used("# nothing\n\nrace * histogram.cu:41 only a hint\n"), "only a hint");
  EXPECT_EQ(used("global-race hist src/histogram.cu known\n"), "known");
  EXPECT_EQ(used("global-race hist togram.cu known\n"), "-");
  EXPECT_EQ(used("sync * * known\nrace other * known\nrace * histogram.cu:42 known\n"), "-");
  EXPECT_FALSE(results::parse_suppressions("race * *\n", "file"));
  EXPECT_FALSE(results::parse_suppressions("rcae * * why\n", "file"));
}

TEST(Findings, AreReadAsTheyWereWritten) {
  Recorded r;
  Collector collector;
  r.begin({&collector});
  const Actor by = r.actor(0, 1);
  Finding* finding = collector.found(Rule::SharedRace, collector.sites().id_of(by));
  finding->places.push_back(collector.place(1, who(3, by, 0), "write of 4 bytes"));
  finding->object = shared_object(r.launch, 24, 4);
  const Json json = to_json(collector.findings());
  const auto read = results::read_findings(json, "it");
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), json);
  results::Findings both = *read;
  results::merge(both, *read);
  ASSERT_EQ(both.findings.size(), 1u);
  EXPECT_EQ(both.findings[0].count, 2);
  const Json sarif = Json::parse(report::findings_sarif(both, "/a", "/a/t.cu"));
  const Json& result = sarif["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "shared-race");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "k.cu");
}

TEST(Sanitizer, NamesTheChecksThatExist) {
  std::string problem;
  EXPECT_EQ(checkers_named("memory,memory", &problem).size(), 1u);
  EXPECT_EQ(problem, "");
  checkers_named("memroy", &problem);
  EXPECT_NE(problem.find("no check 'memroy'"), std::string::npos);
}

}  // namespace
}  // namespace kiln::watch
