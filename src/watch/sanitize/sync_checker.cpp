// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/sync_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "watch/sanitize/control_flow.h"
#include "watch/sanitize/objects.h"

namespace kiln::watch {

using namespace engine;
using results::Finding;
using results::Rule;

namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

std::string threads_text(uint32_t mask) {
  const int count = std::popcount(mask);
  return fmt::format("{} thread{}", count, count == 1 ? "" : "s");
}

std::string barrier_name(const KnownSite& site, uint32_t id, uint32_t expected) {
  if (id == 0 && expected == 0)
    return site.opcode.find(".aligned") == std::string::npos && site.opcode.starts_with("barrier")
               ? "the barrier of the block"
               : "__syncthreads()";
  return fmt::format("barrier {} ({})", id, site.opcode);
}

}  // namespace

void SyncChecker::on(const LaunchEvent&) {
  blocks_.clear();
  last_ = nullptr;
  last_number_ = ~uint64_t{0};
  peers_arrive_ = stopped_ = false;
}

SyncChecker::BlockState& SyncChecker::block(uint64_t number) {
  if (number == last_number_ && last_) return *last_;
  BlockState& state = blocks_[number];
  if (state.alive.empty() && collector_.launch()) {
    const KilnDim3& dim = collector_.launch()->block;
    const uint32_t warps = (dim.x * dim.y * dim.z + kWarpSize - 1) / kWarpSize;
    for (uint32_t warp = 0; warp < warps; ++warp) state.alive.push_back(full_mask(warp));
  }
  last_number_ = number;
  last_ = &state;
  return state;
}

uint32_t SyncChecker::full_mask(uint32_t warp) const {
  const KilnDim3& dim = collector_.launch()->block;
  const uint32_t rest = dim.x * dim.y * dim.z - warp * kWarpSize;
  return rest >= kWarpSize ? kFullMask : (1u << rest) - 1;
}

Who SyncChecker::first_of(uint64_t number, uint32_t warp, uint32_t mask) const {
  return {collector_.launch()->number, number, warp * kWarpSize + first_lane(mask)};
}

void SyncChecker::on(const BlockEvent& event) {
  if (!event.ended || !collector_.launch()) return;
  const auto found = blocks_.find(event.block);
  if (found == blocks_.end()) return;
  report_early(event.block, found->second, nullptr);
  if (stopped_) return;
  for (uint32_t id = 0; id < found->second.barriers.size(); ++id) {
    const std::vector<Arrival>& left = found->second.barriers[id];
    if (left.empty()) continue;
    const Arrival& arrival = left.front();
    if (Finding* finding = collector_.found(Rule::BarrierCount, arrival.site)) {
      uint32_t threads = 0;
      for (const Arrival& each : left) threads += static_cast<uint32_t>(std::popcount(each.mask));
      finding->message = fmt::format(
          "{} threads arrived at barrier {}, which counts {}, and the block ended before it was "
          "complete",
          threads, id, arrival.expected);
      finding->places.push_back(collector_.place(
          arrival.site, first_of(event.block, arrival.warp, arrival.mask), "arrives here"));
      finding->advice = "let as many threads arrive and wait, together, as the barrier counts";
    }
  }
  blocks_.erase(found);
  last_ = nullptr;
}

void SyncChecker::on(const ExitEvent& event) {
  if (!collector_.launch()) return;
  BlockState& state = block(event.by.block);
  if (event.by.warp >= state.alive.size()) return;
  uint32_t& alive = state.alive[event.by.warp];
  state.ended.push_back({collector_.sites().id_of(event.by), event.by.warp, event.by.mask});
  alive &= ~event.by.mask;
}

void SyncChecker::on(const SyncEvent& event) {
  if (!collector_.launch()) return;
  if (event.kind == SyncKind::Exchange && !event.completed) {
    passes(event);
  } else if (event.kind == SyncKind::Warp || event.kind == SyncKind::Exchange) {
    exchanges(event);
  } else if (event.kind == SyncKind::Cluster) {
    meets_others(event.by);
  } else if (event.kind == SyncKind::Block) {
    if (event.completed && !event.by.program)
      completes(event);
    else
      arrives(event);
  }
}

