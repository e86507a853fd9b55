// SPDX-License-Identifier: Apache-2.0
// How does a warp run? The split that is deepest in calls and lowest in the program runs first, so
// that lanes converge again. One that loops for long gives way to the others, so that a lane that
// spins until another lane writes something does not block it.
#include "engine/machine/warp.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/machine/advance.h"
#include "engine/machine/fault.h"
#include "engine/machine/lane_masks.h"
#include "engine/machine/spins.h"
#include "engine/machine/watching.h"
#include "engine/memory/fill.h"

namespace kiln::engine {
namespace {

// Backward branches per turn: enough to hide the cost of a switch, few enough for spins.
constexpr int32_t kTurn = 2048;
// After so many meetings at a barrier, a warp checks whether the program has got faster.
constexpr uint32_t kMeetings = 64;
constexpr uint32_t kMaxLocalBytes = 1 << 20;
// After the last lane's memory: machine code reads four bytes where it needs one.
constexpr size_t kBehindLocal = 16;

template <class T>
void blend(std::byte* to, const void* from, uint32_t mask) {
  T* d = reinterpret_cast<T*>(to);
  select_lanes(d, static_cast<const T*>(from), d, mask);
}

// grid.sync() of cooperative groups: all blocks except one add 1; that one adds 2^31 minus the
// number of the others.
bool grid_is_partly_here(const Grid& grid) {
  return grid.cooperative &&
         (__atomic_load_n(&grid.workspace[1], __ATOMIC_RELAXED) & 0x7fffffffu) != 0;
}

// The usual case: all lanes are together.
[[gnu::always_inline]] inline bool pick_only(Warp& warp) {
  if (warp.splits.size() != 1 || warp.splits[0].wait != Wait::None) return false;
  const Split& only = warp.splits[0];
  warp.frame = only.frame;
  warp.registers = only.frame->data();
  warp.mask = only.mask;
  warp.current_penalty = only.penalty;
  warp.pass_sync = only.pass;
  warp.resume = only.at;
  warp.splits.clear();
  return true;
}

bool goes_before(const Split& a, const Split& b) {
  if (a.penalty != b.penalty) return a.penalty < b.penalty;
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.at != b.at ? a.at < b.at : a.pass && !b.pass;
}

// Lanes that have waited at a *.sync and may pass it go before those that only reach it now, by
// another path. Those wait for the next time.
bool become_one(const Split& a, const Split& b) {
  return a.at == b.at && a.frame == b.frame && a.pass == b.pass && a.wait != Wait::Barrier &&
         b.wait != Wait::Barrier;
}

// The value of lane `i`: `bytes` bytes, or one bit if that is 0.
uint64_t value_of(const void* values, uint32_t i, uint32_t bytes) {
  uint64_t out = 0;
  std::memcpy(&out, static_cast<const std::byte*>(values) + size_t{i} * bytes, bytes ? bytes : 4);
  return bytes ? out : out >> i & 1;
}

void bring(uint32_t lanes, Handler by, const void* values, uint32_t bytes, Brought* to) {
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if (lanes >> i & 1) to->values[i] = value_of(values, i, bytes), to->by[i] = by;
  }
  to->lanes |= lanes;
}

// Returns the lanes that have brought values to this exchange.
uint32_t take_from(const Brought& from, uint32_t lanes, Handler by, void* values, uint32_t bytes) {
  uint32_t found = 0, bits = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if (!(lanes & from.lanes & 1u << i) || from.by[i] != by) continue;
    std::memcpy(static_cast<std::byte*>(values) + size_t{i} * bytes, &from.values[i], bytes);
    bits |= static_cast<uint32_t>(from.values[i]) << i;
    found |= 1u << i;
  }
  if (bytes == 0) {
    uint32_t& all = *static_cast<uint32_t*>(values);
    all = (all & ~found) | bits;
  }
  return found;
}

}  // namespace

