// SPDX-License-Identifier: Apache-2.0
// Does the checker find exactly the races that there are, in whatever order a kernel runs? Random
// kernels in random orders, against an oracle that keeps a full vector clock for each thread and
// all accesses, and compares each with each.
#include <algorithm>
#include <map>
#include <random>

#include "race_run.h"

namespace kiln::watch {
namespace {

constexpr uint32_t kBlocks = 3, kWarps = 3, kThreads = kBlocks * kWarps * 32;

constexpr uint32_t kSizes[] = {4, 4, 4, 2, 8, 16, 1};
constexpr uint32_t kMasks[] = {kAll, 0xffffu, 0xffff0000u, 0xff00ffu};

constexpr uint32_t kTwists[] = {0, 1, 4, 31};
constexpr uint32_t kFolds[] = {32, 16, 8, 4};
constexpr uint32_t kEarlier = 50;  // lines of an earlier launch begin behind this

enum class Step { Access, Barrier, WarpSync, Arrive, Wait };
struct Action {
  Step step = Step::Access;
  AccessKind kind = AccessKind::Load;
  uint32_t line = 0, mask = kAll, bytes = 4, id = 0;
  uint64_t base = 0, step_bytes = 0;
  // Lanes are in another order, or in groups at the same places: such events name each address.
  uint32_t twist = 0, fold = 32;
  uint32_t scatter = 0, elements = 0;  // 0: none; else each lane is at one of so many elements
  uint32_t repeats = 1;                // of loads, one behind the other
  uint64_t repeat_step = 0;

  uint64_t address(uint32_t lane) const {
    if (scatter) return base + uint64_t{bytes} * (((lane + 1) * scatter >> 12) % elements);
    return base + step_bytes * ((lane ^ twist) % fold);
  }
};
struct Kernel {
  std::vector<Action> warps[kBlocks][kWarps];

  bool has_named_barrier() const {
    for (const auto& block : warps) {
      for (const auto& actions : block) {
        if (std::ranges::any_of(actions, [](const Action& a) { return a.step == Step::Arrive; }))
          return true;
      }
    }
    return false;
  }
};

// `careful`: elements of its own alone.
Action random_access(std::mt19937& random, uint32_t line, uint32_t block, uint32_t warp,
                     bool careful) {
  auto pick = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Action out;
  if (careful) {
    out.line = line;
    out.kind = pick(2) ? AccessKind::Load : AccessKind::Store;
    out.base = pick(2) ? warp * 256 : kGlobal + (block * kWarps + warp) * 256;
    out.step_bytes = 4;
    out.mask = pick(2) ? kAll >> 16 : kAll << 16;
    return out;
  }
  out.line = line;
  out.kind = pick(8) == 0 ? AccessKind::Atomic : pick(3) ? AccessKind::Load : AccessKind::Store;
  out.bytes = out.kind == AccessKind::Atomic ? 4 : kSizes[pick(7)];
  const bool shared = pick(2);
  // Mostly elements of its own, else nothing would be free of races.
  const uint32_t own = shared ? warp : block * kWarps + warp;
  const uint32_t place = pick(6) ? own : pick(kBlocks * kWarps);
  out.base = (shared ? 0 : kGlobal) + place * 512 % (shared ? 2048 : 1 << 16);
  out.step_bytes = pick(5) == 0 ? 0 : pick(6) == 0 ? 2 * out.bytes : out.bytes;
  if (pick(4) == 0) out.base += uint64_t{out.bytes} * pick(4);
  if (pick(3) == 0) {
    out.twist = kTwists[pick(4)];
    out.fold = kFolds[pick(4)];
  }
  out.mask = pick(3) ? kAll : out.step_bytes ? static_cast<uint32_t>(random()) | 1 : 1u << pick(32);
  return out;
}

Kernel random_kernel(std::mt19937& random) {
  auto pick = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Kernel kernel;
  const bool careful = pick(4) == 0;
  const uint32_t rounds = 1 + pick(3);
  uint32_t next_line = 1;
  for (uint32_t round = 0; round < rounds; ++round) {
    // The same lines in all blocks, as of one source.
    const uint32_t first_line = next_line;
    next_line += 4;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t warp = 0; warp < kWarps; ++warp) {
        auto& out = kernel.warps[block][warp];
        for (uint32_t i = 0; i < 4; ++i) {
          if (pick(4) == 0) continue;
          out.push_back(random_access(random, first_line + i, block, warp, careful));
          if (pick(4)) continue;
          Action sync;
          sync.step = Step::WarpSync;
          sync.mask = kMasks[pick(4)];
          out.push_back(sync);
        }
      }
      // One warp arrives, another waits for it: each barrier once.
      if (!careful && pick(2)) {
        Action meet;
        meet.id = 1 + round;
        const uint32_t from = pick(kWarps);
        meet.step = Step::Arrive;
        auto& arrives = kernel.warps[block][from];
        arrives.insert(arrives.begin() + pick(static_cast<uint32_t>(arrives.size() + 1)), meet);
        meet.step = Step::Wait;
        auto& waits = kernel.warps[block][(from + 1) % kWarps];
        // Behind the barriers of the block that the other has too.
        waits.push_back(meet);
        waits.push_back(random_access(random, first_line + pick(4), block, from, false));
      }
      for (auto& out : kernel.warps[block]) out.push_back({Step::Barrier});
    }
  }
  return kernel;
}