void SyncChecker::arrives(const SyncEvent& event) {
  const SiteId site = collector_.sites().id_of(event.by);
  block(event.by.block)
      .barriers[event.id % 16]
      .push_back({site, event.by.warp, event.by.mask, event.expected, event.aligned});
  if (event.expected % kWarpSize == 0) return;
  if (Finding* finding = collector_.found(Rule::BarrierCount, site)) {
    finding->message = fmt::format("barrier {} counts {} threads, which is not a multiple of {}",
                                   event.id, event.expected, kWarpSize);
    finding->places.push_back(collector_.place(
        site, first_of(event.by.block, event.by.warp, event.by.mask), "arrives here"));
    finding->advice = "count whole warps: a barrier's count is a multiple of 32";
  }
}

void SyncChecker::completes(const SyncEvent& event) {
  BlockState& state = block(event.by.block);
  const uint32_t id = event.id % 16;
  check_phases(event.by.block, id, state);
  std::vector<Arrival>& arrivals = state.completed[id];
  arrivals.clear();
  arrivals.swap(state.barriers[id]);
  if (arrivals.empty()) return;
  state.completed_at[id] = ++state.now;
  for (const Arrival& each : arrivals) state.synced[each.warp % kWarpSize] = state.now;
  check_counts(event.by.block, event.id, arrivals);
  std::set<uint32_t> warps;
  bool divergent = false;
  for (const Arrival& arrival : arrivals) {
    if (!arrival.aligned || !warps.insert(arrival.warp).second) continue;
    std::vector<Arrival> of_warp;
    std::ranges::copy_if(arrivals, std::back_inserter(of_warp),
                         [&](const Arrival& each) { return each.warp == arrival.warp; });
    divergent |= check_twice(event.by.block, event.id, of_warp) ||
                 check_warp(event.by.block, state, arrival.warp, of_warp);
  }
  // Warps that ended as a whole; where lanes may come apart, single threads too.
  if (divergent || arrivals.front().expected != 0) return;
  const bool aligned = arrivals.front().aligned;
  for (uint32_t warp = 0; warp < state.alive.size(); ++warp) {
    if (aligned ? !warps.contains(warp) && state.alive[warp] == 0
                : state.alive[warp] != full_mask(warp))
      missing_lanes(event.by.block, state, arrivals.front(), 0);
  }
}

// True: threads of a warp have arrived again before the barrier was complete, in place of those
// that it was to wait for.
bool SyncChecker::check_twice(uint64_t number, uint32_t id, const std::vector<Arrival>& arrivals) {
  for (size_t later = 1; later < arrivals.size(); ++later) {
    for (size_t first = 0; first < later; ++first) {
      const uint32_t both = arrivals[first].mask & arrivals[later].mask;
      if (!both) continue;
      const SiteId sites[] = {arrivals[first].site, arrivals[later].site};
      Finding* finding = collector_.found(Rule::BarrierCount, sites[0], sites[1]);
      if (!finding) return true;
      const Who by = first_of(number, arrivals[later].warp, both);
      finding->message = fmt::format(
          "{} arrive twice at barrier {} before it is complete, in place of others that it counts",
          threads_text(both), id);
      finding->places = {collector_.place(sites[0], by, "arrives here"),
                         collector_.place(sites[1], by, "arrives again here")};
      finding->advice =
          "let them wait for the others before they arrive again: a second barrier for the way "
          "back";
      return true;
    }
  }
  return false;
}

