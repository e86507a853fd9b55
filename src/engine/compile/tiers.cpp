// SPDX-License-Identifier: Apache-2.0
// Which Ops replace those of a program that has run long?
#include <algorithm>

#include "engine/compile/stretches.h"
#include "engine/compile/target.h"
#include "engine/memory/spare.h"

namespace kiln::engine {
namespace {

// Longer programs are not compiled: liveness is recorded for each basic block and slot.
constexpr size_t kMostOps = 20'000;

bool jumps_by_table(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) {
    const Meaning* meaning = meaning_of(op.run);
    return meaning && meaning->does == Does::BranchIndexed;
  });
}

}  // namespace

// A list that only grows, without a lock, because the process may fork at any time.
struct KeptFacts {
  std::atomic<const Tiers*> of;  // null: the program is gone, and `last` is valid
  KernelFacts last;
  KeptFacts* next = nullptr;
};

namespace {

std::atomic<bool> keeps_facts{false};
std::atomic<KeptFacts*> all_facts{nullptr};

KeptFacts* keep(const Tiers* tiers) {
  auto* kept = new KeptFacts{tiers, {}, all_facts.load()};
  while (!all_facts.compare_exchange_weak(kept->next, kept)) {
  }
  return kept;
}

}  // namespace

void keep_facts() { keeps_facts = true; }

std::vector<KernelFacts> kept_facts() {
  std::vector<KernelFacts> out;
  for (const KeptFacts* each = all_facts.load(); each; each = each->next) {
    const Tiers* tiers = each->of.load();
    out.push_back(tiers ? tiers->kernel_facts() : each->last);
  }
  std::reverse(out.begin(), out.end());  // in the order in which they were added
  return out;
}

Tiers::~Tiers() {
  if (!kept_) return;
  kept_->last = kernel_facts();
  kept_->of = nullptr;
}

Tiers::Tiers(const Program& program) : Tiering(program.ops.data()), program_(program) {}

void Tiers::rise() noexcept {
  try {
    replace();
  } catch (...) {
    // No memory: the interpreter continues.
  }
}

void Tiers::replace() {
  // Jump tables contain Ops of the program itself, not of the copy.
  if (program_.ops.size() > kMostOps || jumps_by_table(program_)) return;
  flow_ = std::make_unique<Flow>(program_);
  const std::vector<Phase> phases = flow_->phases();
  if (keeps_facts) kept_ = keep(this);
  if (phases.empty()) return;
  ops_ = program_.ops;
  for (Op& op : ops_) {
    if (op.target) op.target = &ops_[flow_->index_of(op.target)];
  }
  const std::vector<Phase> loops = flow_->loops();
  for (const Phase& phase : phases) {
    const auto begins = [&](const Phase& loop) { return loop.entry == phase.begin; };
    const auto loop = std::find_if(loops.begin(), loops.end(), begins);
    add_stretch(phase, loop == loops.end() ? nullptr : &*loop);
  }
  for (const Phase& loop : loops) {  // those whose entry is in no phase
    const auto has_it = [&](const Phase& phase) {
      return phase.begin <= loop.entry && loop.entry < phase.end;
    };
    if (std::any_of(phases.begin(), phases.end(), has_it)) continue;
    Stretch& stretch = add_stretch({loop.entry, loop.entry}, &loop);
    stretch.none_for_all = stretch.none_for_some = true;
  }
  use(ops_.data());
}

Stretch& Tiers::add_stretch(const Phase& phase, const Phase* loop) {
  auto stretch = std::make_unique<Stretch>();
  stretch->tiers = this;
  stretch->phase = phase;
  stretch->branches_first = flow_->begins_with_branch(phase.begin);
  stretch->original = original(phase.begin);
  stretch->copy = &ops_[phase.begin];
  if (loop) {
    auto own = std::make_unique<Stretch>(*stretch);
    own->plain = nullptr;
    own->phase = *loop;
    own->versions[0].taken = {};
    own->versions[0].taken.patterns = false;
    own->versions[0].taken.alone = true;
    stretch->alone = std::make_unique<Alone>(std::move(own));
    stretch->alone->by_warps = phase.loops;
  }
  ops_[phase.begin].run = &run_stretch;
  ops_[phase.begin].data = stretch.get();
  ops_[phase.begin].effect = Effect::MaskAware;  // run_stretch() checks the mask itself
  stretches_.push_back(std::move(stretch));
  return *stretches_.back();
}

