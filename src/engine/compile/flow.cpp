// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/flow.h"

#include <algorithm>
#include <cstring>

#include "engine/decode/control.h"
#include "engine/decode/fuse.h"
#include "engine/machine/access.h"

namespace kiln::engine {
namespace {

bool branches(const Meaning* meaning) {
  return meaning && (meaning->does == Does::Branch || meaning->does == Does::BranchIf ||
                     meaning->does == Does::BranchUnless);
}

bool is_atomic(const Meaning* meaning) { return meaning && meaning->does == Does::Atomic; }

// Does it change memory?
bool is_store(const Meaning* meaning) {
  return meaning && (meaning->does == Does::Store || meaning->does == Does::StoreVector ||
                     meaning->does == Does::Atomic);
}

// Can a phase contain it? Branches and stores are checked separately.
bool fits(const Meaning* meaning) {
  return meaning && !branches(meaning) && !is_store(meaning) &&
         meaning->does != Does::BranchIndexed;
}

bool is_warpwide(const Meaning* meaning) { return meaning && meaning->does == Does::Warpwide; }

bool writes_d(const Op& op, const Meaning* meaning) {
  if (meaning && meaning->does == Does::BranchIndexed) return false;
  if (is_warpwide(meaning)) return false;  // see Meaning::touches
  if (is_atomic(meaning)) return op.y != 0;
  if (meaning) return !branches(meaning) && !is_store(meaning);
  return op.effect != Effect::MaskAware;
}

// The registers of a load or a store of several; null if it has one.
const Elements* elements_of(const Op& op, const Meaning* meaning) {
  const bool many =
      meaning && (meaning->does == Does::LoadVector || meaning->does == Does::StoreVector ||
                  meaning->does == Does::LoadScalarVector);
  return many ? static_cast<const Elements*>(op.data) : nullptr;
}

// The fewest Ops that are worth leaving the interpreter for.
constexpr uint32_t kFewestOps = 5, kFewestWithLanes = 3, kFewestAtBarrier = 2;

// For an Op that neither loads nor stores: can machine code find that one of its assumptions fails?
// For base and step these are assumptions about the lowest and the highest lane.
bool may_start_again(const Meaning& m) {
  switch (m.does) {
    case Does::And:
    case Does::ShiftRight:
    case Does::Divide:
    case Does::Remainder:
    case Does::Min:
    case Does::Max:
    case Does::Compare:
      if (m.type != Number::F32) return true;
      break;
    case Does::Small:
      return true;
    default:
      break;
  }
  return bytes_of(m.type) > 4 || bytes_of(m.from) > 4;
}

}  // namespace

Flow::Flow(const Program& program) : program_(program) {
  meanings_.reserve(program.ops.size());
  static constexpr Meaning kCopies[] = {
      {Does::Copy, Number::U32, Number::U32, 1, 0, Comparison::Eq, 1},
      {Does::Copy, Number::U64, Number::U64, 1, 0, Comparison::Eq, 1}};
  for (const Op& op : program.ops) {
    const bool copies = op.run == &run_materialize;
    meanings_.push_back(copies ? &kCopies[op.x == 8] : meaning_of(op.run));
    if (!copies) continue;
    Op& copy = copies_[index_of(&op)] = op;
    copy.a = op.d;
    copy.d = op.d + kAffineLanes;
    copy.effect = op.x == 8 ? Effect::Lanes8 : Effect::Lanes4;
  }
  find_leaders();
  find_live();
  find_live_before();
  find_jumps();
}

const Op& Flow::plain(uint32_t op) const {
  const Op& at = program_.ops[op];
  if (at.run == &run_materialize) return copies_.at(op);
  if (!meanings_[op] || meanings_[op]->does != Does::LoadFused) return at;
  return *static_cast<const Op*>(at.data);
}

bool Flow::is_constant(uint32_t slot, uint64_t* bits) const {
  if (slot + 8 > program_.image.size() || slots_.find(slot)) return false;
  for (const SpecialSlot& special : program_.specials) {
    if (special.offset == slot) return false;
  }
  for (const ParameterSlot& parameter : program_.parameters) {
    if (parameter.offset == slot) return false;
  }
  // The image is zero where there is no constant. So a zero proves nothing: an Op with several
  // results (ld.v2) may write a slot that only its data names.
  std::memcpy(bits, program_.image.data() + slot, 8);
  return *bits != 0;
}

bool Flow::is_lane_constant(uint32_t slot, uint32_t bytes, uint64_t* bits) const {
  const uint32_t size = bytes * kWarpSize;
  if (slot + size > program_.image.size() || !is_constant(slot, bits)) return false;
  const std::byte* at = program_.image.data() + slot;
  *bits = 0;
  std::memcpy(bits, at, bytes);
  return *bits != 0 && std::memcmp(at, at + bytes, size - bytes) == 0;
}

std::vector<uint32_t> Flow::followers(uint32_t op) const {
  const Op& at = program_.ops[op];
  const auto count = static_cast<uint32_t>(program_.ops.size());
  std::vector<uint32_t> next;
  const bool always = meanings_[op] && meanings_[op]->does == Does::Branch;
  const auto add = [&](uint32_t next_op) {
    if (next_op < count) next.push_back(next_op);
  };
  if (!always) add(op + 1);
  if (at.run == &run_guard_next || is_compare_affine(at.run)) add(op + 2);
  if (is_index_check(at.run)) add(op + 1 + at.d);
  if (at.target) next.push_back(index_of(at.target));
  return next;
}

void Flow::find_leaders() {
  leader_.assign(program_.ops.size() + 1, false);
  leader_[program_.warp_start] = true;
  for (uint32_t i = 0; i < program_.ops.size(); ++i) {
    if (program_.ops[i].target) leader_[index_of(program_.ops[i].target)] = true;
    if (meanings_[i] && !branches(meanings_[i])) continue;
    leader_[i + 1] = true;  // perhaps nothing branches there
    for (uint32_t next : followers(i)) leader_[next] = true;
  }
}

void Flow::step_back(uint32_t index, std::vector<uint64_t>& live) const {
  const Op& op = plain(index);
  const Meaning* meaning = meanings_[index];
  const auto set = [&](uint32_t slot, bool value) {
    const uint32_t* found = slots_.find(slot);
    if (!found) return;
    const uint64_t bit = uint64_t{1} << *found % 64;
    uint64_t& word = live[*found / 64];
    word = value ? word | bit : word & ~bit;
  };
  if (is_warpwide(meaning)) {
    Touched touched;
    meaning->touches(op, touched);
    for (const Touched::Part& part : touched.writes) set(part.slot, false);
    for (const Touched::Part& part : touched.reads) set(part.slot, true);
    return;
  }
  if (const Elements* elements = elements_of(op, meaning)) {
    for (uint32_t e = 0; e < elements->count; ++e) set(elements->slots[e], is_store(meaning));
    set(op.a, true);
    return;
  }
  if (writes_d(op, meaning)) set(op.d, false);
  if (!meaning && op.data) {
    if (op.effect == Effect::Scalar) {
      for (const AffineTerm& term : static_cast<const AffineOp*>(op.data)->terms)
        set(term.offset, true);
    } else if (is_compare_affine(op.run)) {
      for (const AffineTerm& term : compared(op)) set(term.offset, true);
    } else {  // it may read anything
      std::fill(live.begin(), live.end(), ~uint64_t{0});
    }
  }
  set(op.a, true);
  set(op.b, true);
  set(op.c, true);
  if (!writes_d(op, meaning)) set(op.d, true);
}

void Flow::find_live() {
  const auto count = static_cast<uint32_t>(program_.ops.size());
  for (uint32_t i = 0; i < count; ++i) {
    const auto add = [&](uint32_t slot) { slots_.add(slot, slots_.size()); };
    const Elements* elements = elements_of(plain(i), meanings_[i]);
    for (uint32_t e = 0; elements && e < elements->count; ++e) add(elements->slots[e]);
    if (is_warpwide(meanings_[i])) {
      Touched touched;
      meanings_[i]->touches(program_.ops[i], touched);
      for (const Touched::Part& part : touched.writes) add(part.slot);
      continue;
    }
    if (writes_d(plain(i), meanings_[i]) || (!meanings_[i] && plain(i).d)) add(plain(i).d);
  }
  const size_t words = (slots_.size() + 63) / 64;
  run_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (i == 0 || leader_[i]) runs_.push_back({i, i, {}, {}});
    runs_.back().end = i + 1;
    run_of_[i] = static_cast<uint32_t>(runs_.size() - 1);
  }
  for (Run& run : runs_) run.live_in.assign(words, 0), run.live_out.assign(words, 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = runs_.size(); r-- > 0;) {
      Run& run = runs_[r];
      std::vector<uint64_t> live(words, 0);
      for (uint32_t next : followers(run.end - 1)) {
        const auto& more = runs_[run_of_[next]].live_in;
        for (size_t w = 0; w < words; ++w) live[w] |= more[w];
      }
      run.live_out = live;
      for (uint32_t i = run.end; i-- > run.begin;) step_back(i, live);
      changed |= live != run.live_in;
      run.live_in = std::move(live);
    }
  }
}

