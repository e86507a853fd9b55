// SPDX-License-Identifier: Apache-2.0
// Which Ops of a program can be compiled together, and which slots of the frame are read later?
//
// A phase is a run of Ops that is entered at the top alone. If it stores nothing, no lane can see
// another one in it, and machine code can run it for some lanes after the others; else all lanes go
// through it together.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/machine/access.h"
#include "engine/program/meaning.h"

namespace kiln::engine {

// Numbers by slot of the frame, or by another number. A slot that is not there costs as little as
// one that is, and to forget all of them costs nothing: both happen at each block of Ops.
struct SlotEntry {
  uint32_t slot = 0, number = 0, round = 0;
};
template <class Allocator = std::allocator<SlotEntry>>
class BySlot {
 public:
  // Null: it is not there.
  uint32_t* find(uint32_t slot) {
    if (all_.empty()) return nullptr;
    SlotEntry& entry = entry_of(slot);
    return entry.round == round_ ? &entry.number : nullptr;
  }
  const uint32_t* find(uint32_t slot) const { return const_cast<BySlot*>(this)->find(slot); }
  // What is there, or this number from now on.
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

  std::vector<SlotEntry, Allocator> all_;  // as many as a power of two
  uint32_t shift_ = 0, count_ = 0, round_ = 1;
};

struct Phase {
  uint32_t begin = 0, end = 0;  // Ops
  bool loops = false;
  bool stores = false;    // all lanes go through it together
  bool branches = false;  // as loops do
};

class Flow {
 public:
  explicit Flow(const Program& program);

  const Program& program() const { return program_; }
  const Meaning* meaning(uint32_t op) const { return meanings_[op]; }
  // The Op itself; of a load that was fused with its reader, the load; a copy of lanes.
  const Op& plain(uint32_t op) const;
  uint32_t index_of(const Op* op) const { return static_cast<uint32_t>(op - program_.ops.data()); }
  // Is the scalar in this slot the same in every launch?
  bool is_constant(uint32_t slot, uint64_t* bits) const;
  // The same of 32 lanes of so many bytes.
  bool is_lane_constant(uint32_t slot, uint32_t bytes, uint64_t* bits) const;
  // May what the slot holds be read by `op` or by what follows?
  bool is_live(uint32_t slot, uint32_t op) const;
  bool is_leader(uint32_t op) const { return leader_[op]; }
  // Do all lanes that come here end?
  bool is_end(uint32_t op) const;
  // Is the phase all that a warp runs, without a loop and without memory or registers of its own
  // that would have to be filled for the next one?
  bool is_whole(const Phase& phase) const;
  // May a phase begin with this Op, though it is a branch?
  bool begins_with_branch(uint32_t op) const;
  // Does a way out of the phase lead to a barrier of the block?
  bool meets(const Phase& phase) const;
  // Are they in different blocks?
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
  // Do all Ops from here to there do nothing but store?
  bool only_store(uint32_t begin, uint32_t end) const;
  // Do they compute what nobody reads behind them, and store it at the end? Then lanes that a
  // branch leads around them can compute along, as long as they do not store.
  bool only_compute(uint32_t begin, uint32_t end) const;
  // Can all lanes run them, where what they write is taken over for some alone? They store at the
  // end, or leave results there; what may have to start again at the branch comes before those.
  bool may_merge(uint32_t begin, uint32_t end) const;

 private:
  struct Run {  // a basic block
    uint32_t begin, end;
    std::vector<uint64_t> live_in, live_out;
  };
  void find_leaders();
  void find_live();
  void find_live_before();
  bool writes_one(uint32_t op) const;
  const Elements* elements_written(uint32_t op) const;
  // Goes back over an Op: what is live before it, from what is live behind it.
  void step_back(uint32_t op, std::vector<uint64_t>& live) const;
  std::vector<uint32_t> followers(uint32_t op) const;
  bool writes_predicate_of(uint32_t branch, uint32_t op) const;
  void find_jumps();
  // The end of a phase that begins here: before the first Op that others come to.
  uint32_t cut(uint32_t begin, uint32_t end) const;
  bool is_loop(uint32_t begin, uint32_t end, bool stores) const;
  void add_loops(bool stores, std::vector<bool>& taken, std::vector<Phase>& to) const;
  Phase run_from(uint32_t begin, const std::vector<bool>& taken) const;
  bool is_scattered(uint32_t op) const;
  bool is_reached_within(uint32_t op, uint32_t begin) const;

  const Program& program_;
  std::vector<const Meaning*> meanings_;
  // Ops that write the lanes of a value of base and step, as copies from its header.
  std::unordered_map<uint32_t, Op> copies_;
  std::vector<bool> leader_;
  BySlot<> slots_;  // that are written: their bits
  std::vector<Run> runs_;
  std::vector<uint32_t> run_of_;
  // Before each Op, as bits by slot; empty where that would take too much memory.
  std::vector<uint64_t> live_before_;
  struct Jump {
    uint32_t to, from;
  };
  std::vector<Jump> jumps_;  // sorted: but for those to the next Op
};

}  // namespace kiln::engine