// True: its lanes do not meet at one place.
bool SyncChecker::check_warp(uint64_t number, const BlockState& state, uint32_t warp,
                             const std::vector<Arrival>& arrivals) {
  const Arrival& first = arrivals.front();
  uint32_t here = 0;
  bool divergent = false;
  for (const Arrival& arrival : arrivals) {
    here |= arrival.mask;
    if (arrival.site == first.site) continue;
    divergent = true;
    if (Finding* finding = collector_.found(Rule::DivergentBarrier, first.site, arrival.site)) {
      const std::string name = barrier_name(collector_.sites()[first.site], 0, first.expected);
      finding->message = fmt::format(
          "{} in divergent code: threads of one warp wait at two different places", name);
      for (const Arrival* each : {&first, &arrival})
        finding->places.push_back(collector_.place(each->site, first_of(number, warp, each->mask),
                                                   threads_text(each->mask) + " wait here"));
      finding->advice =
          "move the barrier out of the branches, so that all threads reach the same one";
    }
  }
  const uint32_t missing = full_mask(warp) & ~here;
  // With a count, live lanes that are not here wait elsewhere.
  const uint32_t counted = first.expected ? missing & state.alive[warp] : missing;
  if (counted) missing_lanes(number, state, first, counted);
  return divergent || counted;
}

// `missing`: lanes of the arrival's warp that have ended, or are elsewhere; 0: whole warps ended,
// or any threads where the barrier does not ask for whole warps.
void SyncChecker::missing_lanes(uint64_t number, const BlockState& state, const Arrival& arrival,
                                uint32_t missing) {
  const auto ended = std::ranges::find_if(state.ended, [&](const Ended& each) {
    return missing ? each.warp == arrival.warp && (each.mask & missing)
                   : !arrival.aligned || (state.alive[each.warp] == 0 && each.warp != arrival.warp);
  });
  Finding* finding =
      collector_.found(missing ? Rule::DivergentBarrier : Rule::BarrierAfterExit, arrival.site);
  if (!finding) return;
  const std::string name = barrier_name(collector_.sites()[arrival.site], 0, arrival.expected);
  const uint32_t here = full_mask(arrival.warp) & ~missing;
  finding->message = missing ? fmt::format("{} in divergent code: {} of a warp reach it, {} do not",
                                           name, threads_text(here), std::popcount(missing))
                             : fmt::format("{} after {} of the block have ended", name,
                                           arrival.aligned ? "whole warps" : "threads");
  finding->places.push_back(
      collector_.place(arrival.site, first_of(number, arrival.warp, arrival.mask), "waits here"));
  if (ended != state.ended.end()) {
    finding->places.push_back(collector_.place(
        ended->site, first_of(number, ended->warp, ended->mask), "ends without it"));
  }
  finding->advice =
      "let all threads of the block reach it: guard the work with `if`, not the barrier, and do "
      "not return before it";
}

void SyncChecker::check_counts(uint64_t number, uint32_t id, const std::vector<Arrival>& arrivals) {
  const Arrival& first = arrivals.front();
  for (const Arrival& arrival : arrivals) {
    if (arrival.expected == first.expected) continue;
    Finding* finding = collector_.found(Rule::BarrierCount, first.site, arrival.site);
    if (!finding) return;
    auto counted = [](const Arrival& each) {
      return each.expected ? fmt::format("counts {} threads", each.expected)
                           : std::string("counts all threads of the block");
    };
    finding->message = fmt::format("threads that meet at barrier {} disagree on its count", id);
    for (const Arrival* each : {&first, &arrival})
      finding->places.push_back(
          collector_.place(each->site, first_of(number, each->warp, each->mask), counted(*each)));
    finding->advice = "give all that arrive and wait at one barrier the same count";
    return;
  }
}

void SyncChecker::meets_others(const Actor& by) {
  BlockState& state = block(by.block);
  state.synced[by.warp % kWarpSize] = ++state.now;
}

// Two groups that count differently, each for itself, happened to come one after the other. Who has
// met nobody since the phase before may come in the middle of it in another run.
void SyncChecker::check_phases(uint64_t number, uint32_t id, const BlockState& state) {
  const std::vector<Arrival>& before = state.completed[id];
  if (before.empty()) return;
  for (const Arrival& each : state.barriers[id]) {
    if (state.synced[each.warp % kWarpSize] >= state.completed_at[id]) continue;
    const auto other = std::ranges::find_if(
        before, [&](const Arrival& one) { return one.expected != each.expected; });
    if (other == before.end()) continue;
    check_counts(number, id, {each, *other});
    return;
  }
}

