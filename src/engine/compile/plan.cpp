// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/plan.h"

#include <algorithm>
#include <cstring>

namespace kiln::engine {
namespace {

bool is_float_arithmetic(const Meaning& m) {
  if (m.type != Number::F32) return false;
  switch (m.does) {
    case Does::Add:
    case Does::Sub:
    case Does::Mul:
    case Does::Mad:
    case Does::Divide:
    case Does::Min:
    case Does::Max:
    case Does::Negate:
    case Does::Absolute:
    case Does::Root:
    case Does::Reciprocal:
    case Does::ReciprocalRoot:
    case Does::Nearest:
    case Does::Truncate:
    case Does::Floor:
    case Does::Ceiling:
      return true;
    default:
      return false;
  }
}

class Planner {
 public:
  Planner(const Flow& flow, const Phase& phase, Warp& warp, bool masked, bool patterns)
      : flow_(flow), warp_(warp), patterns_(patterns) {
    plan_.phase = phase;
    plan_.masked = masked;
    if (flow.program().narrow_rows) plan_.row_lanes = warp.block->grid->block_dim.x;
  }

  std::optional<Plan> run() {
    if (plan_.row_lanes < 4) return std::nullopt;  // a strip would reach over several rows
    if (!read_steps()) return std::nullopt;
    if (plan_.masked && !find_blended()) return std::nullopt;
    find_wanted();
    look_at_inputs();
    if (!infer()) return std::nullopt;
    find_lazy();
    return std::move(plan_);
  }

 private:
  // The variable that a slot is read as now, or that is there from before.
  std::optional<uint32_t> read(uint32_t slot, Slot in, uint32_t bytes) {
    auto now = current_.find(slot);
    if (now != current_.end()) {
      const Variable& v = plan_.variables[now->second];
      if (v.in != in || v.bytes != bytes) return std::nullopt;
      return now->second;
    }
    // One constant may serve as a number of 32 bits and as one of 64.
    if (in == Slot::Scalar && !plan_.home.count(slot)) return scalar_of(slot, bytes);
    return home_of(slot, in, bytes);
  }
  uint32_t scalar_of(uint32_t slot, uint32_t bytes) {
    auto [place, added] =
        scalars_.try_emplace({slot, bytes}, static_cast<uint32_t>(plan_.variables.size()));
    if (added) {
      Variable v;
      v.slot = slot;
      v.in = Slot::Scalar;
      v.bytes = bytes;
      v.home = v.input = true;
      v.is_constant = flow_.is_constant(slot, &v.constant);
      plan_.variables.push_back(v);
    }
    return place->second;
  }
  std::optional<uint32_t> home_of(uint32_t slot, Slot in, uint32_t bytes) {
    auto [place, added] =
        plan_.home.try_emplace(slot, static_cast<uint32_t>(plan_.variables.size()));
    if (added) {
      Variable v;
      v.slot = slot;
      v.in = in;
      v.bytes = bytes;
      v.home = true;
      v.input = flow_.is_live(slot, plan_.phase.begin);
      plan_.variables.push_back(v);
    }
    const Variable& v = plan_.variables[place->second];
    if (v.in != in || v.bytes != bytes) return std::nullopt;
    return place->second;
  }
  std::optional<uint32_t> write(uint32_t slot, Slot in, uint32_t bytes, uint32_t index);
  bool is_last_write(uint32_t slot, uint32_t index, uint32_t end) const;
  bool read_steps();
  bool read_step(Step& step);
  bool read_elements(Step step);
  bool read_operands(Step& step);
  bool find_blended();
  void find_wanted();
  void look_at_inputs();
  bool infer();
  bool infer_step(const Step& step, bool* changed);
  Variable result_of(const Step& step) const;
  bool known(const Step& step) const;
  void find_lazy();
  bool is_assigned_at_exits(uint32_t variable) const;
  const Variable* var(const std::optional<uint32_t>& index) const {
    return index ? &plan_.variables[*index] : nullptr;
  }