bool Flow::writes_one(uint32_t op) const { return writes_d(plain(op), meanings_[op]); }

const Elements* Flow::elements_written(uint32_t op) const {
  const Elements* elements = elements_of(plain(op), meanings_[op]);
  return elements && !is_store(meanings_[op]) ? elements : nullptr;
}

// A plan asks for liveness again and again.
void Flow::find_live_before() {
  constexpr size_t kMostWords = 1 << 18;
  const size_t words = (slots_.size() + 63) / 64;
  if (words * program_.ops.size() > kMostWords) return;
  live_before_.resize(words * program_.ops.size());
  for (const Run& run : runs_) {
    std::vector<uint64_t> live = run.live_out;
    for (uint32_t i = run.end; i-- > run.begin;) {
      step_back(i, live);
      std::copy(live.begin(), live.end(), live_before_.begin() + static_cast<ptrdiff_t>(i * words));
    }
  }
}

// A load or a store whose 32 addresses the interpreter checks one by one.
bool Flow::is_scattered(uint32_t op) const {
  const Does does = meanings_[op]->does;
  const uint8_t known = kAddressUniform | kAddressAffine | kAddressRows;
  return (does == Does::Load || does == Does::Store) && !(plain(op).x & known);
}

bool Flow::is_live(uint32_t slot, uint32_t op) const {
  const uint32_t* found = slots_.find(slot);
  if (!found || op >= program_.ops.size()) return true;
  if (!live_before_.empty()) {
    const size_t words = (slots_.size() + 63) / 64;
    return live_before_[op * words + *found / 64] >> *found % 64 & 1;
  }
  const Run& run = runs_[run_of_[op]];
  std::vector<uint64_t> live = run.live_out;
  for (uint32_t i = run.end; i-- > op;) step_back(i, live);
  return live[*found / 64] >> *found % 64 & 1;
}

