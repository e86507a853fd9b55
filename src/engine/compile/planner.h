// SPDX-License-Identifier: Apache-2.0
// What does the compiler keep while it makes a plan? (plan.cpp, plan_kept.cpp)
#pragma once

#include <cstdlib>
#include <utility>

#include "engine/compile/plan.h"

namespace kiln::engine {

// Is it an address, rather than a distance, which is smaller?
inline bool is_far_value(int64_t value) { return std::abs(value >> 32) > 1; }
// Plan::ahead (plan_ahead.cpp).
void find_ahead(Plan& plan, Warp& warp);

class Planner {
 public:
  Planner(const Flow& flow, const Phase& phase, Warp& warp, bool masked, Taken taken)
      : flow_(flow),
        warp_(warp),
        patterns_(taken.patterns),
        steps_hold_(taken.steps_hold),
        all_lanes_(taken.all_lanes) {
    plan_.phase = phase;
    plan_.masked = masked;
    plan_.apart = taken.apart;
    plan_.by_double = taken.by_double;
    plan_.alone = plan_.calls = taken.alone;  // handlers of Ops without instructions here
    plan_.some = taken.apart && !taken.all_lanes;
    plan_.whole = flow.is_whole(phase);
    plan_.meets = flow.meets(phase);
    if (flow.program().narrow_rows && !taken.alone)
      plan_.row_lanes = plan_.header_rows = warp.block->grid->block_dim.x;
  }

  // These branches, at which lanes may disagree, become masks.
  Planner& merge(ListedSet<uint32_t> branches) {
    merged_ = std::move(branches);
    return *this;
  }

  std::optional<Plan> run() {
    if (plan_.row_lanes < 4) return std::nullopt;  // a strip would span several rows
    if (plan_.masked && !plan_.apart && plan_.phase.stores) return std::nullopt;
    if (!read_steps()) return std::nullopt;
    if (plan_.masked && !plan_.apart && has_small(plan_)) return std::nullopt;
    if (plan_.masked && !find_blended()) return std::nullopt;
    find_wanted();
    look_at_inputs();
    if (plan_.alone) find_unwritten();
    if (plan_.row_lanes == kWarpSize && !plan_.alone) look_for_rows();
    if (!infer()) return std::nullopt;
    while (find_parted()) {
      for (Variable& v : plan_.variables) v.kept = Kept::Unknown, v.steps = {};
      look_at_inputs();
      if (!infer()) return std::nullopt;
    }
    find_lazy();
    find_clean();
    if (kAsksAhead && plan_.phase.loops && !plan_.alone) find_ahead(plan_, warp_);
    return std::move(plan_);
  }

