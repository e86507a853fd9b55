// SPDX-License-Identifier: Apache-2.0
// How do the blocks of a cluster access each other's memory and wait for each other? (PTX ISA:
// mapa, getctarank, barrier.cluster)
#include <bit>

#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_async.h"
#include "engine/machine/watching.h"

namespace kiln::engine {

void Cluster::arrive(uint32_t threads) {
  arrived += threads;
  if (arrived == 0 || arrived < live_threads) return;
  arrived = 0;
  ++phase;
}

// Threads that end count as arrived, as the manual says: the barrier waits for fewer threads.
void Cluster::threads_exited(uint32_t count) {
  live_threads -= std::min(count, live_threads);
  if (arrived) arrive(0);
}

namespace {

// Bits 24-31 of a shared address are the block (memory.h).
struct MapToBlock {
  template <class T>
  static T f(T a, uint32_t rank) {
    return static_cast<T>((a & ~static_cast<T>(kPeerBits)) | static_cast<T>(rank + 1)
                                                                 << kPeerShift);
  }
};

template <class T>
const Op* run_rank_of(Warp& warp, const Op* op) {
  const T* a = warp.lanes<T>(op->a);
  const uint32_t* own = warp.lanes<uint32_t>(op->b);
  uint32_t* d = warp.lanes<uint32_t>(op->d);
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const uint32_t peer = static_cast<uint32_t>(a[i] >> kPeerShift) & 0xff;
    d[i] = peer ? peer - 1 : own[0];
  }
  return op + 1;
}

// A block without a cluster gets its own.
Cluster& cluster_of(Warp& warp) {
  Block& block = *warp.block;
  if (!block.cluster) {
    block.cluster = std::make_shared<Cluster>();
    block.cluster->blocks.push_back(&block);
    block.cluster->live_threads = block.live_threads;
  }
  return *block.cluster;
}

[[gnu::cold]] void deliver_cluster(const Warp& warp, const Op* op, uint32_t phase, bool waits) {
  SyncEvent event;
  event.kind = SyncKind::Cluster;
  event.waits = event.completed = waits;
  event.aligned = op->y;
  event.phase = phase;
  event.strength = op->x ? Strength::Relaxed : waits ? Strength::Acquire : Strength::Release;
  deliver_sync(warp, op, warp.mask, event);
}

// op->x: relaxed; op->y: aligned.
const Op* run_cluster_arrive(Warp& warp, const Op* op) {
  Cluster& cluster = cluster_of(warp);
  const uint32_t now = cluster.phase & 1 ? kFullMask : 0;
  warp.cluster_parity = (warp.cluster_parity & ~warp.mask) | (now & warp.mask);
  if (warp.block->sync_sink) [[unlikely]]
    deliver_cluster(warp, op, cluster.phase, false);
  cluster.arrive(static_cast<uint32_t>(std::popcount(warp.mask)));
  warp.moved = true;
  return op + 1;
}

// If the phase is not complete, others get a turn and the lanes run this Op again.
const Op* run_cluster_wait(Warp& warp, const Op* op) {
  const uint32_t now = cluster_of(warp).phase & 1 ? kFullMask : 0;
  if (((warp.cluster_parity ^ now) & warp.mask) == warp.mask) {
    warp.moved = true;
    if (warp.block->sync_sink) [[unlikely]]
      deliver_cluster(warp, op, cluster_of(warp).phase - 1, true);
    return op + 1;
  }
  ++warp.steps;
  return warp.look_again(op, Look::Cluster);
}

}  // namespace

bool map_to_block(Lowering& l) {
  Source a, rank;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), ptx::Type::u32, &rank))
    return false;
  const bool uniform = a.uniform && rank.uniform;
  const uint32_t bytes = ptx::bytes_of(l.type());
  l.emit_value(l.operand(0), bytes, uniform,
               bytes == 8 ? binary_handler<MapToBlock, uint64_t, uint64_t, uint32_t>(a, rank)
                          : binary_handler<MapToBlock, uint32_t, uint32_t, uint32_t>(a, rank),
               a, rank);
  return true;
}

bool rank_of_address(Lowering& l) {
  uint32_t a;
  if (!l.lanes(l.operand(1), l.type(), &a)) return false;
  Dest d;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  const uint32_t own = l.special(Special::ClusterCtarank, false);
  Op& op = l.emit(ptx::bytes_of(l.type()) == 8 ? &run_rank_of<uint64_t> : &run_rank_of<uint32_t>);
  op.a = a;
  op.b = own;
  op.d = d.offset;
  op.effect = Effect::Lanes4;
  return true;
}

bool cluster_barrier(Lowering& l) {
  l.program().has_barrier = true;
  Op& op = l.emit(l.has("arrive") ? &run_cluster_arrive : &run_cluster_wait);
  op.x = l.has("relaxed");
  op.y = l.has("aligned");
  return true;
}

}  // namespace kiln::engine
