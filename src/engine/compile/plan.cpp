// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/plan.h"

#include <algorithm>

#include "engine/compile/planner.h"

namespace kiln::engine {
namespace {

uint32_t end_of_block(const Flow& flow, const Phase& phase, uint32_t from) {
  uint32_t end = from + 1;
  while (end < phase.end && !flow.is_leader(end)) ++end;
  return end;
}

}  // namespace

void Planner::begin_block(uint32_t first) {
  current_.clear();
  last_write_.clear();
  block_end_ = end_of_block(flow_, plan_.phase, first);
  for (uint32_t i = first; i < block_end_; ++i)
    flow_.for_each_written(i, [&](uint32_t slot) { last_write_.add(slot, i) = i; });
}

// A value that ends with its block is a variable of its own: one slot serves many such values, and
// each may be kept in another way.
std::optional<uint32_t> Planner::write(uint32_t slot, Slot in, uint32_t bytes, uint32_t index) {
  bool lives_on = false;
  if (last_write_.add(slot, 0) <= index) {
    const Op& last = flow_.program().ops[block_end_ - 1];
    lives_on = flow_.is_live(slot, block_end_);
    if (last.target) lives_on |= flow_.is_live(slot, flow_.index_of(last.target));
  }
  std::optional<uint32_t> variable;
  if (lives_on) {
    variable = home_of(slot, in, bytes);
    if (!variable) return std::nullopt;
  } else {
    Variable v;
    v.slot = slot;
    v.in = in;
    v.bytes = bytes;
    v.from = index;
    variable = static_cast<uint32_t>(plan_.variables.size());
    plan_.variables.push_back(v);
  }
  uint32_t& current = current_.add(slot, *variable);
  if (current != *variable && !plan_.variables[current].home)
    plan_.variables[current].until = index;
  current = *variable;
  // Under a branch that became a mask: the other lanes keep their values.
  if (lives_on && !under_.empty()) {
    if (in == Slot::Scalar) return std::nullopt;
    plan_.variables[*variable].blended = plan_.variables[*variable].input = true;
  }
  plan_.variables[*variable].written = true;
  return variable;
}

// A branch inside a branch that became a mask: the lanes that pass both.
bool Planner::takes_over_more(const Step& branch) {
  if (under_.empty() || !merged_.count(under_branch_)) return false;
  const Under outer = under_.back();
  const uint32_t target = flow_.index_of(branch.op.target);
  if (target <= branch.index || target > outer.end) return false;
  const auto other = read(branch.op.a, Slot::Predicate, 4);
  if (!other) return false;
  const bool other_not = branch.meaning.does == Does::BranchIf;
  Step both = branch;
  both.meaning = {Does::Logic};
  both.op.target = nullptr;
  // Or, for lanes that neither predicate selects; And, for lanes that both select.
  both.op.x = outer.is_not && other_not ? 1 : 0;
  both.op.y = outer.is_not != other_not;  // with the inverse of a
  both.a = outer.is_not || !both.op.y ? outer.variable : *other;
  both.b = outer.is_not || !both.op.y ? *other : outer.variable;
  put_under(both);
  Variable v;
  v.slot = kScratch;
  v.in = Slot::Predicate;
  v.from = branch.index;
  v.written = true;
  both.d = static_cast<uint32_t>(plan_.variables.size());
  under_.push_back({*both.d, outer.is_not && other_not, target});
  plan_.variables.push_back(v);
  plan_.steps.push_back(std::move(both));
  return true;
}

void Planner::put_under(Step& step) const {
  if (under_.empty()) return;
  step.under = under_.back().variable;
  step.under_not = under_.back().is_not;
  step.under_end = under_.back().end;
  step.resume = under_branch_;
}

// A branch around stores only: they become stores for some lanes, so lanes may disagree.
bool Planner::takes_over_stores(const Step& step) {
  const Does does = step.meaning.does;
  if (does != Does::BranchIf && does != Does::BranchUnless) return false;
  if (takes_over_more(step)) return true;
  const uint32_t target = flow_.index_of(step.op.target);
  const bool is_first = step.index == plan_.phase.begin;
  if (target <= step.index || target > plan_.phase.end ||
      (is_first ? plan_.phase.loops : flow_.is_leader(step.index)) ||
      !(flow_.only_store(step.index + 1, target) || computes_along(step.index + 1, target) ||
        merged_.count(step.index)))
    return false;
  const auto by = read(step.op.a, Slot::Predicate, 4);
  if (!by) return false;
  under_.assign(1, {*by, does == Does::BranchIf, target});
  under_branch_ = step.index;
  return true;
}

// At the border of an image some lanes of a warp have nothing to do up to their end. They compute
// along. If the memory that they would load does not exist, the interpreter runs the warp: nothing
// has been stored by then. Not in the first version, which assumes that all lanes agree.
bool Planner::computes_along(uint32_t begin, uint32_t end) const {
  return plan_.whole && !steps_hold_ && !plan_.masked && flow_.is_end(end) &&
         std::none_of(plan_.steps.begin(), plan_.steps.end(), changes_memory) &&
         flow_.only_compute(begin, end);
}

bool Planner::read_steps() {
  const Phase& phase = plan_.phase;
  plan_.steps.reserve(phase.end - phase.begin);
  plan_.variables.reserve(size_t{phase.end - phase.begin} * 2);
  for (uint32_t i = phase.begin; i < phase.end; ++i) {
    if (i == phase.begin || flow_.is_leader(i)) begin_block(i);
    while (!under_.empty() && i >= under_.back().end) under_.pop_back();
    Step step;
    step.index = i;
    step.op = flow_.plain(i);
    if (plan_.alone) {
      step.resume = i;
      const size_t before = plan_.steps.size();
      if (flow_.runs_alone(i) && read_one(step)) continue;
      // The lane exits here.
      while (plan_.steps.size() > before) plan_.steps.pop_back();
      Step leaving;
      leaving.index = leaving.resume = i;
      leaving.op = step.op;
      leaving.leaves = true;
      add_live(leaving);
      plan_.steps.push_back(std::move(leaving));
      continue;
    }
    step.meaning = *flow_.meaning(i);
    if (step.meaning.does == Does::LoadFused) {
      const Meaning* load = meaning_of(step.op.run);
      if (!load) return false;
      step.meaning = *load;
    }
    if (takes_over_stores(step)) continue;
    step.resume = i;
    put_under(step);
    step.align = memory_bytes(step);
    const Does does = step.meaning.does;
    if (does == Does::LoadVector || does == Does::LoadScalarVector || does == Does::StoreVector) {
      if (!read_elements(step)) return false;
      continue;
    }
    if (!read_step(step)) return false;
    plan_.steps.push_back(std::move(step));
  }
  // No scalar may be both read from the frame and written: the next iteration of a loop would read
  // it before it is written.
  return std::none_of(plan_.variables.begin(), plan_.variables.end(), [&](const Variable& v) {
    return v.written && v.in == Slot::Scalar &&
           (scalars_.find(scalar_key(v.slot, 2)) || scalars_.find(scalar_key(v.slot, 4)) ||
            scalars_.find(scalar_key(v.slot, 8)));
  });
}

// Where a lane exits, it reads what the block has computed so far.
void Planner::add_live(Step& leaving) const {
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    const Variable& v = plan_.variables[i];
    if (!v.home && v.from < leaving.index && v.until >= leaving.index &&
        !flow_.is_apart(v.from, leaving.index) && flow_.is_live(v.slot, leaving.index))
      leaving.reads.push_back(i);
  }
}