// Reads of whole warps at random words of a few lines, and seldom a write there.
Kernel random_gathers(std::mt19937& random) {
  auto pick = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Kernel kernel;
  const uint32_t rounds = 1 + pick(4), seldom = 8u << pick(5);
  const bool of_blocks = pick(4);  // each block has lines of its own
  for (uint32_t block = 0; block < kBlocks; ++block) {
    for (uint32_t round = 0; round < rounds; ++round) {
      for (auto& out : kernel.warps[block]) {
        for (uint32_t i = pick(4); i > 0; --i) {
          Action action;
          action.kind = pick(seldom) == 0 ? AccessKind::Store : AccessKind::Load;
          const bool reads = action.kind == AccessKind::Load;
          action.line = reads ? 1 + (pick(8) == 0) : 3 + 2 * round + pick(2);
          action.bytes = reads && pick(8) == 0 ? 8 : 4;
          action.mask = reads ? kAll << (pick(4) ? 23 : pick(24)) : 1u << pick(32);
          action.scatter = static_cast<uint32_t>(random()) | 1;
          action.elements = 256 / action.bytes;
          action.base = kGlobal + (of_blocks ? block * 256 : 0);
          out.push_back(action);
          if (pick(6)) continue;
          Action sync;
          sync.step = Step::WarpSync;
          sync.mask = kMasks[pick(4)];
          out.push_back(sync);
        }
      }
      const bool meets = pick(3) != 0;
      for (auto& out : kernel.warps[block]) {
        if (meets) out.push_back({Step::Barrier});
      }
    }
  }
  return kernel;
}