void Flow::find_jumps() {
  for (uint32_t i = 0; i < program_.ops.size(); ++i) {
    for (uint32_t next : followers(i)) {
      if (next != i + 1) jumps_.push_back({next, i});
    }
  }
  std::sort(jumps_.begin(), jumps_.end(), [](const Jump& a, const Jump& b) { return a.to < b.to; });
}

uint32_t Flow::cut(uint32_t begin, uint32_t end) const {
  const auto first = std::upper_bound(jumps_.begin(), jumps_.end(), begin,
                                      [](uint32_t op, const Jump& jump) { return op < jump.to; });
  for (bool changed = true; changed;) {
    changed = false;
    for (auto jump = first; jump != jumps_.end() && jump->to < end; ++jump) {
      if (jump->from >= begin && jump->from < end) continue;
      end = jump->to;
      changed = true;
      break;
    }
  }
  return end;
}

bool Flow::is_end(uint32_t op) const {
  return op < program_.ops.size() && program_.ops[op].run == &run_exit;
}

bool Flow::meets(const Phase& phase) const {
  const auto is_barrier = [&](uint32_t op) {
    return op < program_.ops.size() && program_.ops[op].run == &run_barrier;
  };
  if (is_barrier(phase.end)) return true;
  for (uint32_t i = phase.begin; i < phase.end; ++i) {
    if (branches(meanings_[i]) && is_barrier(index_of(program_.ops[i].target))) return true;
  }
  return false;
}

bool Flow::is_whole(const Phase& phase) const {
  const bool has_own = !program_.specials.empty() && program_.specials[0].tier == Tier::Warp;
  if (phase.begin != program_.warp_start || phase.loops || !is_end(phase.end) || has_own ||
      program_.has_calls || program_.has_barrier || program_.local_bytes)
    return false;
  for (uint32_t i = phase.begin; i < phase.end; ++i) {
    if (!branches(meanings_[i])) continue;
    const uint32_t target = index_of(program_.ops[i].target);
    if (target <= i || (target >= phase.end && !is_end(target))) return false;
  }
  return true;
}