// For code of one lane, in which no branch becomes a mask.
bool Planner::read_one(Step& step) {
  step.meaning = *flow_.meaning(step.index);
  if (step.meaning.does == Does::LoadFused) {
    const Meaning* load = meaning_of(step.op.run);
    if (!load) return false;
    step.meaning = *load;
  }
  step.align = memory_bytes(step);
  const Does does = step.meaning.does;
  if (does == Does::LoadVector || does == Does::LoadScalarVector || does == Does::StoreVector)
    return read_elements(step);
  if (!read_step(step)) return false;
  plan_.steps.push_back(std::move(step));
  return true;
}

// A load or a store of several registers becomes one step per register.
bool Planner::read_elements(Step step) {
  const Elements& elements = *static_cast<const Elements*>(step.op.data);
  const Does does = step.meaning.does;
  const uint32_t bytes = memory_bytes(step);
  step.meaning.does = does == Does::StoreVector  ? Does::Store
                      : does == Does::LoadVector ? Does::Load
                                                 : Does::LoadScalar;
  step.align = bytes * elements.count;
  if (step.op.imm & (step.align - 1)) return false;
  for (uint32_t e = 0; e < elements.count; ++e) {
    Step one = step;
    one.op.imm += int64_t{e} * bytes;
    if (does == Does::StoreVector) {
      one.op.b = elements.slots[e];
      one.op.y = elements.uniform[e];
    } else {
      // The next steps would use the loaded value as an address.
      if (elements.slots[e] == step.op.a) return false;
      if (elements.slots[e] == kScratch) continue;  // the result is unused
      one.op.d = elements.slots[e];
    }
    if (!read_step(one)) return false;
    plan_.steps.push_back(std::move(one));
  }
  return true;
}