// Threads that disagree on a count meet in one phase or in two, by the order in which they come. In
// two, the second waits forever; the mistake is the same, and so is the finding. A warp that took
// part in the phase before counts anew on purpose.
bool SyncChecker::explain_by_counts(uint64_t number, const BlockState& state) {
  for (uint32_t id = 0; id < state.barriers.size(); ++id) {
    const std::vector<Arrival>& before = state.completed[id];
    for (const Arrival& waits : state.barriers[id]) {
      if (std::ranges::find(before, waits.warp, &Arrival::warp) != before.end()) continue;
      const auto other = std::ranges::find_if(
          before, [&](const Arrival& each) { return each.expected != waits.expected; });
      if (other == before.end()) continue;
      collector_.withdraw_newest(Rule::Deadlock);
      check_counts(number, id, {waits, *other});
      return true;
    }
  }
  return false;
}

// Lanes that others wait for stand elsewhere. They may still come, or end.
void SyncChecker::passes(const SyncEvent& event) {
  BlockState& state = block(event.by.block);
  Actor waiting = event.by;
  waiting.site = event.id;
  const SiteId at = collector_.sites().id_of(waiting);
  const auto known = std::ranges::find_if(state.passed, [&](const Passed& each) {
    return each.at == at && each.warp == event.by.warp && each.stood.site == event.by.site;
  });
  if (known != state.passed.end())
    known->stood.mask |= event.by.mask;
  else
    state.passed.push_back({at, event.by.warp, event.id, event.by});
}

// Lanes that were to take part, and ended without it. Who had nothing left to do but to end is as
// good as ended before, which CUDA allows; and so is who left by a way of its own. But who went on
// to what the others do too, behind the call, has left it out.
uint32_t SyncChecker::went_past(const SyncEvent& event, const BlockState& state) {
  const uint32_t ended = event.expected & ~event.by.mask & ~state.alive[event.by.warp];
  if (!ended || state.passed.empty()) return 0;
  const SiteId at = collector_.sites().id_of(event.by);
  uint32_t lanes = 0;
  for (const Passed& each : state.passed) {
    if (each.at != at || each.warp != event.by.warp || !(each.stood.mask & ended)) continue;
    const auto [way, is_new] =
        ways_.try_emplace({each.stood.program->serial, each.waiting_site, each.stood.site});
    if (is_new)
      way->second = leads_to(*each.stood.program, each.waiting_site, each.stood.site) &&
                    !is_merged_end(*each.stood.program, each.stood.site);
    if (!way->second) continue;
    const SiteId stood = collector_.sites().id_of(each.stood);
    for (const Ended& one : state.ended) {
      if (one.warp == each.warp && one.site != stood) lanes |= one.mask & each.stood.mask & ended;
    }
  }
  return lanes;
}

void SyncChecker::exchanges(const SyncEvent& event) {
  const uint32_t here = event.by.mask, named = event.expected;
  const bool exchange = event.kind == SyncKind::Exchange;
  const BlockState& state = block(event.by.block);
  if (event.by.warp >= state.alive.size()) return;
  const uint32_t gone = went_past(event, state);
  const uint32_t absent = gone | (exchange ? named & state.alive[event.by.warp] & ~here : 0);
  if ((here & ~named) == 0 && absent == 0 && !event.sources) return;
  const SiteId site = collector_.sites().id_of(event.by);
  if (const uint32_t outside = here & ~named) {
    if (Finding* finding = collector_.found(Rule::MaskWithoutCaller, site)) {
      finding->message = fmt::format("mask 0x{:08x} does not name the thread that calls it", named);
      finding->places.push_back(
          collector_.place(site, first_of(event.by.block, event.by.warp, outside),
                           fmt::format("lane {} calls it", first_lane(outside))));
      finding->advice = "give a mask that has the bit of each thread that makes the call";
    }
    return;
  }
  if (absent) {
    if (Finding* finding = collector_.found(Rule::MissingMember, site)) {
      finding->message = fmt::format(
          "mask 0x{:08x} names {} that do not take part: they {}", named, threads_text(absent),
          absent == gone ? "went past it and have ended" : "are at another instruction");
      finding->places.push_back(
          collector_.place(site, first_of(event.by.block, event.by.warp, here),
                           fmt::format("{} take part, lanes 0x{:08x}", threads_text(here), here)));
      finding->advice = "call it where all threads of the mask run it, or name only those that do";
    }
    return;
  }
  if (event.sources) check_sources(event, site);
}