  const Flow& flow_;
  Warp& warp_;
  Plan plan_;
  bool patterns_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> scalars_;  // by slot and bytes: only read
  std::map<uint32_t, uint32_t> current_;  // by slot: what it holds inside of a block
  uint32_t block_end_ = 0;
};

uint32_t end_of_block(const Flow& flow, const Phase& phase, uint32_t from) {
  uint32_t end = from + 1;
  while (end < phase.end && !flow.is_leader(end)) ++end;
  return end;
}

bool Planner::is_last_write(uint32_t slot, uint32_t index, uint32_t end) const {
  for (uint32_t i = index + 1; i < end; ++i) {
    if (flow_.writes(i, slot)) return false;
  }
  return true;
}

// A value that ends with its block is a variable of its own: one slot serves many such values, and
// each may be kept in another way.
std::optional<uint32_t> Planner::write(uint32_t slot, Slot in, uint32_t bytes, uint32_t index) {
  bool lives_on = false;
  if (is_last_write(slot, index, block_end_)) {
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
    variable = static_cast<uint32_t>(plan_.variables.size());
    plan_.variables.push_back(v);
  }
  plan_.variables[*variable].written = true;
  current_[slot] = *variable;
  return variable;
}

bool Planner::read_steps() {
  const Phase& phase = plan_.phase;
  for (uint32_t i = phase.begin; i < phase.end; ++i) {
    if (i == phase.begin || flow_.is_leader(i)) {
      current_.clear();
      block_end_ = end_of_block(flow_, phase, i);
    }
    Step step;
    step.index = i;
    step.op = flow_.plain(i);
    step.meaning = *flow_.meaning(i);
    if (step.meaning.does == Does::LoadFused) {
      const Meaning* load = meaning_of(step.op.run);
      if (!load) return false;
      step.meaning = *load;
    }
    step.align = bytes_of(step.meaning.type);
    const Does does = step.meaning.does;
    if (does == Does::LoadVector || does == Does::LoadScalarVector || does == Does::StoreVector) {
      if (!read_elements(step)) return false;
      continue;
    }
    if (!read_step(step)) return false;
    plan_.steps.push_back(step);
  }
  // Read before it is written, in another round of a loop.
  return std::none_of(plan_.variables.begin(), plan_.variables.end(), [&](const Variable& v) {
    return v.written && v.in == Slot::Scalar &&
           (scalars_.count({v.slot, 4}) || scalars_.count({v.slot, 8}));
  });
}

// A load or a store of several registers is one step for each.
bool Planner::read_elements(Step step) {
  const Elements& elements = *static_cast<const Elements*>(step.op.data);
  const Does does = step.meaning.does;
  const uint32_t bytes = bytes_of(step.meaning.type);
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
      if (elements.slots[e] == step.op.a) return false;  // the others would read what it loaded
      if (elements.slots[e] == kScratch) continue;       // nobody wants it
      one.op.d = elements.slots[e];
    }
    if (!read_step(one)) return false;
    plan_.steps.push_back(one);
  }
  return true;
}

bool Planner::read_operands(Step& step) {
  const Meaning& m = step.meaning;
  const auto operand = [&](uint32_t k, uint32_t slot, uint32_t bytes, std::optional<uint32_t>* to) {
    if (m.operands <= k) return true;
    *to = read(slot, m.lanes >> k & 1 ? Slot::Lanes : Slot::Scalar, bytes);
    return to->has_value();
  };
  const uint32_t bytes = bytes_of(m.from);
  const bool shifts = m.does == Does::ShiftLeft || m.does == Does::ShiftRight;
  return operand(0, step.op.a, bytes, &step.a) &&
         operand(1, step.op.b, shifts ? 4 : bytes, &step.b) &&
         operand(2, step.op.c, m.does == Does::MadWide ? 8 : bytes, &step.c);
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
    case Does::Load:
    case Does::LoadScalar: {
      const auto space = static_cast<ptx::Space>(op.z);
      if (space == ptx::Space::Local || op.imm & (bytes_of(m.type) - 1)) return false;
      if (op.x & (kAddressAffine | kAddressRows)) {
        step.place.of = Place::Of::Header;
        step.place.header = op.a;
      } else {
        const uint32_t bytes = op.x & kAddress32 ? 4 : 8;
        auto at = read(op.a, op.x & kAddressUniform ? Slot::Scalar : Slot::Lanes, bytes);
        if (!at) return false;
        step.place.variable = *at;
        step.a = at;
      }
      if (m.does == Does::Store) {
        step.b = read(op.b, op.y ? Slot::Scalar : Slot::Lanes, bytes_of(m.type));
        return step.b.has_value();
      }
      to = m.does == Does::LoadScalar ? Slot::Scalar : Slot::Lanes;
      break;
    }
    case Does::Spread:  // written whatever the mask is, and still lanes
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
  return true;
}