bool Planner::read_operands(Step& step) {
  Meaning& m = step.meaning;
  // One handler may serve scalars and lanes.
  if (m.lanes == kMixedLanes) m.lanes = static_cast<uint8_t>(~step.op.x & 7);
  const bool may_be_scalar =
      m.does == Does::Lanewise || m.does == Does::Cast || m.does == Does::Whole;
  if (may_be_scalar && step.op.effect == Effect::Scalar) m.lanes = 0;
  const auto operand = [&](uint32_t k, uint32_t slot, uint32_t bytes, std::optional<uint32_t>* to) {
    if (m.operands <= k) return true;
    if (m.headers >> k & 1) {
      *to = read(slot, Slot::Header, bytes);
      return to->has_value();
    }
    *to = read(slot, m.lanes >> k & 1 ? Slot::Lanes : Slot::Scalar, bytes);
    return to->has_value();
  };
  const uint32_t bytes = bytes_of(m.from);
  const bool shifts = m.does == Does::ShiftLeft || m.does == Does::ShiftRight;
  return operand(0, step.op.a, bytes, &step.a) &&
         operand(1, step.op.b, shifts ? 4 : bytes, &step.b) &&
         operand(2, step.op.c, m.does == Does::MadWide ? 8 : bytes, &step.c);
}

// The constant value of a 32-bit scalar, if it is known.
std::optional<uint32_t> Planner::number_in(uint32_t variable) const {
  const Variable& v = plan_.variables[variable];
  if (v.is_constant) return static_cast<uint32_t>(v.constant);
  const bool is_zero = v.in == Slot::Scalar && v.slot == flow_.program().zero;
  return is_zero ? std::optional<uint32_t>(0) : std::nullopt;
}

bool Planner::read_warpwide(Step& step) {
  if (!is_parts(step.meaning) && plan_.masked) return false;
  Touched& touched = touched_;
  touched.reads.clear(), touched.writes.clear(), touched.sources = nullptr;
  touched.vote = Vote::None;
  step.meaning.touches(step.op, touched);
  const auto slot_of = [](const Touched::Part& part) {
    return part.is_scalar ? Slot::Scalar : part.bytes ? Slot::Lanes : Slot::Predicate;
  };
  const auto bytes_of_part = [](const Touched::Part& part) { return part.bytes ? part.bytes : 4; };
  for (const Touched::Part& part : touched.reads) {
    auto variable = read(part.slot, slot_of(part), bytes_of_part(part));
    if (!variable) return false;
    step.reads.push_back(*variable);
  }
  if (touched.sources) {
    const auto by = number_in(step.reads[1]), clamp = number_in(step.reads[2]);
    if (by && clamp) {
      step.exchange.emplace();
      step.exchange->in_range = touched.sources(*by, *clamp, step.exchange->from);
    }
  }
  step.vote = touched.vote;
  const bool is_called = is_called_warpwide(step);
  plan_.exchanges |= !is_called && !is_parts(step.meaning);
  plan_.calls |= is_called;
  for (const Touched::Part& part : touched.writes) {
    auto variable = write(part.slot, slot_of(part), bytes_of_part(part), step.index);
    if (!variable) return false;
    plan_.variables[*variable].arithmetic = plan_.variables[*variable].flushed = false;
    step.writes.push_back(*variable);
  }
  step.d = step.writes.front();
  return true;
}