const Op* Warp::step_masked(const Op* op) {
  // Nothing reads the registers of lanes that have ended.
  if (op->effect <= Effect::Scalar || mask == alive) return op->run(*this, op);
  Op redirected = *op;
  redirected.d = kScratch;
  op->run(*this, &redirected);
  std::byte* const to = registers + op->d;
  const std::byte* const from = registers + kScratch;
  switch (op->effect) {
    case Effect::Lanes1:
      blend<uint8_t>(to, from, mask);
      break;
    case Effect::Lanes2:
      blend<uint16_t>(to, from, mask);
      break;
    case Effect::Lanes8:
      blend<uint64_t>(to, from, mask);
      break;
    default:
      blend<uint32_t>(to, from, mask);
  }
  return op + 1;
}

void Warp::put_some(uint32_t offset, const void* values, uint32_t bytes) {
  std::byte* const to = registers + offset;
  switch (bytes) {
    case 1:
      return blend<uint8_t>(to, values, mask);
    case 2:
      return blend<uint16_t>(to, values, mask);
    case 4:
      return blend<uint32_t>(to, values, mask);
    default:
      return blend<uint64_t>(to, values, mask);
  }
}

// If a branch has separated lanes, and nothing else has, picks those that are lowest; they run
// until they reach the next ones. Returns false in other cases.
bool Warp::pick_lowest() {
  if (splits.empty()) return false;
  const Split& first = splits[0];
  const Op* second = nullptr;
  size_t lowest = 0;
  for (size_t i = 0; i < splits.size(); ++i) {
    const Split& s = splits[i];
    if (s.wait != Wait::None || s.frame != first.frame || s.penalty != first.penalty || s.pass)
      return false;
    if (i == 0) continue;
    if (s.at == splits[lowest].at) return false;
    if (s.at < splits[lowest].at) {
      second = splits[lowest].at;
      lowest = i;
    } else if (!second || s.at < second) {
      second = s.at;
    }
  }
  const Split& chosen = splits[lowest];
  frame = chosen.frame;
  registers = frame->data();
  mask = chosen.mask;
  current_penalty = chosen.penalty;
  pass_sync = false;
  resume = chosen.at;
  others_at = second;
  splits.erase(splits.begin() + static_cast<long>(lowest));
  return true;
}

// Lanes of the current split continue at `at`, together with those that are already there.
void Warp::stand_by(const Op* at, uint32_t lanes) {
  for (Split& s : splits) {
    if (s.at != at || s.frame != frame || s.penalty != current_penalty || s.wait != Wait::None ||
        s.pass)
      continue;
    s.mask |= lanes;
    --frame->users;
    return;
  }
  splits.push_back({at, lanes, frame, Wait::None, 0, 0, current_penalty, false});
}

bool Warp::pick() {
  // Splits at the same place become one.
  for (size_t i = 0; i < splits.size(); ++i) {
    for (size_t j = i + 1; j < splits.size();) {
      Split &a = splits[i], &b = splits[j];
      if (become_one(a, b)) {
        a.mask |= b.mask;
        a.wait = Wait::None;  // a *.sync checks again whether all are here
        a.penalty = std::min(a.penalty, b.penalty);
        --a.frame->users;
        splits.erase(splits.begin() + static_cast<long>(j));
      } else {
        ++j;
      }
    }
  }
  size_t best = splits.size();
  for (size_t i = 0; i < splits.size(); ++i) {
    if (splits[i].wait == Wait::None &&
        (best == splits.size() || goes_before(splits[i], splits[best])))
      best = i;
  }
  if (best == splits.size()) {
    // bar.warp.sync may be reached at several places. It is complete when all its members wait,
    // wherever they are.
    uint32_t waiting = 0;
    for (const Split& s : splits) waiting |= s.wait == Wait::Sync ? s.mask : 0;
    for (size_t i = 0; i < splits.size(); ++i) {
      Split& s = splits[i];
      if (s.wait != Wait::Sync || (s.sync_mask & alive & ~waiting) != 0) continue;
      if (best == splits.size()) met_with = brought;  // before these splits overwrite it
      s.wait = Wait::None;
      s.pass = true;
      best = i;
    }
    if (best == splits.size()) return false;
  }
  Split chosen = splits[best];
  splits.erase(splits.begin() + static_cast<long>(best));
  frame = chosen.frame;
  registers = frame->data();
  mask = chosen.mask;
  current_penalty = chosen.penalty;
  pass_sync = chosen.pass;
  resume = chosen.at;
  others_at = nullptr;
  for (const Split& s : splits) {
    if (s.wait == Wait::None && s.frame == frame && s.penalty <= current_penalty &&
        (!others_at || s.at < others_at))
      others_at = s.at;
  }
  return true;
}