// A value from a thread that does not take part is undefined. The last rounds of a reduction over
// part of a warp read beyond it in lanes whose result nobody uses: where the mask itself leaves the
// source out, only a shuffle by index counts, or one in which no lane reads a good value.
void SyncChecker::check_sources(const SyncEvent& event, SiteId site) {
  uint32_t bad = 0, named_bad = 0, good = 0;
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const uint32_t lane = first_lane(rest);
    const int8_t source = event.sources[lane];
    if (source < 0 || static_cast<uint8_t>(source) == lane) continue;
    const bool takes_part = event.by.mask >> source & 1;
    good |= takes_part ? 1u << lane : 0;
    bad |= takes_part ? 0 : 1u << lane;
    named_bad |= !takes_part && (event.expected >> source & 1) ? 1u << lane : 0;
  }
  const bool by_index = collector_.sites()[site].opcode.find(".idx") != std::string::npos;
  const uint32_t counted = named_bad ? named_bad : by_index || good == 0 ? bad : 0;
  if (!counted) return;
  Finding* finding = collector_.found(Rule::InactiveSource, site);
  if (!finding) return;
  const uint32_t lane = first_lane(counted);
  finding->message = fmt::format(
      "shuffle reads lane {}, which {}", event.sources[lane],
      named_bad ? "is in the mask but has ended or does not exist" : "is not in the mask");
  finding->places.push_back(
      collector_.place(site, first_of(event.by.block, event.by.warp, counted),
                       fmt::format("lane {} reads lane {}", lane, event.sources[lane])));
  finding->notes.push_back(
      fmt::format("lanes 0x{:08x} take part, the mask is 0x{:08x}", event.by.mask, event.expected));
  finding->advice =
      "keep all threads of the warp until the shuffle, or read only lanes that run it";
}

void SyncChecker::misused(const MbarrierEvent& event, const Mbarrier* known, std::string message,
                          std::string advice) {
  const SiteId site = collector_.sites().id_of(event.by);
  Finding* finding = collector_.found(Rule::MbarrierMisuse, site, known ? known->init : kNoSite);
  if (!finding) return;
  finding->message = std::move(message);
  finding->places.push_back(collector_.place(
      site, first_of(event.by.block, event.by.warp, event.by.mask), "happens here"));
  if (known)
    finding->places.push_back(
        collector_.place(known->init, first_of(event.by.block, 0, 1),
                         fmt::format("set up for {} arrivals", known->wanted)));
  finding->advice = std::move(advice);
}

// It may be set up later, by a thread that happened to run behind: then the finding names both, as
// it does where the setup came first and nothing orders the two (the checker of races).
void SyncChecker::used_early(BlockState& state, const MbarrierEvent& event) {
  const SiteId site = collector_.sites().id_of(event.by);
  const auto known = std::ranges::find_if(state.early, [&](const Early& each) {
    return each.address == event.address && each.site == site;
  });
  if (known != state.early.end()) return;
  const Who by = first_of(event.by.block, event.by.warp, event.by.mask);
  state.early.push_back({event.address, site, by});
}