// The operands of a load, a store or an atomic. No value: it cannot be compiled; true: it writes no
// register.
std::optional<bool> Planner::read_access(Step& step) {
  const Op& op = step.op;
  const Does does = step.meaning.does;
  if (op.imm & (memory_bytes(step) - 1)) return std::nullopt;
  const bool has_header = (op.x & (kAddressAffine | kAddressRows)) != 0;
  if (is_local(step)) {
    const bool there = warp_.local_stride != 0;
    if (!there || has_header || does == Does::Atomic || does == Does::LoadScalar)
      return std::nullopt;
    plan_.local_stride = warp_.local_stride;
  }
  if (has_header && (plan_.some || plan_.alone)) {
    step.a = read(op.a, Slot::Header, op.x & kAddress32 ? 4 : 8);
    if (!step.a) return std::nullopt;
    step.place.variable = *step.a;
  } else if (has_header) {
    step.place.of = Place::Of::Header;
    step.place.header = op.a;
  } else {
    const uint32_t bytes = op.x & kAddress32 ? 4 : 8;
    auto at = read(op.a, op.x & kAddressUniform ? Slot::Scalar : Slot::Lanes, bytes);
    if (!at) return std::nullopt;
    step.place.variable = *at;
    step.a = at;
  }
  if (does == Does::Store) {
    step.b = read(op.b, op.y ? Slot::Scalar : Slot::Lanes, bytes_of(step.meaning.type));
    return step.b ? std::optional(true) : std::nullopt;
  }
  if (does == Does::Atomic) {
    if (plan_.apart && !is_change_called(step)) return std::nullopt;
    plan_.calls |= is_change_called(step);
    step.b = read(op.b, Slot::Lanes, bytes_of(step.meaning.type));
    if (!step.b) return std::nullopt;
    if (!op.y || !flow_.is_live(op.d, step.index + 1)) return true;  // the result is unused
  }
  return false;
}

bool Planner::read_step(Step& step) {
  const Op& op = step.op;
  Meaning& m = step.meaning;
  const auto predicate = [&](uint32_t slot, std::optional<uint32_t>* to) {
    *to = read(slot, Slot::Predicate, 4);
    return to->has_value();
  };
  Slot to = op.effect == Effect::Scalar ? Slot::Scalar : Slot::Lanes;
  switch (m.does) {
    case Does::Branch:
      return true;
    case Does::Warpwide:
      return read_warpwide(step);
    case Does::BranchIf:
    case Does::BranchUnless:
      return predicate(op.a, &step.a);
    case Does::Logic:
      if (!predicate(op.a, &step.a) || !predicate(op.b, &step.b)) return false;
      to = Slot::Predicate;
      break;
    case Does::CopyPredicate:
    case Does::InvertPredicate:
      if (!predicate(op.a, &step.a)) return false;
      to = Slot::Predicate;
      break;
    case Does::Compare:
      if (!read_operands(step)) return false;
      to = Slot::Predicate;
      break;
    case Does::Select: {
      m.lanes = static_cast<uint8_t>((op.x ? 0 : 1) | (op.y ? 0 : 2));
      m.operands = 2;
      if (!read_operands(step) || !predicate(op.c, &step.c)) return false;
      to = Slot::Lanes;
      break;
    }
    case Does::Store:
    case Does::Atomic:
    case Does::Load:
    case Does::LoadScalar: {
      const std::optional<bool> done = read_access(step);
      if (!done || *done) return done.has_value();
      to = m.does == Does::LoadScalar ? Slot::Scalar : Slot::Lanes;
      break;
    }
    case Does::Spread:  // its effect may be Scalar, but it writes lanes
      to = Slot::Lanes;
      [[fallthrough]];
    default:
      if (!read_operands(step)) return false;
  }
  plan_.calls |= m.does == Does::Lanewise;
  step.d = write(op.d, to, to == Slot::Predicate ? 4 : bytes_of(m.type), step.index);
  if (!step.d) return false;
  Variable& d = plan_.variables[*step.d];
  d.arithmetic &= is_float_arithmetic(m);
  d.flushed &= m.floats.flushes;
  return true;
}