// One block that ends in the branch back: all lanes then leave at the same place. What is read
// behind it has to stay as it was when a lane left.
bool Planner::find_blended() {
  const auto branches = [](const Step& step) {
    return !step.d && step.meaning.does != Does::Store;
  };
  const Step& last = plan_.steps.back();
  const bool is_one_block = std::count_if(plan_.steps.begin(), plan_.steps.end(), branches) == 1 &&
                            branches(last) && last.meaning.does != Does::Branch &&
                            flow_.index_of(last.op.target) == plan_.phase.begin;
  if (!is_one_block) return false;
  for (const auto& [slot, index] : plan_.home) {
    Variable& v = plan_.variables[index];
    if (!v.written || v.in == Slot::Scalar || !flow_.is_live(slot, plan_.phase.end)) continue;
    v.blended = v.input = true;
  }
  return true;
}

// Addresses and branches want to know whether lanes differ, and so does what they are made of.
void Planner::find_wanted() {
  for (const Step& step : plan_.steps) {
    const bool asks = step.meaning.does == Does::BranchIf ||
                      step.meaning.does == Does::BranchUnless || step.meaning.does == Does::Load ||
                      step.meaning.does == Does::Store || step.meaning.does == Does::LoadScalar;
    if (asks && step.a) plan_.variables[*step.a].wanted = true;
    const bool branches =
        step.meaning.does == Does::BranchIf || step.meaning.does == Does::BranchUnless;
    if (branches) plan_.variables[*step.a].decides = true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Step& step : plan_.steps) {
      if (!step.d || !plan_.variables[*step.d].wanted) continue;
      const bool loads = step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar;
      if (plan_.variables[*step.d].decides) {
        plan_.memory_decides |= loads;
        for (const auto& from : {step.a, step.b, step.c}) {
          if (!from || plan_.variables[*from].decides) continue;
          plan_.variables[*from].decides = changed = true;
        }
      }
      for (const auto& from : {step.a, step.b, step.c}) {
        if (!from || plan_.variables[*from].wanted) continue;
        plan_.variables[*from].wanted = changed = true;
      }
    }
  }
}

void Planner::look_at_inputs() {
  for (Variable& v : plan_.variables) {
    if (!v.home || !v.input) continue;
    if (v.in == Slot::Scalar) {
      v.kept = Kept::Word;
      continue;
    }
    v.kept = Kept::Vector;
    if (!v.wanted || v.blended || !patterns_) continue;
    const std::byte* at = warp_.registers + v.slot;
    if (v.in == Slot::Predicate) {
      uint32_t bits;
      std::memcpy(&bits, at, 4);
      if (bits == 0 || bits == kFullMask) v.kept = Kept::Word;
      continue;
    }
    const auto lane = [&](uint32_t i) -> int64_t {
      uint64_t value = 0;
      std::memcpy(&value, at + size_t{i} * v.bytes, v.bytes);
      return v.bytes == 8 ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
    };
    Pattern2 seen{lane(1) - lane(0), 0};
    if (plan_.row_lanes < kWarpSize) seen.row_step = lane(plan_.row_lanes) - lane(0);
    if (v.bytes == 4) {
      seen.step = static_cast<int32_t>(seen.step);
      seen.row_step = static_cast<int32_t>(seen.row_step);
    }
    if (!Rises(seen, plan_.row_lanes).hold(at, v.bytes)) continue;
    v.steps = seen;
    v.kept = seen == Pattern2{} ? Kept::Word : Kept::Steps;
  }
}

