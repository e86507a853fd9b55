// SPDX-License-Identifier: Apache-2.0
// How does a phase run as machine code? Its first Op is replaced by one that enters the code; the
// others stay, for warps that cannot.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/compile/alone.h"
#include "engine/compile/emit.h"
#include "engine/compile/facts.h"
#include "engine/compile/stand_ins.h"
#include "engine/memory/code_memory.h"
#include "engine/program/tiering.h"

namespace kiln::engine {

class Tiers;

// Machine code of a phase, and what came of it.
struct Compiled {
  static constexpr int32_t kNotWeighed = std::numeric_limits<int32_t>::min();
  enum class State : uint8_t { New, Compiling, Ready, Resting, Off };

  Taken taken;
  uint64_t plan = 0;  // number_of(); 0: none has been made
  std::atomic<State> state{State::New};
  std::atomic<uint32_t> entered{0}, missed{0};  // what was taken of its values did not hold
  std::atomic<uint64_t> compiling_ns{0}, code_bytes{0};
  std::atomic<bool> refused{false};  // the system gave no executable memory
  bool pays = true;                  // else there is none, for the interpreter is as fast
  // What it has saved, by estimate, since so many entries; before that, the mean of one. How often
  // it has lost, and entries to be left out.
  Worth worth;
  std::atomic<int64_t> balance{0};
  std::atomic<uint32_t> weighed{0};
  std::atomic<int32_t> mean{kNotWeighed};
  std::atomic<uint32_t> losses{0}, rest{0};
  std::unique_ptr<Emitted> made;
  struct Way {
    const Op* next;
    bool backward, early;  // as of Exit
    bool ends;             // all lanes
    bool disagrees;        // as of Exit
    int32_t saved;         // as of Worth
  };
  std::vector<Way> ways;                  // by exit
  std::atomic<const void*> own{nullptr};  // the code, where it checks itself
  // By index of Emitted::reaches: an address of the region that served last; 0: none yet.
  std::unique_ptr<std::atomic<uint64_t>[]> seen;
  CodeMemory memory;
  bool stands_in = false;
  std::vector<StandInSlot> stand_ins;
};

// Values that become smaller and smaller end as subnormal ones, and where they are slow, code that
// goes by way of f64 may be ten times as fast; elsewhere it takes longer. So it is tried, and
// timed, once the CPU says that it has met some.
struct Subnormals {
  enum class Mode : uint8_t { Plain, TimesPlain, TimesDouble, Double };
  std::atomic<Mode> mode{Mode::Plain};
  std::atomic<bool> has_double{false};
  std::mutex mutex;    // of what follows
  uint32_t count = 0;  // looks, or entries that were timed
  uint32_t rest = 0;   // looks to be left out
  uint32_t failed = 0;
  double least[2] = {};  // time of a step: plain, by way of f64
};

struct Stretch {
  Tiers* tiers = nullptr;
  Phase phase;
  bool branches_first = false;  // its first Op is a branch
  // There is no code, and there will be none, for warps some of whose lanes are elsewhere; for
  // others.
  std::atomic<bool> none_for_some{false}, none_for_all{false};
  std::atomic<uint32_t> left_out{0};  // entries of whole warps, while all code for them rests
  const Op *original = nullptr, *copy = nullptr;  // the first Op, and the one that replaced it
  // For all lanes: values look as in the first warp, as in a later one for which that does not
  // hold, or in any way.
  Compiled versions[3];
  std::atomic<uint8_t> favoured{0};  // the one to try first
  // Of the favoured one: its misses that it has not made good again, and Compiled::entered at the
  // last of them.
  std::atomic<uint32_t> misses{0}, entered_at_miss{0};
  Compiled some;      // of loops: for warps some of whose lanes are elsewhere
  Compiled stood_in;  // the same, without masks (stand_ins.h)
  // Lanes may go apart at branches: all lanes come, which look as in the first warp; any lanes.
  Compiled apart_all, apart;
  std::atomic<uint32_t> disagreed{0};       // how often lanes did, in code that leaves then
  std::atomic<bool> goes_apart{false};      // they often do: such code comes first
  std::atomic<bool> stays_together{false};  // it does not pay that it does
  std::atomic<bool> is_short{false};        // too short for such code
  Subnormals subnormals;
  std::unique_ptr<Stretch> by_double;  // if subnormals.has_double
  Stretch* plain = nullptr;            // of which this is the one by way of f64
  std::unique_ptr<Alone> alone;        // null: no loop around it begins here

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
  // Of the program itself: what an Op that was replaced did.
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
  struct KeptFacts* kept_ = nullptr;  // null: nobody asked for them
};

// Its copy runs, but for the one replaced.
inline const Op* touched_as(const Stretch& stretch, uint32_t op) {
  return op == stretch.phase.begin ? stretch.tiers->original(op) : &stretch.tiers->all()[op];
}
// So many bytes are put back at most.
constexpr size_t kMostSavedBytes = 16 << 10;
// Makes the code, and says how long that took (tiers.cpp).
Compiled::State compile_timed(Stretch& stretch, Compiled& compiled, Warp& warp) noexcept;

// The handler of an Op that was replaced; Op::data is its Stretch.
const Op* run_stretch(Warp& warp, const Op* op);

}  // namespace kiln::engine