bool Flow::only_store(uint32_t begin, uint32_t end) const {
  if (!is_reached_within(begin, begin)) return false;  // entered from elsewhere, without a mask
  for (uint32_t i = begin; i < end; ++i) {
    if (!is_store(meanings_[i]) || (i > begin && leader_[i])) return false;
    if (!is_atomic(meanings_[i])) continue;
    // It must be the last one: if the check of a later store failed, it would be done again.
    const Op& op = program_.ops[i];
    if (i + 1 != end || !meanings_[i]->change || (op.y && is_live(op.d, i + 1))) return false;
  }
  return begin < end;
}

// After such an Op the predicate no longer says which lanes came here.
bool Flow::writes_predicate_of(uint32_t branch, uint32_t op) const {
  bool writes = false;
  for_each_written(op, [&](uint32_t slot) { writes |= slot == program_.ops[branch].a; });
  return writes;
}

bool Flow::only_compute(uint32_t begin, uint32_t end) const {
  if (!is_reached_within(begin, begin)) return false;
  uint32_t stores = end;
  while (stores > begin && is_store(meanings_[stores - 1])) --stores;
  if (!only_store(stores, end)) return false;
  // If the check of an atomic failed after a store, everything before the store would run again,
  // and load what it stored.
  if (end - stores > 1 && is_atomic(meanings_[end - 1])) return false;
  for (uint32_t i = begin; i < stores; ++i) {
    if ((i > begin && leader_[i]) || !fits(meanings_[i]) || is_warpwide(meanings_[i]) ||
        meanings_[i]->does == Does::Lanewise)
      return false;
    if (writes_predicate_of(begin - 1, i)) return false;
    const Elements* elements = elements_of(plain(i), meanings_[i]);
    for (uint32_t e = 0; elements && e < elements->count; ++e) {
      if (is_live(elements->slots[e], end)) return false;
    }
    if (!elements && is_live(plain(i).d, end)) return false;
  }
  return stores == begin || !leader_[stores];
}

// Is the Op reached only from before it, by branches from `begin` on?
bool Flow::is_reached_within(uint32_t op, uint32_t begin) const {
  auto jump = std::lower_bound(jumps_.begin(), jumps_.end(), op,
                               [](const Jump& each, uint32_t to) { return each.to < to; });
  for (; jump != jumps_.end() && jump->to == op; ++jump) {
    if (jump->from < begin || jump->from >= op) return false;
  }
  return true;
}

bool Flow::may_merge(uint32_t begin, uint32_t end) const {
  constexpr uint32_t kMostOps = 64;
  constexpr size_t kMostMerged = 4;
  if (begin >= end || end - begin > kMostOps) return false;
  // How many times the Ops change to stores and back. If a check fails, all of them run again from
  // the branch, so what they have stored must not be loaded again.
  uint32_t turns = 0;
  bool loaded = false, leaves = false;
  std::array<uint32_t, kMostMerged> ends{end};  // of the branch, and of those inside it
  size_t inside = 0;
  for (uint32_t i = begin; i < end; ++i) {
    const Meaning* m = meanings_[i];
    if ((leader_[i] && !is_reached_within(i, begin)) || !m || is_atomic(m)) return false;
    while (i >= ends[inside]) --inside;
    if (branches(m)) {  // a nested condition
      const uint32_t target = index_of(program_.ops[i].target);
      if (m->does == Does::Branch || target <= i + 1 || target > ends[inside] || turns || leaves ||
          i + 1 == end || inside + 1 == ends.size())
        return false;
      ends[++inside] = target;
      continue;
    }
    if (is_store(m) != (turns % 2 == 1)) ++turns;
    if (turns > 3 || (turns == 2 && loaded) || (is_store(m) && leaves)) return false;
    if (is_store(m)) continue;
    if (!fits(m) || is_warpwide(m) || m->type == Number::F64 || m->from == Number::F64)
      return false;
    const Elements* elements = elements_of(plain(i), m);
    const bool loads = elements || m->does == Does::Load || m->does == Does::LoadScalar ||
                       m->does == Does::LoadFused;
    if (leaves && (loads || may_start_again(*m))) return false;
    if (writes_predicate_of(begin - 1, i)) return false;
    loaded |= loads && turns == 0;
    // Results that are live after the branch, or here if all of it runs again.
    bool is_read = false;
    for_each_written(i, [&](uint32_t slot) {
      for (size_t k = 0; k <= inside; ++k) is_read |= is_live(slot, ends[k]);
      leaves |= is_live(slot, begin - 1) || is_live(slot, end);
    });
    if (is_read && (elements || plain(i).effect == Effect::Scalar)) return false;
  }
  return true;
}

