// SPDX-License-Identifier: Apache-2.0
// Which Ops of a program can be compiled together, and which slots of the frame are live?
//
//  A phase is a run of Ops that control enters only at the top. If it contains no store, its lanes
// cannot observe each other, and machine code can run it for one group of lanes after the other.
// Otherwise all lanes go through it together.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/machine/access.h"
#include "engine/program/meaning.h"

namespace kiln::engine {

// Numbers by slot of the frame, or by another number. A look-up costs the same for a slot that is
// missing, and clear() is almost free: both happen for each basic block.
struct SlotEntry {
  uint32_t slot = 0, number = 0, round = 0;
};
template <class Allocator = std::allocator<SlotEntry>>
class BySlot {
 public:
  // Null if the slot is missing.
  uint32_t* find(uint32_t slot) {
    if (all_.empty()) return nullptr;
    SlotEntry& entry = entry_of(slot);
    return entry.round == round_ ? &entry.number : nullptr;
  }
  const uint32_t* find(uint32_t slot) const { return const_cast<BySlot*>(this)->find(slot); }
  // Returns the number of the slot, after adding it if it was missing.
  uint32_t& add(uint32_t slot, uint32_t number) {
    if ((count_ + 1) * 2 > all_.size()) grow();
    SlotEntry& entry = entry_of(slot);
    if (entry.round != round_) {
      entry = {slot, number, round_};
      ++count_;
    }
    return entry.number;
  }
  uint32_t size() const { return count_; }
  void clear() { ++round_, count_ = 0; }

 private:
  SlotEntry& entry_of(uint32_t slot) {
    uint32_t at = slot * 0x9e3779b9u >> shift_;
    while (all_[at].round == round_ && all_[at].slot != slot)
      at = (at + 1) & static_cast<uint32_t>(all_.size() - 1);
    return all_[at];
  }
  [[gnu::noinline]] void grow() {
    std::vector<SlotEntry, Allocator> before(all_.empty() ? 32 : all_.size() * 2);
    before.swap(all_);
    shift_ = static_cast<uint32_t>(std::countl_zero(static_cast<uint32_t>(all_.size() - 1)));
    for (const SlotEntry& each : before) {
      if (each.round == round_) entry_of(each.slot) = each;
    }
  }

  std::vector<SlotEntry, Allocator> all_;  // the size is a power of two
  uint32_t shift_ = 0, count_ = 0, round_ = 1;
};

struct Phase {
  uint32_t begin = 0, end = 0;  // Ops
  bool loops = false;
  bool stores = false;    // all lanes go through it together
  bool branches = false;  // always true in a loop
  // For code of one lane: the Op at which the loop is entered. Compilers may place the body before
  // it.
  uint32_t entry = 0;
  uint32_t first() const { return entry ? entry : begin; }
  bool keeps_apart = false;  // the loop must not load where it stores
};

class Flow {
 public:
  explicit Flow(const Program& program);