// A loop with masks is one block that ends in the branch back, so all lanes exit at the same
// place. Values that are live there stay what they were when the lane left.
bool Planner::find_blended() {
  if (plan_.apart) {              // lanes that wait between blocks keep everything written there
    if (all_lanes_) return true;  // see find_parted()
    for (const auto& [slot, index] : plan_.home) {
      Variable& v = plan_.variables[index];
      if (!v.written) continue;
      v.input = true;  // where no lane comes to what writes it, other lanes may still need it
      v.blended = v.in != Slot::Scalar;
    }
    return true;
  }
  const Step& last = plan_.steps.back();
  const bool is_one_block = std::count_if(plan_.steps.begin(), plan_.steps.end(), is_branch) == 1 &&
                            is_branch(last) && last.meaning.does != Does::Branch &&
                            flow_.index_of(last.op.target) == plan_.phase.begin;
  if (!is_one_block) return false;
  for (const auto& [slot, index] : plan_.home) {
    Variable& v = plan_.variables[index];
    if (!v.written || v.in == Slot::Scalar || !flow_.is_live(slot, plan_.phase.end)) continue;
    v.blended = v.input = true;
  }
  return true;
}

// The Ops that perhaps only some lanes run: those between a branch at which lanes diverge and the
// point where they converge. Lanes that leave the phase never come back, so the others stay
// together.
List<bool> Planner::parted_ops(List<uint32_t>* leaves) const {
  const Phase& phase = plan_.phase;
  struct Range {
    uint32_t begin, end;
  };
  List<Range> ranges;
  const auto is_inside = [&](uint32_t op) { return op >= phase.begin && op < phase.end; };
  const auto leave = [&](uint32_t op) {
    if (std::find(leaves->begin(), leaves->end(), op) == leaves->end()) leaves->push_back(op);
  };
  for (const Step& step : plan_.steps) {
    if (!is_branch(step) || !step.a || plan_.variables[*step.a].kept != Kept::Vector) continue;
    const uint32_t target = flow_.index_of(step.op.target);
    if (!is_inside(target))
      leave(target);
    else
      ranges.push_back(target > step.index ? Range{step.index + 1, target}
                                           : Range{target, step.index + 1});
  }
  // A branch inside such a range leads out of it: extends the range.
  for (bool changed = true; changed;) {
    changed = false;
    for (Range& range : ranges) {
      for (const Step& step : plan_.steps) {
        if (!is_branch(step) || step.index < range.begin || step.index >= range.end) continue;
        const uint32_t target = flow_.index_of(step.op.target);
        if (!is_inside(target)) {
          leave(target);
        } else if (target < range.begin || target > range.end) {
          range = {std::min(range.begin, target), std::max(range.end, target)};
          changed = true;
        }
      }
    }
  }
  List<bool> out(phase.end - phase.begin, false);
  for (const Range& range : ranges) {
    for (uint32_t op = range.begin; op < range.end; ++op) out[op - phase.begin] = true;
  }
  return out;
}

// If all lanes enter together, values that are written while they are together need no masks, and
// may be uniform or base and step. Marks the other variables as blended. Returns true if some of
// them were not.
bool Planner::find_parted() {
  if (!plan_.apart || !all_lanes_) return false;
  List<uint32_t> leaves;
  const List<bool> parted = parted_ops(&leaves);
  bool changed = false;
  const auto blend = [&](uint32_t index) {
    Variable& v = plan_.variables[index];
    if (!v.home || v.in == Slot::Scalar || v.blended) return;
    v.blended = v.input = changed = true;
  };
  for (const Step& step : plan_.steps) {
    if (!parted[step.index - plan_.phase.begin]) continue;
    if (step.d) blend(*step.d);
    for (uint32_t to : step.writes) blend(to);
  }
  for (const auto& [slot, index] : plan_.home) {
    const auto is_live = [&, slot = slot](uint32_t op) { return flow_.is_live(slot, op); };
    if (plan_.variables[index].written && std::any_of(leaves.begin(), leaves.end(), is_live))
      blend(index);
  }
  return changed;
}

namespace {

// Branches around a few Ops at which lanes may disagree.
ListedSet<uint32_t> merged_branches(const Flow& flow, const Plan& plan) {
  ListedSet<uint32_t> out;
  for (const Step& step : plan.steps) {
    if (!is_branch(step) || !step.a || plan.variables[*step.a].kept != Kept::Vector) continue;
    const uint32_t target = flow.index_of(step.op.target);
    if (target > step.index && target <= plan.phase.end && flow.may_merge(step.index + 1, target))
      out.insert(step.index);
  }
  return out;
}

}  // namespace

