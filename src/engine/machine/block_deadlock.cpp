// SPDX-License-Identifier: Apache-2.0
// What is reported for a block, or a cluster, in which no thread can continue?
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "engine/machine/events.h"
#include "engine/machine/fault.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

namespace {

WaitsFor what_it_waits_for(const Block& block, const Split& split) {
  if (split.wait == Wait::Barrier) return WaitsFor::Barrier;
  // A wait for a cluster's barrier is polled by the engine, one for an mbarrier by a loop of the
  // program.
  if (split.looks == Look::Cluster) return WaitsFor::Cluster;
  if (split.looks == Look::Grid) return block.grid->cooperative ? WaitsFor::Grid : WaitsFor::Memory;
  return split.looks == Look::None ? WaitsFor::Warp : WaitsFor::Mbarrier;
}

std::string waits_text(WaitsFor what, const Split& split) {
  switch (what) {
    case WaitsFor::Barrier:
      return fmt::format("barrier {}", split.barrier);
    case WaitsFor::Cluster:
      return "the barrier of the cluster";
    case WaitsFor::Grid:
      return "the barrier of the grid";
    case WaitsFor::Memory:
      return "a value in memory that nobody writes";
    case WaitsFor::Mbarrier:
      return "an mbarrier whose phase does not end";
    case WaitsFor::Warp:
      return "a warp-wide *.sync";
  }
  return "";
}

struct Group {
  Waiter waiter;
  ThreadId first{};
  const Block* block = nullptr;
};

void add_waiters(const Block& block, std::map<std::string, Group>* by_place) {
  for (uint32_t i = 0; i < block.started; ++i) {
    Warp& warp = *block.warps[i];
    warp.show_barrier();
    for (const Split& split : warp.splits) {
      const bool behind = split.wait == Wait::Barrier || split.looks == Look::Mbarrier;
      const Op* at = behind ? split.at - 1 : split.at;
      const WaitsFor waits_for = what_it_waits_for(block, split);
      const std::string what = waits_text(waits_for, split);
      Group& group =
          (*by_place)[fmt::format("{} in {}", what, place_of(*split.frame->program, *at))];
      if (group.waiter.threads == 0) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(split.mask));
        group.first = thread_of(warp, lane);
        group.block = &block;
        group.waiter.by = {split.frame->program, at->site, block.number, warp.index, 1u << lane};
        group.waiter.waits_for = waits_for;
        group.waiter.waits_at = what;
      }
      group.waiter.threads += static_cast<uint32_t>(std::popcount(split.mask));
    }
  }
}

}  // namespace

void Block::report_deadlock() const {
  std::map<std::string, Group> waiting;  // by place
  const bool together = cluster && cluster->blocks.size() > 1;
  if (together) {
    for (const Block* block : cluster->blocks) add_waiters(*block, &waiting);
  } else {
    add_waiters(*this, &waiting);
  }
  // Threads at a barrier may wait for one that spins; then the barrier is not the cause.
  const bool some_spin = std::ranges::any_of(
      waiting, [](const auto& each) { return each.second.waiter.waits_for == WaitsFor::Memory; });
  std::string text = fmt::format(
      "{}: no thread of the {} can continue\n  at {}\n  in block ({},{},{}), {} of {} threads have "
      "not ended",
      some_spin ? "Deadlock" : "Barrier deadlock", together ? "cluster" : "block",
      demangled(grid->program->name), x, y, z, live_threads, grid->threads_per_block);
  std::vector<Waiter> waiters;
  for (const auto& [place, group] : waiting) {
    text += fmt::format("\n  {} threads wait at {}, the first is thread ({},{},{})",
                        group.waiter.threads, place, group.first.x, group.first.y, group.first.z);
    if (together)
      text += fmt::format(" of block ({},{},{})", group.block->x, group.block->y, group.block->z);
    waiters.push_back(group.waiter);
  }
  if (grid->sink) {
    FaultEvent event;
    event.by.block = number;
    event.kind = FaultKind::Deadlock;
    event.code = kLaunchFailure;
    event.text = &text;
    event.waiters = &waiters;
    grid->sink->recovers(event);
  }
  grid->report(kLaunchFailure, std::move(text));
}

}  // namespace kiln::engine