void Warp::run_alone(const Op* op) {
  if (mask == alive) {  // all lanes, or all that have not ended
    while (op) op = op->run(*this, op);
  } else {
    while (op) op = step_masked(op);
  }
}

void Warp::run_divergent(const Op* op) {
  const Op* const limit = others_at;
  if (!limit) {
    run_alone(op);
    return;
  }
  const Op* first = op;
  for (;;) {
    op = step_masked(op);
    if (!op) return;
    if (op >= limit && op != first) {
      stand_by(op, mask);
      return;
    }
  }
}

// A loop with a barrier in each iteration never uses up its turn. So the limit is checked here, and
// now and then whether the program has got faster.
const Op* Warp::pass_barrier() {
  if (met == block->meetings) return nullptr;
  at_barrier = false;
  if (const uint64_t limit = block->grid->settings.step_limit; limit && steps > limit)
      [[unlikely]] {
    frame = kernel_frame;
    registers = frame->data();
    mask = alive;
    yield(resume);
    return nullptr;
  }
  if (block->meetings % kMeetings == 0 && block->tiering) [[unlikely]] {
    frame = kernel_frame;
    return goes_over(resume);
  }
  return resume;
}

bool Warp::passes_to(const Op* op) {
  if (!at_barrier || resume != op || met == block->meetings || block->meetings % kMeetings == 0)
    return false;
  if (const uint64_t limit = block->grid->settings.step_limit; limit && steps > limit) return false;
  at_barrier = false;
  turn = kTurn;
  event = Event::None;
  frame = kernel_frame;
  registers = frame->data();
  mask = alive;
  current_penalty = 0;
  pass_sync = false;
  return true;
}

void Warp::stand_at(const Op* next) {
  resume = next;
  at_barrier = true;
  met = block->meetings - 1;
}

void Warp::show_barrier() {
  if (!at_barrier) return;
  at_barrier = false;
  const Wait wait = met == block->meetings ? Wait::Barrier : Wait::None;
  if (wait == Wait::Barrier) block->others_at_barrier += kWarpSize;
  splits.push_back({resume, kFullMask, kernel_frame, wait, 0, 0, 0, false});
}

Outcome Warp::run(const Op* first) {
  turn = kTurn;
  moved = false;
  size_t yields = 0;
  if (at_barrier) {
    event = Event::None;
    first = pass_barrier();
    if (!first) return at_barrier ? Outcome::Blocked : Outcome::Faulted;
  }
  if (first) {
    frame = kernel_frame;
    registers = frame->data();
    mask = alive;
    current_penalty = 0;
    pass_sync = false;
    event = Event::None;
    run_alone(first);
    if (at_barrier) return Outcome::Blocked;
    for (; alive == 0; run_alone(first)) {
      first = go_on(*this);
      if (!first) return Outcome::Finished;
      turn = kTurn;
    }
    if (at_barrier) return Outcome::Blocked;
    if (event == Event::Fault) return Outcome::Faulted;
    if (event == Event::Yield) {
      if (++yields >= splits.size()) return Outcome::Yielded;
      turn = kTurn;
    }
    if (splits.size() == 1 && splits[0].wait == Wait::Barrier) return Outcome::Blocked;
  }
  for (;;) {
    if (!pick_only(*this) && !pick_lowest() && !pick())
      return alive == 0 ? Outcome::Finished : Outcome::Blocked;
    event = Event::None;
    const Op* op = resume;
    // A loop with a barrier in each iteration never uses up its turn, so the limit is checked here
    // too.
    if (const uint64_t limit = block->grid->settings.step_limit; limit && steps > limit) {
      yield(op);
      return Outcome::Faulted;
    }
    if (splits.empty()) {
      run_alone(op);
    } else {
      run_divergent(op);
    }
    if (at_barrier) return Outcome::Blocked;
    if (event == Event::Fault) return Outcome::Faulted;
    if (event == Event::Yield) {
      // The spinning lanes may well wait for another lane of this warp, so each split gets a turn.
      if (++yields >= splits.size()) return Outcome::Yielded;
      turn = kTurn;
    }
    if (alive == 0) return Outcome::Finished;
    // The usual end of a turn: all lanes together at a barrier that others have not reached.
    if (splits.size() == 1 && splits[0].wait == Wait::Barrier) return Outcome::Blocked;
  }
}

