// SPDX-License-Identifier: Apache-2.0
// How do the warps of a block meet? A barrier counts threads. Waiting threads are released through
// their splits or, if whole warps meet, by incrementing one number.
#include <algorithm>

#include "engine/machine/events.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

void Block::arrive(uint8_t id, uint32_t threads, uint32_t wanted) {
  Barrier& barrier = barriers[id];
  barrier.arrived += threads;
  barrier.wanted = wanted;
  if (id == 0) others_at_barrier += threads;
  release_if_complete(id);
}

// A whole warp at bar.sync 0, the usual case. The last warp releases all others by incrementing one
// number, and no splits are searched.
void Block::arrive_whole(Warp& warp, const Op* next) {
  Barrier& barrier = barriers[0];
  warp.moved = true;
  warp.resume = next;
  warp.at_barrier = true;
  warp.met = meetings;
  barrier.arrived += kWarpSize;
  barrier.wanted = 0;
  if (barrier.arrived < live_threads) return;
  if (others_at_barrier || barrier.voters) return release_if_complete(0);
  barrier.arrived = barrier.result_true = barrier.result_voters = 0;
  ++meetings;
}

namespace {

[[gnu::cold, gnu::noinline]] void watch_completion(const Block& block, uint8_t id,
                                                   uint32_t wanted) {
  Actor by;
  by.block = block.number;
  block.sync_sink->on(SyncEvent{by, SyncKind::Block, id, wanted, true, true});
}

}  // namespace

void Block::release_if_complete(uint8_t id) {
  Barrier& barrier = barriers[id];
  uint32_t wanted = barrier.wanted ? barrier.wanted : live_threads;
  if (barrier.arrived == 0 || barrier.arrived < wanted) return;
  barrier.arrived = 0;
  barrier.wanted = 0;
  barrier.result_true = barrier.votes_true;
  barrier.result_voters = barrier.voters;
  barrier.votes_true = barrier.voters = 0;
  if (sync_sink) [[unlikely]]
    watch_completion(*this, id, wanted);
  if (id == 0) others_at_barrier = 0, ++meetings;
  for (uint32_t i = 0; i < started; ++i) {
    for (Split& split : warps[i]->splits) {
      if (split.wait == Wait::Barrier && split.barrier == id) split.wait = Wait::None;
    }
  }
}

void Block::threads_exited(uint32_t count) {
  live_threads -= std::min(count, live_threads);
  if (cluster) cluster->threads_exited(count);
  if (!grid->has_barriers) return;
  for (uint8_t id = 0; id < kBarrierCount; ++id) {
    if (barriers[id].arrived && !barriers[id].wanted) release_if_complete(id);
  }
}

}  // namespace kiln::engine