bool Planner::known(const Step& step) const {
  for (const auto& from : {step.a, step.b, step.c}) {
    if (from && plan_.variables[*from].kept == Kept::Unknown) return false;
  }
  return true;
}

bool is_one(const Variable* v) { return !v || v->kept == Kept::Word || v->kept == Kept::Splat; }

// How the result is kept, from how the operands are.
Variable Planner::result_of(const Step& step) const {
  const Meaning& m = step.meaning;
  const Variable *a = var(step.a), *b = var(step.b), *c = var(step.c);
  Variable out;
  const bool one = is_one(a) && is_one(b) && is_one(c);
  const bool real = m.type == Number::F32 || m.from == Number::F32;
  out.kept = Kept::Vector;
  switch (m.does) {
    case Does::Load:
    case Does::LoadScalar:
      if (step.place.of == Place::Of::Header) break;  // see infer_step
      if (one) out.kept = m.type == Number::U64 ? Kept::Word : Kept::Splat;
      return out;
    case Does::Compare:
      if (one && !real) out.kept = Kept::Word;
      return out;
    case Does::Lanewise:
      if (step.op.effect == Effect::Scalar) out.kept = real ? Kept::Splat : Kept::Word;
      return out;
    case Does::Copy:
    case Does::Spread:
      out.kept = a->kept;
      out.steps = a->steps;
      return out;
    default:
      break;
  }
  if (one && m.does != Does::Load && m.does != Does::LoadScalar) {
    out.kept = real ? Kept::Splat : Kept::Word;
    return out;
  }
  const auto steps = [](const Variable* v) { return v && v->kept == Kept::Steps; };
  const auto with = [&](int64_t step_a, int64_t row_a) {
    out.kept = Kept::Steps;
    out.steps = {step_a, row_a};
    if (bytes_of(m.type) == 4) {
      out.steps.step = static_cast<int32_t>(step_a);
      out.steps.row_step = static_cast<int32_t>(row_a);
    }
    if (out.steps == Pattern2{}) out.kept = Kept::Word;
  };
  const auto term = [&](const Variable* v) { return steps(v) || is_one(v); };
  switch (m.does) {
    case Does::Add:
    case Does::Sub:
      if (real || !term(a) || !term(b)) break;
      if (m.does == Does::Add)
        with(a->steps.step + b->steps.step, a->steps.row_step + b->steps.row_step);
      else
        with(a->steps.step - b->steps.step, a->steps.row_step - b->steps.row_step);
      break;
    case Does::ShiftLeft:
      if (steps(a) && b->is_constant && b->constant < bytes_of(m.type) * 8) {
        with(static_cast<int64_t>(static_cast<uint64_t>(a->steps.step) << b->constant),
             static_cast<int64_t>(static_cast<uint64_t>(a->steps.row_step) << b->constant));
      }
      break;
    case Does::Convert:
      if (!real && steps(a)) with(a->steps.step, a->steps.row_step);
      break;
    case Does::MulWide:
    case Does::Mul: {
      const Variable *value = steps(a) ? a : b, *factor = steps(a) ? b : a;
      if (real || !steps(value) || !factor->is_constant) break;
      const auto by =
          m.from == Number::S32
              ? int64_t{static_cast<int32_t>(factor->constant)}
              : static_cast<int64_t>(bytes_of(m.from) == 4 ? factor->constant & 0xffffffffu
                                                           : factor->constant);
      with(value->steps.step * by, value->steps.row_step * by);
      break;
    }
    default:
      break;
  }
  return out;
}

bool Planner::infer_step(const Step& step, bool* changed) {
  Variable out = result_of(step);
  if (step.place.of == Place::Of::Header &&
      (step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar)) {
    const bool one = step.place.steps == Pattern2{};
    out.kept = !one ? Kept::Vector : step.meaning.type == Number::U64 ? Kept::Word : Kept::Splat;
  }
  Variable& d = plan_.variables[*step.d];
  Kept kept = out.kept;
  Pattern2 steps = out.steps;
  if (d.kept != Kept::Unknown && (d.kept != kept || !(d.steps == steps))) {
    const bool both_one = (d.kept == Kept::Word || d.kept == Kept::Splat) &&
                          (kept == Kept::Word || kept == Kept::Splat);
    kept = both_one ? Kept::Word : Kept::Vector;
    steps = {};
  }
  if (kept == d.kept && steps == d.steps) return true;
  d.kept = kept;
  d.steps = steps;
  *changed = true;
  return d.in != Slot::Scalar || kept == Kept::Word || kept == Kept::Splat;
}