// Are all Ops known, and is it entered only at the top?
bool Flow::is_loop(uint32_t begin, uint32_t end, bool stores) const {
  // The first Op is replaced, so it must not be a branch.
  if (!fits(meanings_[begin]) && !(stores && is_store(meanings_[begin]))) return false;
  for (uint32_t i = begin; i < end; ++i) {
    const bool known = fits(meanings_[i]) || (stores && is_store(meanings_[i]));
    if (!branches(meanings_[i]) && !known) return false;
    if (branches(meanings_[i]) && program_.ops[i].y) return false;  // it waits for others
  }
  return cut(begin, end) == end;
}

void Flow::add_loops(bool stores, std::vector<bool>& taken, std::vector<Phase>& to) const {
  std::vector<Phase> loops;
  for (uint32_t i = program_.warp_start; i < program_.ops.size(); ++i) {
    if (!branches(meanings_[i]) || index_of(program_.ops[i].target) > i) continue;
    const uint32_t begin = index_of(program_.ops[i].target);
    if (begin >= program_.warp_start && is_loop(begin, i + 1, stores))
      loops.push_back({begin, i + 1, true, stores, true});
  }
  // Outer loops first.
  std::sort(loops.begin(), loops.end(),
            [](const Phase& a, const Phase& b) { return a.end - a.begin > b.end - b.begin; });
  for (const Phase& loop : loops) {
    if (std::any_of(taken.begin() + loop.begin, taken.begin() + loop.end, [](bool t) { return t; }))
      continue;
    std::fill(taken.begin() + loop.begin, taken.begin() + loop.end, true);
    to.push_back(loop);
  }
}

bool Flow::begins_with_branch(uint32_t op) const {
  return branches(meanings_[op]) && meanings_[op]->does != Does::Branch &&
         index_of(program_.ops[op].target) > op;
}

// The run of known Ops that begins here. It may contain forward branches, and may end with a
// backward one.
Phase Flow::run_from(uint32_t begin, const std::vector<bool>& taken) const {
  // What an unrolled kernel keeps in registers of the GPU would need more spill slots than there
  // are, and the time of compiling it would be lost. Between phases, values are in the frame.
  constexpr uint32_t kMostOps = 384;
  uint32_t end = begin;
  for (; end < program_.ops.size() && end - begin < kMostOps && !taken[end]; ++end) {
    if (fits(meanings_[end]) || is_store(meanings_[end])) continue;
    if (!branches(meanings_[end]) || program_.ops[end].y) break;  // y: it waits for others
    if (end == begin && !begins_with_branch(begin)) break;
    if (index_of(program_.ops[end].target) > end) continue;
    if (index_of(program_.ops[end].target) < begin) ++end;
    break;
  }
  end = cut(begin, end);
  Phase out{begin, end};
  for (uint32_t i = begin; i < end; ++i) {
    out.stores |= is_store(meanings_[i]);
    out.branches |= branches(meanings_[i]);
  }
  return out;
}

bool Flow::runs_alone(uint32_t op) const {
  const Meaning* m = meanings_[op];
  if (!m || is_atomic(m) || m->does == Does::BranchIndexed) return false;
  if (branches(m)) return program_.ops[op].y == 0;  // otherwise it waits for others
  return !is_warpwide(m);
}