// All warps read the same few lines, in groups of loads too, so that two of them stand for the
// others; then some are ordered, and one writes.
Kernel random_crowds(std::mt19937& random) {
  auto pick = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Kernel kernel;
  const uint32_t rounds = 1 + pick(3);
  const uint64_t base = pick(2) ? kGlobal : 0;
  const bool meets_some = pick(2), has_atomics = pick(3) == 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    Action shared;
    shared.line = 1 + round;
    shared.bytes = 4u << pick(2);
    shared.step_bytes = pick(3) ? shared.bytes : 0;
    shared.base = base + 128 * pick(2);
    shared.repeats = 1 + pick(4);
    shared.repeat_step = shared.step_bytes ? 32 * shared.bytes : shared.bytes;
    if (pick(4) == 0) shared.repeat_step *= 2;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t warp = 0; warp < kWarps; ++warp) {
        auto& out = kernel.warps[block][warp];
        Action action = shared;
        if (pick(3) == 0) action.mask = 1u << warp;
        if (has_atomics && pick(6) == 0) action.kind = AccessKind::Atomic;
        if (action.kind == AccessKind::Atomic) {
          action.line += 10;
          action.repeats = 1;
        }
        if (pick(8)) out.push_back(action);
        if (pick(3)) continue;
        Action sync;
        sync.step = Step::WarpSync;
        sync.mask = kMasks[pick(4)];
        out.push_back(sync);
      }
      if (meets_some) {
        Action meet;
        meet.id = 1 + round;
        meet.step = Step::Arrive;
        const uint32_t from = pick(kWarps), to = (from + 1) % kWarps;
        kernel.warps[block][from].push_back(meet);
        meet.step = Step::Wait;
        kernel.warps[block][to].push_back(meet);
      }
      if (pick(4) == 0) {
        Action write = shared;
        write.kind = pick(3) ? AccessKind::Store : AccessKind::Load;
        write.line = 20 + round;
        write.repeats = 1;
        write.bytes = pick(3) ? 4 : 1;
        write.mask = 1u << pick(32);
        kernel.warps[block][pick(kWarps)].push_back(write);
      }
      const bool meets = pick(3) != 0;
      for (auto& out : kernel.warps[block]) {
        if (meets) out.push_back({Step::Barrier});
      }
    }
  }
  return kernel;
}

using VectorClock = std::vector<uint32_t>;
struct Seen {
  uint32_t thread, when, line, bytes;
  uint64_t address;
  AccessKind kind;
};

// Runs the kernel in a random order, with the checker and the oracle side by side.
class Execution {
 public:
  Execution(const Kernel& kernel, uint64_t seed, RaceRun& checked, uint32_t first_line = 0)
      : kernel_(kernel), random_(seed), checked_(checked), first_line_(first_line) {
    for (uint32_t i = 0; i < kThreads; ++i) clocks_[i].assign(kThreads, 0);
    for (uint32_t i = 0; i < kThreads; ++i) clocks_[i][i] = 1;
    if (kernel.has_named_barrier()) checked.has_named_barrier();
  }

  void run() {
    checked_.launch(kBlocks, kWarps * 32);
    run_blocks(0, kBlocks);
    checked_.end();
  }
  // A block begins when the last one has ended.
  void run_one_by_one() {
    checked_.begin(kBlocks, kWarps * 32);
    const auto first = static_cast<uint32_t>(random_() % kBlocks);
    for (uint32_t i = 0; i < kBlocks; ++i) {
      const uint32_t block = (first + i) % kBlocks;
      checked_.start(block);
      run_blocks(block, block + 1);
      checked_.stop(block);
    }
    checked_.end();
  }
  const Pairs& expected() const { return races_; }