// `setup`: of their object; null: none came, for all that are left.
void SyncChecker::report_early(uint64_t number, BlockState& state, const MbarrierEvent* setup) {
  for (const Early& each : state.early) {
    if (setup && each.address != setup->address) continue;
    const SiteId init = setup ? collector_.sites().id_of(setup->by) : kNoSite;
    Finding* finding = collector_.found(Rule::MbarrierMisuse, each.site, init);
    if (!finding) continue;
    results::FindingPlace use = collector_.place(each.site, each.by, "used here");
    if (setup) {
      const Who by = first_of(number, setup->by.warp, setup->by.mask);
      describe_unordered_setup(*finding, std::move(use), collector_.place(init, by, "set up here"));
    } else {
      finding->message = "mbarrier is used before it is set up";
      finding->places.push_back(std::move(use));
      finding->advice =
          "set it up in one thread (mbarrier.init, init()), then let all pass a barrier";
    }
  }
  std::erase_if(state.early,
                [&](const Early& each) { return !setup || each.address == setup->address; });
}

void SyncChecker::on(const MbarrierEvent& event) {
  if (!collector_.launch()) return;
  BlockState& state = block(event.by.block);
  if (event.step == MbarrierStep::Test && event.passed) meets_others(event.by);
  if (event.address & kPeerBits) peers_arrive_ = true;
  if (peers_arrive_) return;
  const auto found = state.mbarriers.find(event.address);
  Mbarrier* known = found == state.mbarriers.end() ? nullptr : &found->second;
  switch (event.step) {
    case MbarrierStep::Init:
      if (known)
        misused(event, known, "mbarrier is set up again while it is in use",
                "invalidate it first (mbarrier.inval), or set it up once");
      if (event.count == 0)
        misused(event, nullptr, "mbarrier is set up for 0 arrivals", "count at least one arrival");
      report_early(event.by.block, state, &event);
      state.mbarriers[event.address] = {collector_.sites().id_of(event.by), event.count,
                                        event.count, 0};
      return;
    case MbarrierStep::Invalidate:
      state.mbarriers.erase(event.address);
      return;
    default:
      break;
  }
  if (!known) {
    used_early(state, event);
    return;
  }
  if (event.step != MbarrierStep::Arrive) {
    if (event.completed) ++known->phase, known->pending = known->wanted;
    return;
  }
  if (event.count > known->pending)
    misused(event, known,
            fmt::format("more arrivals than the mbarrier counts: {} more in a phase of {}",
                        event.count - known->pending, known->wanted),
            "set it up for as many arrivals as threads arrive in each phase");
  known->pending -= std::min(known->pending, event.count);
  if (event.drops) known->wanted -= std::min(known->wanted, event.count);
  if (event.completed) ++known->phase, known->pending = known->wanted;
}

bool SyncChecker::recovers(const FaultEvent& fault) {
  stopped_ |= fault.kind == FaultKind::Deadlock || fault.kind == FaultKind::Other;
  if (!stopped_ || !collector_.launch()) return false;
  if (fault.kind == FaultKind::Deadlock) explain_deadlock(fault);
  for (auto& [number, state] : blocks_) report_early(number, state, nullptr);
  return false;
}

void SyncChecker::explain_deadlock(const FaultEvent& fault) {
  Finding* finding = collector_.newest(Rule::Deadlock);
  if (!finding) return;
  const auto found = blocks_.find(fault.by.block);
  if (found == blocks_.end()) return;
  if (explain_by_counts(fault.by.block, found->second)) return;
  for (const auto& [address, object] : found->second.mbarriers) {
    if (object.pending == 0) continue;
    const KnownSite& init = collector_.sites()[object.init];
    finding->notes.push_back(fmt::format(
        "the mbarrier at shared address {} has {} of {} arrivals in phase {}{}", address & 0xffffff,
        object.wanted - object.pending, object.wanted, object.phase,
        init.stack.empty()
            ? ""
            : fmt::format(" (set up in {}:{})", init.stack[0].file, init.stack[0].line)));
  }
  for (uint32_t id = 0; id < found->second.barriers.size(); ++id) {
    uint32_t threads = 0, expected = 0;
    for (const Arrival& each : found->second.barriers[id]) {
      threads += static_cast<uint32_t>(std::popcount(each.mask));
      expected = each.expected;
    }
    if (threads && expected)
      finding->notes.push_back(
          fmt::format("barrier {} counts {} threads, and {} have arrived", id, expected, threads));
  }
}

}  // namespace kiln::watch