// Lanes that wait for each other or exchange values stay together. One lane may load in the loop
// what another one stores: by accesses that say so, or in global memory, where programs often do so
// without saying it. In shared memory this would need a barrier.
Flow::Seen Flow::seen_by_others(uint32_t begin, uint32_t end) const {
  bool loads = false, stores = false, anywhere = false;
  for (uint32_t i = begin; i < end; ++i) {
    const Meaning* m = meanings_[i];
    const std::string_view opcode = program_.sites[program_.ops[i].site].opcode;
    for (const char* strong : {"volatile", "relaxed", "acquire", "release", "mmio", ".sync",
                               "barrier", "fence", "membar", "activemask"}) {
      if (opcode.find(strong) != std::string_view::npos) return {.is_seen = true};
    }
    const auto space = static_cast<ptx::Space>(plain(i).z);
    const bool is_load =
        m && (m->does == Does::Load || m->does == Does::LoadVector || m->does == Does::LoadScalar ||
              m->does == Does::LoadScalarVector || m->does == Does::LoadFused);
    if (!(is_load || is_store(m)) || is_atomic(m) || space == ptx::Space::Local ||
        space == ptx::Space::Shared)
      continue;
    anywhere |= space == ptx::Space::Generic;
    loads |= is_load && space != ptx::Space::Const && space != ptx::Space::Param &&
             opcode.find(".nc") == std::string_view::npos;
    stores |= is_store(m);
  }
  const bool both = loads && stores;
  return {both && anywhere, both};
}

// The only Op of the run that is entered from outside; no value if there are several.
std::optional<uint32_t> Flow::entry_of(uint32_t begin, uint32_t end) const {
  std::optional<uint32_t> entry;
  if (begin > 0) {
    const std::vector<uint32_t> next = followers(begin - 1);
    if (std::find(next.begin(), next.end(), begin) != next.end()) entry = begin;
  }
  for (const Jump& jump : jumps_) {
    const bool comes = jump.to >= begin && jump.to < end && (jump.from < begin || jump.from >= end);
    if (comes && entry.value_or(jump.to) != jump.to) return std::nullopt;
    if (comes) entry = jump.to;
  }
  return entry;
}

// Grows the loop from a backward branch over the branches that belong to it. Returns the largest
// loop that has a single entry.
std::optional<Phase> Flow::loop_of(const Jump& back) const {
  constexpr uint32_t kMostOps = 4096, kMostSteps = 16;
  std::optional<Phase> out;
  uint32_t begin = back.to, end = back.from + 1;
  for (uint32_t step = 0; step < kMostSteps && end - begin <= kMostOps; ++step) {
    if (const auto entry = entry_of(begin, end)) {
      out = Phase{begin, end, true, true, true};
      out->entry = *entry;
    }
    const uint32_t before = begin, behind = end;
    for (const Jump& jump : jumps_) {
      if (jump.from >= before && jump.from < behind) begin = std::min(begin, jump.to);
      if (jump.to >= before && jump.to < behind && jump.from >= behind)
        end = std::max(end, jump.from + 1);
    }
    if (begin == before && end == behind) break;
  }
  return out;
}

std::vector<Phase> Flow::loops() const {
  constexpr size_t kMostJumps = 1024;
  std::vector<Phase> out;
  if (jumps_.size() > kMostJumps) return out;
  for (const Jump& jump : jumps_) {
    if (jump.from < jump.to || jump.to < program_.warp_start) continue;
    std::optional<Phase> loop = loop_of(jump);
    if (!loop || loop->entry < program_.warp_start) continue;
    const Seen seen = seen_by_others(loop->begin, loop->end);
    if (seen.is_seen) continue;
    loop->keeps_apart = seen.in_global;
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const Phase& other) { return other.entry == loop->entry; });
    if (same == out.end())
      out.push_back(*loop);
    else if (loop->end - loop->begin > same->end - same->begin)
      *same = *loop;
  }
  return out;
}

std::vector<Phase> Flow::phases() const {
  const auto count = static_cast<uint32_t>(program_.ops.size());
  std::vector<Phase> all;
  std::vector<bool> taken(count, false);
  add_loops(false, taken, all);
  add_loops(true, taken, all);
  for (uint32_t i = program_.warp_start; i < count;) {
    const Phase phase = run_from(i, taken);
    uint32_t scattered = 0;
    for (uint32_t op = i; op < phase.end; ++op) scattered += is_scattered(op);
    const uint32_t fewest = meets(phase)                   ? kFewestAtBarrier
                            : scattered || is_whole(phase) ? kFewestWithLanes
                                                           : kFewestOps;
    if (phase.end - i >= fewest) all.push_back(phase);
    i = std::max(phase.end, i + 1);
  }
  return all;
}

}  // namespace kiln::engine