const Op* Warp::diverge(const Op* taken, uint32_t taken_mask, const Op* other) {
  ++frame->users;
  stand_by(taken, taken_mask);
  stand_by(other, mask & ~taken_mask);
  return nullptr;
}

const Op* Warp::jump_back(const Op* from, const Op* to) {
  steps += static_cast<uint64_t>(from - to) + 1;
  turn -= from->y ? kSpinCost : 1;
  if (turn > 0) return to;
  const bool moved_before = moved;
  const Op* end = yield(to);
  if (!from->y || event != Event::Yield) return end;
  // In watched runs, also for a kernel that waits for something that nobody writes.
  const bool only_waits = (from->y & kOnlyWaits) && block->grid->sink;
  if (only_waits || grid_is_partly_here(*block->grid)) {
    moved = moved_before;
    splits.back().looks = Look::Grid;
  }
  return end;
}

const Op* Warp::yield(const Op* next) {
  Grid& grid = *block->grid;
  if (grid.settings.step_limit && steps > grid.settings.step_limit) {
    return fault(next, kLaunchTimeout, static_cast<uint32_t>(std::countr_zero(mask)),
                 "Step limit reached: the kernel ran longer than KILN_ENGINE_STEP_LIMIT allows\n" +
                     where(*this, *next, static_cast<uint32_t>(std::countr_zero(mask))));
  }
  if (grid.recovered.load(std::memory_order_relaxed) && grid.sink->gives_up(actor(*this, next)))
      [[unlikely]] {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    return fault(
        next, kIllegalAddress, lane,
        "Stopped after a bad access: what it read is junk, and a loop did not end with it\n" +
            where(*this, *next, lane));
  }
  if (block->tiering) next = goes_over(next);
  moved = true;
  current_penalty = ++penalties;
  splits.push_back({next, mask, frame, Wait::None, 0, 0, current_penalty, false});
  event = Event::Yield;
  return nullptr;
}

const Op* Warp::goes_over(const Op* next) {
  Tiering& tiering = *block->tiering;
  tiering.warm(kTurn, block->grid->settings.compile_after);
  const Op* now = tiering.ops();
  if (now == ops || !splits.empty() || frame != kernel_frame) return next;
  const Op* other = now + (next - ops);
  ops = now;
  return other;
}

const Op* Warp::look_again(const Op* next, Look looks) {
  const bool nothing_else = !moved && steps - looked_at <= kPollSteps * (splits.size() + 1);
  looked_at = steps;
  const Op* end = yield(next);
  if (event == Event::Fault) return end;
  moved = !nothing_else;
  splits.back().looks = looks;
  return end;
}

const Op* Warp::park(const Op* at, Wait wait, uint8_t barrier, uint32_t sync_mask) {
  moved = true;
  splits.push_back({at, mask, frame, wait, barrier, sync_mask, 0, false});
  return nullptr;
}

bool Warp::all_here(const Op* op, uint32_t members) {
  if ((members & alive & ~mask) == 0 || pass_sync) {
    pass_sync = false;
    return true;
  }
  if (block->sync_sink) [[unlikely]]
    deliver_absent(*this, op, members);
  park(op, Wait::Sync, 0, members);
  return false;
}