  const Program& program() const { return program_; }
  const Meaning* meaning(uint32_t op) const { return meanings_[op]; }
  // The Op itself; for a load that was fused with its reader, the load; for Ops that write the
  // lanes of a header, a copy.
  const Op& plain(uint32_t op) const;
  uint32_t index_of(const Op* op) const { return static_cast<uint32_t>(op - program_.ops.data()); }
  // Does this slot contain the same scalar in every launch?
  bool is_constant(uint32_t slot, uint64_t* bits) const;
  // The same for 32 lanes of this size.
  bool is_lane_constant(uint32_t slot, uint32_t bytes, uint64_t* bits) const;
  // Is the slot live before `op`?
  bool is_live(uint32_t slot, uint32_t op) const;
  bool is_leader(uint32_t op) const { return leader_[op]; }
  // Do all lanes that reach this Op end?
  bool is_end(uint32_t op) const;
  // Is the phase all that a warp runs, without a loop, and without memory or registers of its own
  // that the next warp would have to initialise?
  bool is_whole(const Phase& phase) const;
  // May a phase begin with this Op, although it is a branch?
  bool begins_with_branch(uint32_t op) const;
  // Does an exit of the phase lead to a barrier of the block?
  bool meets(const Phase& phase) const;
  // Are the Ops in different basic blocks?
  bool is_apart(uint32_t a, uint32_t b) const { return run_of_[a] != run_of_[b]; }
  // The slots that the Op writes.
  template <class Body>
  void for_each_written(uint32_t op, const Body& body) const {
    const Op& at = plain(op);
    if (const Elements* elements = elements_written(op)) {
      for (uint32_t e = 0; e < elements->count; ++e) body(elements->slots[e]);
      return;
    }
    if (meanings_[op] && meanings_[op]->does == Does::Warpwide) {
      Touched touched;
      meanings_[op]->touches(at, touched);
      for (const Touched::Part& part : touched.writes) body(part.slot);
      return;
    }
    if (writes_one(op)) body(at.d);
  }
  std::vector<Phase> phases() const;
  // The loops that lanes can run one after the other (alone.h): only a race could show it.
  std::vector<Phase> loops() const;
  // Can one lane run the Op without the others?
  bool runs_alone(uint32_t op) const;
  // Are all Ops in this range stores?
  bool only_store(uint32_t begin, uint32_t end) const;
  // Do these Ops compute values that are dead after them, and store them at the end? Then lanes
  // that branch around them can compute along, as long as they do not store.
  bool only_compute(uint32_t begin, uint32_t end) const;
  // Can all lanes run these Ops, if the results are kept only for some? Stores and results come at
  // the end; Ops whose checks may go back to the branch come before them.
  bool may_merge(uint32_t begin, uint32_t end) const;

 private:
  struct Jump {
    uint32_t to, from;
  };
  std::optional<Phase> loop_of(const Jump& back) const;
  struct Run {  // a basic block
    uint32_t begin, end;
    std::vector<uint64_t> live_in, live_out;
  };
  void find_leaders();
  void find_live();
  void find_live_before();
  bool writes_one(uint32_t op) const;
  const Elements* elements_written(uint32_t op) const;
  // Computes what is live before an Op from what is live after it.
  void step_back(uint32_t op, std::vector<uint64_t>& live) const;
  std::vector<uint32_t> followers(uint32_t op) const;
  bool writes_predicate_of(uint32_t branch, uint32_t op) const;
  void find_jumps();
  // The end of a phase that begins here: before the first Op that is entered from outside.
  uint32_t cut(uint32_t begin, uint32_t end) const;
  bool is_loop(uint32_t begin, uint32_t end, bool stores) const;
  void add_loops(bool stores, std::vector<bool>& taken, std::vector<Phase>& to) const;
  Phase run_from(uint32_t begin, const std::vector<bool>& taken) const;
  bool is_scattered(uint32_t op) const;
  bool is_reached_within(uint32_t op, uint32_t begin) const;
  // Can lanes observe what other lanes of the warp store in the loop, without a race? Or could they
  // do so in global memory, unless they load elsewhere than they store?
  struct Seen {
    bool is_seen = false, in_global = false;
  };
  Seen seen_by_others(uint32_t begin, uint32_t end) const;
  std::optional<uint32_t> entry_of(uint32_t begin, uint32_t end) const;

  const Program& program_;
  std::vector<const Meaning*> meanings_;
  // Ops that write the lanes of a header, as copies from the header.
  std::unordered_map<uint32_t, Op> copies_;
  std::vector<bool> leader_;
  BySlot<> slots_;  // indices of the bits of all written slots
  std::vector<Run> runs_;
  std::vector<uint32_t> run_of_;
  // Live slots before each Op, as bits; empty if that would take too much memory.
  std::vector<uint64_t> live_before_;
  std::vector<Jump> jumps_;  // sorted; without those to the next Op
};

}  // namespace kiln::engine
