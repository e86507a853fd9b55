// SPDX-License-Identifier: Apache-2.0
// Do two accesses race? The cheap answers first: most pairs are of one thread, or on both sides of
// a barrier.
#include <bit>

#include "watch/race/check.h"

namespace kiln::watch::race {

using namespace engine;

namespace {

uint32_t lowest(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

bool scope_has(Scope scope, bool same_block, bool same_cluster) {
  return same_block || scope == Scope::Gpu || scope == Scope::System ||
         (scope == Scope::Cluster && same_cluster);
}

}  // namespace

// Morally strong, as the PTX ISA calls it: each in the scope of the other, of the same size at the
// same address.
bool Checker::both_strong(const Entry& e, const Entry& mine, const Accessor& me) const {
  if (!e.key.strong() || !mine.key.strong() || !me.block) return false;
  if (e.key.size_log2() != mine.key.size_log2()) return false;
  const bool same_block = e.block == me.uid;
  bool same_cluster = same_block;
  if (!same_block && order_.clustered() && e.block >= me.launch_uid)
    same_cluster = order_.cluster_of(e.block) == me.block->cluster;
  return scope_has(places_[e.key.place()].scope, same_block, same_cluster) &&
         scope_has(places_[mine.key.place()].scope, same_block, same_cluster);
}

void Checker::compare(const Entry& e, const Entry& mine, const Accessor& me) {
  if ((e.key.bytes() & mine.key.bytes()) == 0) return;
  if (e.block < me.launch_uid || !me.block) {
    if (e.block == me.uid || host_.before_current(e.block) || both_strong(e, mine, me)) return;
    const uint32_t word = lowest(e.words & mine.words);
    const uint32_t earlier = e.lanes_at(word, lowest(e.key.bytes() & mine.key.bytes()));
    const uint32_t later = mine.lanes_at(word, lowest(e.key.bytes() & mine.key.bytes()));
    report(e, lowest(e.warps | 1u << 31), lowest(earlier | 1u << 31), mine, me,
           lowest(later | 1u << 31), word);
    return;
  }
  if (both_strong(e, mine, me)) return;
  if (e.block == me.uid) {
    if (e.time < me.block->barrier) return;
    const bool own_warp = e.warps & mine.warps;
    if (own_warp && e.time >= me.warp->sync) {
      const bool same_threads =
          e.lanes == mine.lanes &&
          (mine.key.dense() ? e.key.dense() && e.key.size_log2() == mine.key.size_log2()
                            : !e.key.dense() && std::has_single_bit(mine.lanes));
      if (!same_threads && compare_lanes(e, mine, me, me.warp_index, true)) return;
    }
  }
  const uint32_t others = e.block == me.uid ? e.warps & ~mine.warps : e.warps;
  for (uint32_t rest = others; rest; rest &= rest - 1) {
    if (compare_lanes(e, mine, me, lowest(rest), false)) return;
  }
}

bool Checker::compare_lanes(const Entry& e, const Entry& mine, const Accessor& me, uint32_t warp,
                            bool same_warp) {
  const uint32_t bytes = e.key.bytes() & mine.key.bytes();
  for (uint32_t words = e.words & mine.words; words; words &= words - 1) {
    const uint32_t word = lowest(words);
    for (uint32_t rest = bytes; rest; rest &= rest - 1) {
      const uint32_t theirs = e.lanes_at(word, lowest(rest));
      const uint32_t own = mine.lanes_at(word, lowest(rest));
      for (uint32_t a = theirs; a; a &= a - 1) {
        for (uint32_t b = own & ~(same_warp ? a & -a : 0); b; b &= b - 1) {
          if (is_before(e, warp, lowest(a), word, mine, me, lowest(b), same_warp)) continue;
          report(e, warp, lowest(a), mine, me, lowest(b), word);
          return true;
        }
      }
      // All bytes of a word have the same lanes, unless elements are smaller.
      if (e.key.size_log2() >= 2 && mine.key.size_log2() >= 2) break;
    }
  }
  return false;
}

bool Checker::is_before(const Entry& e, uint32_t warp, uint32_t lane, uint32_t word,
                        const Entry& mine, const Accessor& me, uint32_t my_lane,
                        bool same_warp) const {
  if (me.block->knows_more) {
    if (same_warp && me.warp->lanes && me.warp->lanes->known[my_lane][lane] > e.time) return true;
    if (order_.knows(*me.block, *me.warp, my_lane, e.block, warp, lane, e.time)) return true;
  }
  if (!e.key.strong() || !e.key.writes()) return false;
  const uint64_t size = uint64_t{1} << e.key.size_log2();
  uint64_t location = me.line_address + word * kWordBytes;
  if (size < kWordBytes)
    location += lowest(e.key.bytes());
  else
    location &= ~(size - 1);
  return order_.knows_location(*me.block, *me.warp, my_lane, location, e.time, mine.key.writes());
}

// Is all of the entry before each of the lanes?
bool Checker::known_whole(const Entry& e, const Entry& mine, const Accessor& me) const {
  if (e.block < me.launch_uid || !me.block) return host_.before_current(e.block);
  if (e.block == me.uid && e.time < me.block->barrier) return true;
  if (!me.block->knows_more) return false;
  for (uint32_t words = e.words & mine.words; words; words &= words - 1) {
    const uint32_t word = lowest(words);
    for (uint32_t byte = 0; byte < kWordBytes; ++byte) {
      const uint32_t theirs = e.lanes_at(word, byte), own = mine.lanes_at(word, byte);
      for (uint32_t warps = e.warps; warps; warps &= warps - 1) {
        const bool same_warp = e.block == me.uid && lowest(warps) == me.warp_index;
        if (same_warp && e.time < me.warp->sync) continue;
        for (uint32_t a = theirs; a; a &= a - 1) {
          for (uint32_t b = own & ~(same_warp ? a & -a : 0); b; b &= b - 1) {
            if (!is_before(e, lowest(warps), lowest(a), word, mine, me, lowest(b), same_warp))
              return false;
          }
        }
      }
      if (e.key.size_log2() >= 2 && mine.key.size_log2() >= 2) break;
    }
  }
  return true;
}

void Checker::report(const Entry& e, uint32_t warp, uint32_t lane, const Entry& mine,
                     const Accessor& me, uint32_t my_lane, uint32_t word) {
  const uint32_t byte = lowest(e.key.bytes() & mine.key.bytes());
  const bool same_value = e.value != 0 && e.value == mine.value && e.key.writes() &&
                          mine.key.writes() && e.key.size_log2() == mine.key.size_log2();
  reporter_.race({e.key, e.block, warp, lane}, {mine.key, me.uid, me.warp_index, my_lane},
                 me.line_address + word * kWordBytes + byte, same_value);
}

}  // namespace kiln::watch::race