 private:
  void run_blocks(uint32_t begin, uint32_t end) {
    for (;;) {
      std::vector<std::pair<uint32_t, uint32_t>> ready;
      for (uint32_t block = begin; block < end; ++block) {
        for (uint32_t warp = 0; warp < kWarps; ++warp) {
          if (at_[block][warp] < kernel_.warps[block][warp].size() && !waits_[block][warp])
            ready.emplace_back(block, warp);
        }
      }
      if (ready.empty()) break;
      const auto [block, warp] = ready[random_() % ready.size()];
      // A warp often runs on for a while.
      const uint32_t turns = 1 + static_cast<uint32_t>(random_() % 4);
      for (uint32_t i = 0; i < turns && !waits_[block][warp]; ++i) {
        if (at_[block][warp] < kernel_.warps[block][warp].size()) step(block, warp);
      }
    }
  }
  static uint32_t thread(uint32_t block, uint32_t warp, uint32_t lane) {
    return (block * kWarps + warp) * 32 + lane;
  }
  static void join(VectorClock& to, const VectorClock& from) {
    for (uint32_t i = 0; i < kThreads; ++i) to[i] = std::max(to[i], from[i]);
  }
  void meet(const std::vector<uint32_t>& threads) {
    VectorClock all(kThreads, 0);
    for (uint32_t each : threads) join(all, clocks_[each]);
    for (uint32_t each : threads) {
      clocks_[each] = all;
      ++clocks_[each][each];
    }
  }
  std::vector<uint32_t> lanes(uint32_t block, uint32_t warp, uint32_t mask) const {
    std::vector<uint32_t> out;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (mask >> lane & 1) out.push_back(thread(block, warp, lane));
    }
    return out;
  }

  void step(uint32_t block, uint32_t warp) {
    const Action& action = kernel_.warps[block][warp][at_[block][warp]++];
    switch (action.step) {
      case Step::Access:
        access(action, block, warp);
        break;
      case Step::WarpSync:
        checked_.sync_warp(block, warp, action.mask);
        meet(lanes(block, warp, action.mask));
        break;
      case Step::Barrier:
        checked_.arrive(0, block, warp, kAll, true);
        waits_[block][warp] = true;
        if (++arrived_[block] < kWarps) break;
        arrived_[block] = 0;
        checked_.complete(0, block);
        meet(all_of(block));
        for (bool& each : waits_[block]) each = false;
        break;
      case Step::Arrive:
        checked_.arrive(action.id, block, warp, kAll, false);
        for (uint32_t each : lanes(block, warp, kAll)) {
          auto& passed = passed_[{block, action.id}];
          passed.resize(kThreads, 0);
          join(passed, clocks_[each]);
          ++clocks_[each][each];
        }
        arrived_named_[{block, action.id}] |= 1;
        complete_named(block, action.id);
        break;
      case Step::Wait:
        checked_.arrive(action.id, block, warp, kAll, true);
        waits_[block][warp] = true;
        waiter_[{block, action.id}] = warp;
        arrived_named_[{block, action.id}] |= 2;
        complete_named(block, action.id);
        break;
    }
  }
  std::vector<uint32_t> all_of(uint32_t block) const {
    std::vector<uint32_t> out;
    for (uint32_t warp = 0; warp < kWarps; ++warp) {
      for (uint32_t each : lanes(block, warp, kAll)) out.push_back(each);
    }
    return out;
  }
  void complete_named(uint32_t block, uint32_t id) {
    if (arrived_named_[{block, id}] != 3) return;
    checked_.complete(id, block);
    const uint32_t warp = waiter_[{block, id}];
    meet(lanes(block, warp, kAll));
    for (uint32_t each : lanes(block, warp, kAll)) join(clocks_[each], passed_[{block, id}]);
    waits_[block][warp] = false;
  }

  void access(const Action& action, uint32_t block, uint32_t warp) {
    AccessEvent event = checked_.access(action.kind, first_line_ + action.line, block, warp,
                                        action.mask, action.base, action.step_bytes, action.bytes);
    uint64_t addresses[32];
    if (action.twist || action.fold < 32 || action.scatter || random_() % 2) {
      for (uint32_t lane = 0; lane < 32; ++lane) addresses[lane] = action.address(lane);
      event.shape = AddressShape::Lanes;
      event.addresses = addresses;
    }
    event.repeats = action.repeats;
    event.repeat_step = static_cast<int64_t>(action.repeat_step);
    checked_.checker.on(event);
    for (uint32_t i = 0; i < action.repeats; ++i) see(action, block, warp, i * action.repeat_step);
  }
  void see(const Action& action, uint32_t block, uint32_t warp, uint64_t behind) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (!(action.mask >> lane & 1)) continue;
      const uint32_t by = thread(block, warp, lane);
      uint64_t address = action.address(lane) + behind;
      if (address < 4096) address |= uint64_t{block + 1} << 40;  // each has its own
      const Seen mine{by, clocks_[by][by], action.line, action.bytes, address, action.kind};
      for (const Seen& other : seen_) compare(other, mine);
      seen_.push_back(mine);
    }
  }
  void compare(const Seen& a, const Seen& b) {
    if (a.thread == b.thread || a.address + a.bytes <= b.address ||
        b.address + b.bytes <= a.address)
      return;
    if (a.kind == AccessKind::Load && b.kind == AccessKind::Load) return;
    if (a.kind == AccessKind::Atomic && b.kind == AccessKind::Atomic && a.address == b.address &&
        a.bytes == b.bytes)
      return;
    if (clocks_[b.thread][a.thread] >= a.when) return;
    races_.insert(std::minmax<int64_t>(a.line, b.line));
  }

  const Kernel& kernel_;
  std::mt19937_64 random_;
  RaceRun& checked_;
  uint32_t first_line_;
  VectorClock clocks_[kThreads];
  std::vector<Seen> seen_;
  Pairs races_;
  size_t at_[kBlocks][kWarps] = {};
  bool waits_[kBlocks][kWarps] = {};
  uint32_t arrived_[kBlocks] = {};
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> arrived_named_, waiter_;
  std::map<std::pair<uint32_t, uint32_t>, VectorClock> passed_;
};