 private:
  // The variable that the slot holds now, or held before the block.
  std::optional<uint32_t> read(uint32_t slot, Slot in, uint32_t bytes) {
    if (const uint32_t* now = current_.find(slot)) {
      const Variable& v = plan_.variables[*now];
      if (v.in != in || v.bytes != bytes) return std::nullopt;
      return *now;
    }
    // One constant may serve as a 32-bit number, as a 64-bit number and as a predicate.
    const auto home = plan_.home.find(slot);
    const bool is_free =
        home == plan_.home.end() || (plan_.variables[home->second].in == Slot::Predicate &&
                                     !plan_.variables[home->second].written);
    if (in == Slot::Scalar && is_free) return scalar_of(slot, bytes);
    // A number that a handler needs in all lanes is uniform here.
    uint64_t number = 0;
    if (in == Slot::Lanes && is_free && flow_.is_lane_constant(slot, bytes, &number)) {
      const uint32_t one = scalar_of(slot, bytes);
      plan_.variables[one].constant = number;
      return one;
    }
    return home_of(slot, in, bytes);
  }
  uint32_t scalar_of(uint32_t slot, uint32_t bytes) {
    const auto next = static_cast<uint32_t>(plan_.variables.size());
    const uint32_t place = scalars_.add(scalar_key(slot, bytes), next);
    if (place == next) {
      Variable v;
      v.slot = slot;
      v.in = Slot::Scalar;
      v.bytes = bytes;
      v.home = v.input = true;
      v.is_constant = flow_.is_constant(slot, &v.constant);
      plan_.variables.push_back(v);
    }
    return place;
  }
  static uint32_t scalar_key(uint32_t slot, uint32_t bytes) { return slot * 16 + bytes; }
  std::optional<uint32_t> home_of(uint32_t slot, Slot in, uint32_t bytes) {
    auto [place, added] =
        plan_.home.try_emplace(slot, static_cast<uint32_t>(plan_.variables.size()));
    if (added) {
      Variable v;
      v.slot = slot;
      v.in = in;
      v.bytes = bytes;
      v.home = true;
      v.input = flow_.is_live(slot, plan_.phase.first());
      plan_.variables.push_back(v);
    }
    const Variable& v = plan_.variables[place->second];
    if (v.in != in || v.bytes != bytes) return std::nullopt;
    return place->second;
  }
  std::optional<uint32_t> write(uint32_t slot, Slot in, uint32_t bytes, uint32_t index);
  void begin_block(uint32_t first);
  bool read_steps();
  bool read_one(Step& step);
  void add_live(Step& leaving) const;
  Kept kept_alone(const Step& step) const;
  bool read_step(Step& step);
  std::optional<bool> read_access(Step& step);
  bool read_elements(Step step);
  bool read_operands(Step& step);
  bool read_warpwide(Step& step);
  std::optional<uint32_t> number_in(uint32_t variable) const;
  bool takes_over_stores(const Step& step);
  bool takes_over_more(const Step& branch);
  void put_under(Step& step) const;
  bool computes_along(uint32_t begin, uint32_t end) const;
  bool find_blended();
  bool find_parted();
  List<bool> parted_ops(List<uint32_t>* leaves) const;
  void find_wanted();
  bool is_under(const Variable& v) const;
  bool holds_far_value(const Variable& v) const;
  void look_at_inputs();
  void find_unwritten();
  void look_for_rows();
  Pattern2 pattern_of(const Variable& v, uint32_t row_lanes) const;
  bool infer();
  bool infer_step(const Step& step, bool* changed);
  bool is_plain(const Step& step, bool one, bool real, Variable* out) const;
  Variable result_of(const Step& step);
  Kept small_kept(const Step& step) const;
  std::optional<int64_t> factor_of(const std::optional<uint32_t>& index, Number type);
  // In a loop a failed assumption is found late, and all the work before it is lost.
  bool may_take_ends() const { return steps_hold_ && !plan_.phase.loops; }
  bool takes_ends(const Step& step) const;
  bool is_in_one_part(const Step& step);
  void steps_of_product(const Step& step, Variable* out);
  bool known(const Step& step) const;
  void find_lazy();
  void find_clean();
  bool gives_clean(const Step& step) const;
  bool is_assigned_at_exits(uint32_t variable) const;
  const Variable* var(const std::optional<uint32_t>& index) const {
    return index ? &plan_.variables[*index] : nullptr;
  }

  const Flow& flow_;
  Warp& warp_;
  Plan plan_;
  bool patterns_, steps_hold_, all_lanes_;
  using Numbers = BySlot<ScratchAllocator<SlotEntry>>;
  Numbers scalars_;  // by scalar_key(): read-only
  Numbers current_;  // what a slot holds inside a block
  uint32_t block_end_ = 0;
  Numbers last_write_;  // of the block
  Touched touched_;     // of read_warpwide()
  // Ops up to `end` are for the lanes of a predicate.
  struct Under {
    uint32_t variable;
    bool is_not;  // for the other lanes
    uint32_t end;
  };
  List<Under> under_;  // a branch that became a mask, and those inside it
  uint32_t under_branch_ = 0;
  ListedSet<uint32_t> merged_;
};

bool is_float_arithmetic(const Meaning& m);

}  // namespace kiln::engine
