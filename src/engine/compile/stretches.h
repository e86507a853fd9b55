// SPDX-License-Identifier: Apache-2.0
// How does a phase run as machine code? Its first Op is replaced by one that enters the code. The
// other Ops stay, for warps that cannot enter it.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/compile/alone.h"
#include "engine/compile/emit.h"
#include "engine/compile/facts.h"
#include "engine/compile/stand_ins.h"
#include "engine/memory/code_memory.h"
#include "engine/program/tiering.h"

namespace kiln::engine {

class Tiers;

// Machine code of a phase, and how well it does.
struct Compiled {
  static constexpr int32_t kNotWeighed = std::numeric_limits<int32_t>::min();
  enum class State : uint8_t { New, Compiling, Ready, Resting, Off };

  Taken taken;
  uint64_t plan = 0;  // number_of(); 0: none has been made
  std::atomic<State> state{State::New};
  // `missed`: entries at which an assumption or a check failed. `..._before`: of these, those
  // before the code rested.
  std::atomic<uint32_t> entered{0}, missed{0}, entered_before{0}, missed_before{0};
  std::atomic<bool> fails{false};  // it rests because most entries missed
  std::atomic<uint64_t> compiling_ns{0}, code_bytes{0};
  std::atomic<uint32_t> asked{0};    // Emitted::asked
  std::atomic<bool> refused{false};  // the system gave no executable memory
  // False: no code is made, because the interpreter is as fast.
  bool pays = true;
  // Estimates. `balance`: savings since the entry with the number `weighed`; `mean`: savings per
  // entry when they were last evaluated. `losses`: how many times the code has rested; `rest`:
  // entries to skip.
  Worth worth;
  std::atomic<int64_t> balance{0};
  std::atomic<uint32_t> weighed{0};
  std::atomic<int32_t> mean{kNotWeighed};
  std::atomic<uint32_t> losses{0}, rest{0};
  std::unique_ptr<Emitted> made;
  struct Way {
    const Op* next;
    bool backward, early;  // as in Exit
    bool ends;             // all lanes end there
    bool disagrees;        // as in Exit
    int32_t saved;         // as in Worth
  };
  std::vector<Way> ways;  // by exit
  // The code, if it checks itself and may be entered.
  std::atomic<const void*> own{nullptr};
  // By index of Emitted::reaches: an address in the region that was used last. 0: none yet;
  // kNotThere: looked up without success.
  std::unique_ptr<std::atomic<uint64_t>[]> seen;
  CodeMemory memory;
  bool stands_in = false;
  std::vector<StandInSlot> stand_ins;
};

// Code like the first version, for a later launch in which that did not hold: of an image of
// another width, say. And code like the second, for the other warps of these launches.
struct LaterVersion {
  Compiled code, second;
  LaterVersion* next = nullptr;
};

// How do the first version and those like it do in this launch?
struct LaunchFacts {
  // Hold: for many warps, if not for all. Fail: for none of the many warps that tried all code.
  // Never: for no warp of all launches.
  enum class State : uint8_t { Unknown, Hold, Fail, Never };
  std::atomic<uint64_t> epoch{0};  // Grid::epoch
  std::atomic<uint64_t> hits{0};   // in all launches, up to the last miss
  std::atomic<uint32_t> misses{0}, made{0};
  std::atomic<uint32_t> allowed{0};  // misses between many hits
  std::atomic<State> state{State::Unknown};
  std::atomic<uint32_t> missed{0};  // in all launches, and not made up for by hits
};

// Values that shrink in each iteration end as subnormal ones. If these are slow, code that
// computes f32 in f64 may be ten times as fast; otherwise it is slower. So both are timed once the
// CPU has reported subnormal values.
struct Subnormals {
  enum class Mode : uint8_t { Plain, TimesPlain, TimesDouble, Double };
  std::atomic<Mode> mode{Mode::Plain};
  std::atomic<bool> has_double{false};
  std::mutex mutex;    // protects the fields below
  uint32_t count = 0;  // looks in this mode, or timed entries
  uint32_t rest = 0;   // looks to skip
  uint32_t failed = 0;
  double least[2] = {};  // time per Op: plain, in f64
};

struct Stretch {
  Tiers* tiers = nullptr;
  Phase phase;
  bool branches_first = false;  // its first Op is a branch
  // No code exists or will be made: for warps some of whose lanes are elsewhere, and for whole
  // warps.
  std::atomic<bool> none_for_some{false}, none_for_all{false};
  // Entries of whole warps to skip, while all code for them rests.
  std::atomic<uint32_t> left_out{0};
  const Op *original = nullptr, *copy = nullptr;  // the first Op, and its replacement
  // For whole warps. Values have the pattern of the first warp, or that of a later warp for which
  // the first pattern fails, or any pattern.
  Compiled versions[3];
  std::atomic<Compiled*> favoured{versions};  // the version to try first
  std::atomic<LaterVersion*> later{nullptr};  // a list that only grows
  std::atomic<uint32_t> later_count{0};
  std::atomic<bool> second_is_like_first{false};  // its plan would be the same
  LaunchFacts launch;
  // For the favoured version: misses that later entries have not made up for, and
  // Compiled::entered at the last miss.
  std::atomic<uint32_t> misses{0}, entered_at_miss{0};
  Compiled some;      // for loops: for warps some of whose lanes are elsewhere
  Compiled stood_in;  // the same, without masks (stand_ins.h)
  // For lanes that diverge: all lanes enter, with the pattern of the first warp; or any lanes
  // enter.
  Compiled apart_all, apart;
  // How many times lanes have disagreed, in code that exits then.
  std::atomic<uint32_t> disagreed{0};
  // Lanes disagree often: code for diverging lanes comes first.
  std::atomic<bool> goes_apart{false};
  std::atomic<bool> stays_together{false};  // code for diverging lanes saves less
  std::atomic<bool> is_short{false};        // the phase is too short for it, or has none
  Subnormals subnormals;
  std::unique_ptr<Stretch> by_double;  // code that computes in f64, if subnormals.has_double
  Stretch* plain = nullptr;            // the stretch whose `by_double` this is
  std::unique_ptr<Alone> alone;        // null: no loop for code of one lane begins here