// From what the inputs look like, until nothing changes. A variable that is written in several ways
// becomes vectors: each can change but a few times.
bool Planner::infer() {
  for (Step& step : plan_.steps) {
    if (step.place.of != Place::Of::Header) continue;
    const Affine& header = affine_at(warp_, step.place.header);
    if (header.state == AffineState::Lanes) return false;
    step.place.steps = {static_cast<int64_t>(header.step),
                        header.row_lanes ? static_cast<int64_t>(header.row_step) : 0};
    if (step.op.x & kAddress32) {
      step.place.steps.step = static_cast<int32_t>(step.place.steps.step);
      step.place.steps.row_step = static_cast<int32_t>(step.place.steps.row_step);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Step& step : plan_.steps) {
      if (step.d && known(step) && !infer_step(step, &changed)) return false;
    }
  }
  for (const Step& step : plan_.steps) {
    if (!known(step)) return false;
    const bool branches =
        step.meaning.does == Does::BranchIf || step.meaning.does == Does::BranchUnless;
    if (branches && plan_.variables[*step.a].kept != Kept::Word) {
      if (plan_.variables[*step.a].kept != Kept::Vector) return false;
      plan_.lanes_decide |= !plan_.masked;
    }
    // The interpreter is as good at stores to addresses that have nothing in common.
    if (step.meaning.does == Does::Store && step.a && plan_.variables[*step.a].kept == Kept::Vector)
      return false;
  }
  return true;
}

// Is it written on every way from the entry to an exit?
bool Planner::is_assigned_at_exits(uint32_t variable) const {
  if (!plan_.phase.loops) return true;
  // A loop that is entered at the top: written before the first branch of the phase.
  for (const Step& step : plan_.steps) {
    if (step.d == variable) return true;
    if (!step.d) return false;
  }
  return false;
}

// f32 arithmetic gives the same number whatever bits a NaN has: only where they can be seen must
// they be the ones of a GPU. What comes from memory or from the frame keeps its own bits.
void Planner::find_lazy() {
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    Variable& v = plan_.variables[i];
    v.quiet = v.written && v.arithmetic && !v.input;
    v.lazy = v.written && v.arithmetic && v.in != Slot::Predicate && !v.blended &&
             (!v.input || is_assigned_at_exits(i));
  }
  for (const Step& step : plan_.steps) {
    if (is_float_arithmetic(step.meaning) || step.meaning.does == Does::Compare) continue;
    if (step.meaning.does == Does::Convert && step.meaning.from == Number::F32) continue;
    for (const auto& from : {step.a, step.b, step.c}) {
      // Raw bits or arithmetic: only one that is always arithmetic may be made canonical here.
      if (from && plan_.variables[*from].input) plan_.variables[*from].lazy = false;
    }
  }
}

}  // namespace

std::optional<Plan> make_plan(const Flow& flow, const Phase& phase, Warp& warp, Taken taken) {
  if (!taken.all_lanes) return Planner(flow, phase, warp, true, false).run();
  std::optional<Plan> plan = Planner(flow, phase, warp, false, taken.patterns).run();
  if (!plan || !plan->lanes_decide) return plan;
  // Masks cost no more than to see whether lanes agree, and need not have all of them at once; but
  // an address that is read behind the loop is then one for each lane.
  std::optional<Plan> masked = Planner(flow, phase, warp, true, taken.patterns).run();
  return masked && gathers(*masked) <= gathers(*plan) ? std::move(masked) : std::move(plan);
}

bool is_gather(const Plan& plan, const Step& step) {
  return step.meaning.does == Does::Load && step.a && plan.variables[*step.a].kept == Kept::Vector;
}

int64_t gathers(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& step) { return is_gather(plan, step); });
}

}  // namespace kiln::engine