CompiledFacts Tiers::facts() const {
  CompiledFacts out;
  // Compilation has not begun, or there is nothing to compile.
  if (Tiering::ops() == program_.ops.data()) return out;
  for (const auto& stretch : stretches_) {
    bool has_code = false, is_refused = false, has_lost = false;
    const auto add = [&](const Compiled& each) {
      has_code |= each.code_bytes.load() != 0;
      is_refused |= each.refused.load();
      has_lost |= each.losses.load(std::memory_order_relaxed) != 0;
      out.entered += each.entered.load(std::memory_order_relaxed);
      out.missed += each.missed.load(std::memory_order_relaxed);
      out.compiling_ns += each.compiling_ns.load();
      out.code_bytes += each.code_bytes.load();
      out.asked += each.asked.load();
    };
    const auto add_all = [&](const Stretch& of) {
      for (const Compiled& each : of.versions) add(each);
      for (const LaterVersion* each = of.later.load(); each; each = each->next) {
        add(each->code);
        add(each->second);
        out.later += each->code.code_bytes.load() != 0;
      }
      for (const Compiled* each : {&of.some, &of.stood_in, &of.apart_all, &of.apart}) {
        add(*each);
        out.masked += each->entered.load() - each->missed.load();
      }
    };
    add_all(*stretch);
    if (stretch->alone) {
      const Compiled& lanes = stretch->alone->loop->versions[0];
      add(lanes);
      out.alone += lanes.entered.load(std::memory_order_relaxed) -
                   lanes.missed.load(std::memory_order_relaxed);
    }
    if (stretch->subnormals.has_double.load(std::memory_order_acquire)) {
      const uint64_t before = out.entered;
      add_all(*stretch->by_double);
      out.by_double += out.entered - before;
    }
    out.refused += is_refused;
    // Only a loop for code of one lane begins here.
    if (stretch->phase.begin == stretch->phase.end) continue;
    ++out.stretches;
    out.compiled += has_code;
    out.losing += has_lost;
  }
  return out;
}

KernelFacts Tiers::kernel_facts() const {
  KernelFacts out{program_.name, facts(), {}};
  std::vector<bool> in_stretch(program_.ops.size(), false);
  for (const auto& stretch : stretches_) {
    std::fill(in_stretch.begin() + stretch->phase.begin, in_stretch.begin() + stretch->phase.end,
              true);
  }
  for (uint32_t i = program_.warp_start; i < program_.ops.size(); ++i) {
    if (!in_stretch[i]) ++out.interpreted[std::string(program_.sites[program_.ops[i].site].opcode)];
  }
  return out;
}

namespace {

// For code with stand-ins, the plan is made again with the stand-ins in place, because the values
// of lanes that are elsewhere must not shape it.
std::optional<Plan> plan_for(const Stretch& stretch, Compiled& compiled, Warp& warp) {
  const Flow& flow = stretch.tiers->flow();
  std::optional<Plan> plan = make_plan(flow, stretch.phase, warp, compiled.taken);
  if (!plan || !compiled.stands_in) return plan;
  compiled.stand_ins = stand_in_slots(*plan);
  if (compiled.stand_ins.empty()) return std::nullopt;
  const StandIns here(warp, compiled.stand_ins);
  plan = make_plan(flow, stretch.phase, warp, compiled.taken);
  if (!plan || stand_in_slots(*plan).size() != compiled.stand_ins.size()) return std::nullopt;
  return plan;
}

// Does the same code exist already? Its assumptions have failed, and would fail again.
bool is_made(Stretch& stretch, const Compiled& compiled) {
  if (compiled.stands_in) return false;
  const bool is_later = stretch.is_later(compiled);
  const auto is_same = [&](Compiled& other) {
    // The plan of another thread's code may be read only after it has been made.
    const Compiled::State state = other.state.load(std::memory_order_acquire);
    const bool is_known = state == Compiled::State::Ready || state == Compiled::State::Resting ||
                          state == Compiled::State::Off;
    if (&other == &compiled || !is_known || other.plan != compiled.plan) return false;
    // In another launch, code that rests because it failed may be what is missing.
    if (is_later && other.fails.load(std::memory_order_relaxed))
      other.rest.store(0, std::memory_order_relaxed);
    return true;
  };
  for (LaterVersion* each = stretch.later.load(); each; each = each->next) {
    if (is_same(each->code) || is_same(each->second)) return true;
  }
  return std::any_of(std::begin(stretch.versions), std::end(stretch.versions), is_same);
}

// Memory for the lists of one compilation.
class Lists {
 public:
  Lists() : all_(Spare<Scratch>::take()), here_(std::in_place, *all_) {}
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  ~Lists() {
    here_.reset();
    Spare<Scratch>::give_back(std::move(all_));
  }