TEST(RaceOracle, RandomKernelsInRandomOrders) {
  size_t with_races = 0, without = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Kernel kernel = random_kernel(random);
    Pairs first;
    for (uint64_t order = 0; order < 3; ++order) {
      RaceRun checked;
      // What an earlier launch of the stream did races with nothing.
      if (order == 2) Execution(random_kernel(random), 0, checked, kEarlier).run();
      Execution execution(kernel, order, checked);
      execution.run();
      Pairs found = checked.pairs();
      std::erase_if(found, [](const Pair& pair) { return pair.first > kEarlier; });
      ASSERT_EQ(found, execution.expected()) << "kernel " << seed << " order " << order;
      if (order == 0) first = found;
      ASSERT_EQ(found, first) << "kernel " << seed << " order " << order;
    }
    (first.empty() ? without : with_races) += 1;
  }
  EXPECT_GT(with_races, 20u);
  EXPECT_GT(without, 5u);
}

TEST(RaceOracle, RandomGathersInRandomOrders) {
  size_t with_races = 0, without = 0;
  for (uint32_t seed = 0; seed < 250; ++seed) {
    std::mt19937 random(seed);
    const Kernel kernel = random_gathers(random);
    Pairs first;
    for (uint64_t order = 0; order < 4; ++order) {
      RaceRun checked;
      if (order >= 2) Execution(random_gathers(random), 0, checked, kEarlier).run_one_by_one();
      Execution execution(kernel, order, checked);
      if (order % 2)
        execution.run();
      else
        execution.run_one_by_one();
      Pairs found = checked.pairs();
      std::erase_if(found, [](const Pair& pair) { return pair.first > kEarlier; });
      ASSERT_EQ(found, execution.expected()) << "kernel " << seed << " order " << order;
      if (order == 0) first = found;
      ASSERT_EQ(found, first) << "kernel " << seed << " order " << order;
    }
    (first.empty() ? without : with_races) += 1;
  }
  EXPECT_GT(with_races, 100u);
  EXPECT_GT(without, 50u);
}

TEST(RaceOracle, RandomCrowdsInRandomOrders) {
  size_t with_races = 0, without = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Kernel kernel = random_crowds(random);
    Pairs first;
    for (uint64_t order = 0; order < 3; ++order) {
      RaceRun checked;
      Execution execution(kernel, order, checked);
      if (order % 2)
        execution.run();
      else
        execution.run_one_by_one();
      const Pairs found = checked.pairs();
      ASSERT_EQ(found, execution.expected()) << "kernel " << seed << " order " << order;
      if (order == 0) first = found;
      ASSERT_EQ(found, first) << "kernel " << seed << " order " << order;
    }
    (first.empty() ? without : with_races) += 1;
  }
  EXPECT_GT(with_races, 100u);
  EXPECT_GT(without, 30u);
}

}  // namespace
}  // namespace kiln::watch