  Stretch() {
    versions[0].taken.steps_hold = true;
    versions[2].taken.patterns = false;
    some.taken.patterns = some.taken.all_lanes = false;
    stood_in.stands_in = true;
    apart.taken.patterns = apart.taken.all_lanes = false;
    apart.taken.apart = apart_all.taken.apart = true;
  }
  explicit Stretch(Stretch& of) : Stretch() {
    tiers = of.tiers;
    phase = of.phase;
    branches_first = of.branches_first;
    original = of.original, copy = of.copy;
    plain = &of;
    for (Compiled* each :
         {&versions[0], &versions[1], &versions[2], &some, &stood_in, &apart_all, &apart})
      each->taken.by_double = true;
  }
  ~Stretch() {
    for (LaterVersion* each = later.load(); each;) delete std::exchange(each, each->next);
  }
  Compiled& first() { return *favoured.load(std::memory_order_acquire); }
  // Does it assume as much as the first version? It is as fast, then.
  bool is_like_first(const Compiled& code) const {
    return code.taken.steps_hold ||
           (&code == &versions[1] && second_is_like_first.load(std::memory_order_relaxed));
  }
  bool is_later(const Compiled& code) const { return code.taken.steps_hold && &code != versions; }
};

// The Ops of a program, some of them replaced.
class Tiers final : public Tiering {
 public:
  explicit Tiers(const Program& program);
  ~Tiers() override;

  const Program& program() const { return program_; }
  const Flow& flow() const { return *flow_; }
  CompiledFacts facts() const;
  KernelFacts kernel_facts() const;
  const std::vector<Op>& all() const { return ops_; }
  // The Op of the program itself. `index` may be that of a replaced one.
  const Op* original(uint32_t index) const { return &program_.ops[index]; }
  const Op* replaced(const Op* next) const {
    const size_t index = static_cast<size_t>(next - program_.ops.data());
    return next && index < ops_.size() ? &ops_[index] : next;
  }

 private:
  void rise() noexcept override;
  void replace();
  Stretch& add_stretch(const Phase& phase, const Phase* loop);

  const Program& program_;
  std::unique_ptr<Flow> flow_;
  std::vector<Op> ops_;
  std::vector<std::unique_ptr<Stretch>> stretches_;
  struct KeptFacts* kept_ = nullptr;  // null: not requested
};

// The Op that the interpreter runs, by which it caches regions: the one of the copy, but the
// original for the first Op of the phase.
inline const Op* touched_as(const Stretch& stretch, uint32_t op) {
  return op == stretch.phase.begin ? stretch.tiers->original(op) : &stretch.tiers->all()[op];
}
// The most bytes that an entry saves, to restore them if the code bails out.
constexpr size_t kMostSavedBytes = 16 << 10;
// Makes the code, and records how long it took (tiers.cpp).
Compiled::State compile_timed(Stretch& stretch, Compiled& compiled, Warp& warp) noexcept;

// The handler of a replaced Op. Op::data is its Stretch.
const Op* run_stretch(Warp& warp, const Op* op);

}  // namespace kiln::engine