bool Warp::all_here(const Op* op, uint32_t members, void* values, uint32_t bytes, uint32_t* away) {
  *away = 0;
  brought.lanes &= ~mask;
  const uint32_t missing = members & alive & ~mask;
  if (missing && pass_sync) {
    *away = take_from(met_with, missing, op->run, values, bytes);
  } else if (missing) {
    bring(mask, op->run, values, bytes, &brought);
  }
  return all_here(op, members);
}

bool Warp::converged(const Op* op, uint32_t members) {
  if (!all_here(op, members)) return false;
  if (block->sync_sink) [[unlikely]]
    deliver_met(*this, op, SyncKind::Exchange, mask, members);
  return true;
}

const Op* Warp::exit_lanes() {
  moved = true;
  alive &= ~mask;
  --frame->users;
  for (Frame* f = frame; f->users == 0 && f->parent;) {
    Frame* parent = f->parent;
    worker->release(f);
    --parent->users;
    f = parent;
  }
  const uint32_t count = mask == kFullMask ? kWarpSize : static_cast<uint32_t>(std::popcount(mask));
  if (!block->cluster && !block->grid->has_barriers) {  // nobody waits for them
    block->live_threads -= std::min(count, block->live_threads);
  } else {
    block->threads_exited(count);
  }
  return nullptr;
}

const Op* Warp::fault(const Op* op, int code, uint32_t lane, const std::string& what) {
  if (block->grid->sink) [[unlikely]]
    deliver_fault(*this, op, code, lane, what);
  event = Event::Fault;
  // So that its frames are found and released.
  splits.push_back({op, mask, frame, Wait::None, 0, 0, 0, false});
  block->grid->report(code, what);
  return nullptr;
}

Warp::~Warp() {
  if (!local.empty()) worker->budget().release(local.size());
}

bool Warp::begin_local(const Program& program) {
  local_limit = 0;
  // The layout is that of any other warp of this program, whatever ran here before: compiled code
  // is for one stride.
  if (local_of != &program) local_stride = 0;
  local_of = &program;
  return program.local_bytes == 0 || grow_local(program.local_bytes);
}

bool Warp::grow_local(uint32_t bytes_per_lane) {
  if (bytes_per_lane > kMaxLocalBytes) return false;
  local_limit = std::max(local_limit, bytes_per_lane);
  if (bytes_per_lane <= local_stride) return true;
  const uint32_t stride = std::max<uint32_t>(64, std::bit_ceil(bytes_per_lane));
  const size_t bytes = size_t{stride} * kWarpSize + kBehindLocal;
  std::vector<std::byte> grown;
  const bool fits = bytes <= local.size();
  if (!fits) {
    Budget& budget = worker->budget();
    if (!budget.reserve(bytes, block->grid->settings.memory_limit_bytes)) return false;
    try {
      grown.resize(bytes);
    } catch (const std::bad_alloc&) {
      budget.release(bytes);
      return false;
    }
    budget.release(local.size());
  }
  std::byte* const to = fits ? local.data() : grown.data();
  // The last lane first, because it may be in place.
  for (uint32_t lane = kWarpSize; lane-- > 0 && local_stride;) {
    std::memmove(to + size_t{lane} * stride, local.data() + size_t{lane} * local_stride,
                 local_stride);
  }
  if (!fits) local = std::move(grown);
  local_stride = stride;
  return true;
}

void Warp::fill_local(uint32_t lanes, uint32_t from, uint32_t bytes) {
  const uint64_t word = block->grid->settings.fill_word;
  // The memory between the lanes is unused: a function that needs it fills it first.
  if (lanes == kFullMask && from == 0 && local_stride <= 2 * bytes) {
    fill_memory(local.data(), size_t{local_stride} * kWarpSize, word);
    return;
  }
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const size_t lane = static_cast<size_t>(std::countr_zero(rest));
    fill_memory(local.data() + lane * local_stride + from, bytes, word);
  }
}

}  // namespace kiln::engine