std::optional<Plan> make_plan(const Flow& flow, const Phase& phase, Warp& warp, Taken taken) {
  if (taken.alone) return Planner(flow, phase, warp, false, taken).run();
  if (!taken.all_lanes || taken.apart) return Planner(flow, phase, warp, true, taken).run();
  std::optional<Plan> plan = Planner(flow, phase, warp, false, taken).run();
  if (!plan || !plan->lanes_decide) return plan;
  if (ListedSet<uint32_t> branches = merged_branches(flow, *plan); !branches.empty()) {
    Planner planner(flow, phase, warp, false, taken);
    std::optional<Plan> merged = planner.merge(std::move(branches)).run();
    if (merged && !(merged->lanes_decide && phase.loops)) return merged;
    if (merged) plan = std::move(merged);
  }
  // Masks cost no more than checking whether lanes agree, and do not need all lanes at once. But an
  // address that is read after the loop then differs by lane.
  std::optional<Plan> masked = Planner(flow, phase, warp, true, taken).run();
  return masked && gathers(*masked) <= gathers(*plan) ? std::move(masked) : std::move(plan);
}

uint64_t number_of(const Plan& plan) {
  uint64_t out = 0x9e3779b97f4a7c15u;
  const auto add = [&](uint64_t more) {
    out = (out ^ more) * 0xff51afd7ed558ccdu;
    out ^= out >> 32;
  };
  add(uint64_t{plan.local_stride} << 16 | uint64_t{plan.header_rows} << 8 | plan.row_lanes);
  add(plan.steps.size() << 10 | uint64_t{plan.alone} << 9 | uint64_t{plan.by_double} << 7 |
      uint64_t{plan.some} << 6 | uint64_t{plan.apart} << 5 | uint64_t{plan.masked} << 4 |
      uint64_t{plan.memory_decides} << 3 | uint64_t{plan.calls} << 2 |
      uint64_t{plan.lanes_decide} << 1 | uint64_t{plan.whole});
  for (const Variable& v : plan.variables) {
    add(uint64_t{v.slot} << 32 | static_cast<uint64_t>(v.in) << 24 |
        static_cast<uint64_t>(v.kept) << 16 | uint64_t{v.held} << 3 | uint64_t{v.blended} << 2 |
        uint64_t{v.lazy} << 1 | uint64_t{v.clean});
    add(static_cast<uint64_t>(v.steps.step));
    add(static_cast<uint64_t>(v.steps.row_step));
    add(static_cast<uint64_t>(v.warp_step));
    add(v.constant);
  }
  for (const Step& step : plan.steps) {
    add(uint64_t{step.index} << 2 | uint64_t{step.under.has_value()} << 1 |
        uint64_t{step.under_not});
    add(static_cast<uint64_t>(step.place.steps.step));
    add(static_cast<uint64_t>(step.place.steps.row_step));
    add(static_cast<uint64_t>(step.place.warp_step));
  }
  return out;
}

// A value without rows continues to rise by the same step from one row of the plan to the next.
Pattern2 header_steps(const Affine& header, uint32_t row_lanes, bool narrow) {
  Pattern2 out{static_cast<int64_t>(header.step), 0};
  if (row_lanes < kWarpSize) {
    const bool has_rows = header.row_lanes != 0 && header.row_lanes != kWarpSize;
    out.row_step =
        static_cast<int64_t>(has_rows ? header.row_step : header.step * uint64_t{row_lanes});
  }
  if (narrow) {
    out.step = static_cast<int32_t>(out.step);
    out.row_step = static_cast<int32_t>(out.row_step);
  }
  return out;
}

int64_t header_warp_step(const Affine& header, bool narrow) {
  if (header.row_lanes != kWarpSize) return 0;
  return narrow ? static_cast<int32_t>(header.row_step) : static_cast<int64_t>(header.row_step);
}

bool has_small(const Plan& plan) {
  return std::any_of(plan.variables.begin(), plan.variables.end(),
                     [](const Variable& v) { return v.in == Slot::Lanes && v.bytes < 4; });
}

bool is_gather(const Plan& plan, const Step& step) {
  return step.meaning.does == Does::Load && step.a && plan.variables[*step.a].kept == Kept::Vector;
}

int64_t gathers(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& step) { return is_gather(plan, step); });
}

}  // namespace kiln::engine