 private:
  std::unique_ptr<Scratch> all_;
  std::optional<Scratch::Use> here_;
};

// The library of each level emits code of that level: 512 bits only if the interpreter uses them
// too.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
constexpr uint32_t kMostVectorLanes = 16;
#else
constexpr uint32_t kMostVectorLanes = 8;
#endif

// Returns false if there is no code, because it cannot be made or would not pay.
bool compile(Stretch& stretch, Compiled& compiled, Warp& warp) noexcept {
  try {
    const Lists lists;
    const Flow& flow = stretch.tiers->flow();
    std::optional<Plan> plan = plan_for(stretch, compiled, warp);
    if (!plan) return false;
    compiled.plan = number_of(*plan);
    if (is_made(stretch, compiled)) return false;
    // A test that requests compiled code from the first block on always gets it.
    const bool has_to_pay = warp.block->grid->settings.compile_after != 0;
    if (has_to_pay && !compiled.taken.apart && compiled.taken.all_lanes && !may_pay_apart(*plan))
      stretch.is_short = true;
    compiled.pays = !has_to_pay || plan->alone || may_pay(*plan);
    if (!compiled.pays) return false;
    const CacheIndex cache_index = [&](uint32_t op) {
      Worker& worker = *warp.worker;
      return static_cast<uint32_t>(&worker.cached(touched_as(stretch, op)) -
                                   &worker.cached(nullptr));
    };
    auto made = emit(flow, *plan, cache_index, kMostVectorLanes);
    if (!made) return false;
    compiled.pays = !has_to_pay || plan->alone || pays(*plan, *made);
    if (!compiled.pays) return false;
    if (plan->alone)
      compiled.worth.saved.assign(made->exits.size(), 0);
    else
      compiled.worth = worth_of(*plan, *made);
    size_t saved = 0;
    for (const Emitted::Saved& each : made->saved) saved += each.bytes;
    if (saved > kMostSavedBytes || made->prepared.size() + 3 * made->reaches.size() > kMostWords)
      return false;
    compiled.refused = !compiled.memory.fill(made->bytes);
    if (compiled.refused) return false;
    compiled.code_bytes = made->bytes.size();
    compiled.asked = made->asked;
    compiled.seen = std::make_unique<std::atomic<uint64_t>[]>(made->reaches.size());
    made->bytes = {};
    for (size_t i = 0; i < made->exits.size(); ++i) {
      const Exit& exit = made->exits[i];
      compiled.ways.push_back({&stretch.tiers->all()[exit.target], exit.backward, exit.early,
                               flow.is_end(exit.target), exit.disagrees, compiled.worth.saved[i]});
    }
    compiled.made = std::move(made);
    if (compiled.made->checks_itself)
      compiled.own.store(compiled.memory.begin(), std::memory_order_release);
  } catch (...) {
    return false;  // no memory: the interpreter continues
  }
  return true;
}

// CPU time of this thread, because other threads may run on its core meanwhile.
uint64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

Compiled::State compile_timed(Stretch& stretch, Compiled& compiled, Warp& warp) noexcept {
  const uint64_t begin = cpu_ns();
  const Compiled::State state =
      compile(stretch, compiled, warp) ? Compiled::State::Ready : Compiled::State::Off;
  compiled.compiling_ns = cpu_ns() - begin;
  compiled.state.store(state, std::memory_order_release);
  return state;
}

CompiledFacts compiled_facts(const Program& program) {
  return program.tiering ? static_cast<const Tiers*>(program.tiering.get())->facts()
                         : CompiledFacts{};
}

bool compiles() {
  static const bool answer = has_target();
  return answer;
}

std::shared_ptr<Tiering> make_tiering(const Program& program) {
  return compiles() ? std::make_shared<Tiers>(program) : nullptr;
}

}  // namespace kiln::engine
