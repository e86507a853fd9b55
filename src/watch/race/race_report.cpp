// SPDX-License-Identifier: Apache-2.0
// What does a reader need to know of a race? Both lines, both threads, what they have in common,
// and what would have ordered them.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/memory/memory.h"
#include "watch/race/race.h"
#include "watch/sanitize/objects.h"

namespace kiln::watch {

using namespace engine;
using namespace race;
using results::Rule;

namespace {

bool is_shared(uint64_t address) { return address >> 56 == kSharedTag; }

std::string verb_of(const Place& place) {
  if (place.frees) return "free";
  switch (place.kind) {
    case AccessKind::Load:
      return place.strength == Strength::Volatile ? "volatile read"
             : place.strong()                     ? "atomic read"
                                                  : "read";
    case AccessKind::Store:
      return place.strength == Strength::Volatile ? "volatile write"
             : place.strong()                     ? "atomic write"
                                                  : "write";
    case AccessKind::Atomic:
    case AccessKind::Reduction:
      break;
  }
  return "atomic operation";
}

std::string article(const std::string& noun) { return (noun[0] == 'a' ? "an " : "a ") + noun; }

std::string line_text(const SiteTable& sites, SiteId site) {
  const KnownSite& at = sites[site];
  if (!at.stack.empty()) return fmt::format("line {}", at.stack[0].line);
  return fmt::format("PTX line {}", at.ptx_line);
}

// What orders threads that are as far apart as these two.
struct Distance {
  bool same_block = false, same_warp = false;
};

std::string barrier_advice(const SiteTable& sites, const Place& a, const Place& b,
                           Distance distance) {
  const char* barrier = distance.same_warp ? "__syncwarp()" : "__syncthreads()";
  if (sites[a.site].line_id == sites[b.site].line_id) {
    return fmt::format(
        "no barrier orders the threads at {}: let each thread use elements of its own, or put a "
        "{} between the accesses",
        line_text(sites, a.site), barrier);
  }
  return fmt::format("no barrier between {} and {}: a {} between them orders them",
                     line_text(sites, a.site), line_text(sites, b.site), barrier);
}

std::string advice_of(const SiteTable& sites, const Place& a, const Place& b, Distance distance) {
  if (a.strong() && b.strong()) {
    return "both accesses are atomic, but their scope does not include the other thread or they "
           "differ in size: use a scope that has both threads, and one size";
  }
  if (a.strong() != b.strong()) {
    const Place& weak = a.strong() ? b : a;
    return fmt::format("make the {} at {} atomic too: cuda::atomic_ref, or an atomic function",
                       weak.writes() ? "write" : "read", line_text(sites, weak.site));
  }
  const bool same_line = sites[a.site].line_id == sites[b.site].line_id;
  if (a.writes() && b.writes() && same_line) {
    return fmt::format(
        "several threads write one element at {}: let one of them write it, or use an atomic "
        "function",
        line_text(sites, a.site));
  }
  if (distance.same_block) return barrier_advice(sites, a, b, distance);
  if (same_line)
    return fmt::format("use an atomic function at {}: blocks of a launch are not ordered",
                       line_text(sites, a.site));
  return "blocks of a launch are not ordered: use two launches, grid.sync(), atomic functions, or "
         "a flag with fences (__threadfence())";
}

}  // namespace

// Of two accesses to shared memory: one sets up an mbarrier, and the other uses it. Where barriers
// are checked, that is a mistake of theirs, in whatever order the two ran.
bool RaceChecker::sets_up(const Place& a, const Place& b) const {
  const auto is = [&](const Place& place, std::string_view what) {
    return place.site != kNoSite && collector_.sites()[place.site].opcode.starts_with(what);
  };
  const bool a_sets = is(a, "mbarrier.init"), b_sets = is(b, "mbarrier.init");
  return a_sets != b_sets && is(a, "mbarrier") && is(b, "mbarrier") && collector_.checks("sync");
}

bool RaceChecker::is_memory(uint64_t address) const {
  const LaunchEvent* launch = collector_.launch();
  if (!launch) return true;
  if (is_shared(address)) return (address & kOffsetBits) < launch->shared_bytes;
  return !launch->memory || launch->memory->owner(address).has_value();
}

results::FindingPlace RaceChecker::place_of(const Party& party) const {
  const Place& place = places_[party.key.place()];
  const HostOrder::Operation* of = host_.operation_of(party.block);
  const std::string verb = verb_of(place);
  if (place.site == kNoSite) {
    const char* action = place.frees      ? "free"
                         : place.writes() ? "write by a copy or fill"
                                          : "read by a copy";
    return collector_.host_place(action, place.stream);
  }
  Who by;
  if (of) by = {of->launch, party.block - of->first_uid, party.warp * kLanes + party.lane};
  return collector_.place(place.site, by,
                          fmt::format("{} of {} bytes", verb, 1u << party.key.size_log2()));
}

void RaceChecker::race(const Party& earlier, const Party& later, uint64_t address,
                       bool same_value) {
  const Place& a = places_[earlier.key.place()];
  const Place& b = places_[later.key.place()];
  const bool streams = earlier.block < launch_uid_ || !running_ || later.block < launch_uid_;
  const Rule rule = a.frees || b.frees    ? Rule::FreedInUse
                    : streams             ? Rule::StreamRace
                    : same_value          ? Rule::SameValueRace
                    : !is_shared(address) ? Rule::GlobalRace
                    : sets_up(a, b)       ? Rule::MbarrierMisuse
                                          : Rule::SharedRace;
  const bool host = a.site == kNoSite || b.site == kNoSite;
  // A race in a loop is found a million times, and is one finding.
  const bool same_block = earlier.block == later.block;
  const bool same_warp = same_block && earlier.warp == later.warp;
  const uint64_t pair = uint64_t{earlier.key.place()} << 34 | uint64_t{same_warp} << 30 |
                        uint64_t{later.key.place()} << 8 | static_cast<uint64_t>(rule);
  uint64_t& known = known_pairs_[(pair ^ pair >> 34) % std::size(known_pairs_)];
  if (known == pair && !host && rule != Rule::SameValueRace) {
    collector_.found(rule, a.site, b.site);
    return;
  }
  // Out of bounds: that is the finding.
  if (!is_memory(address)) return;
  const uint32_t line_a = collector_.sites()[a.site].line_id;
  const uint32_t line_b = collector_.sites()[b.site].line_id;
  const std::pair<uint32_t, uint32_t> lines = std::minmax(line_a, line_b);
  // Which of them ran first holds for this run only: lines are in a fixed order.
  const auto order = [&](const Party& party, const Place& place) {
    const KnownSite& at = collector_.sites()[place.site];
    const int64_t line = at.stack.empty() ? at.ptx_line : at.stack[0].line;
    return std::make_tuple(line, static_cast<int>(place.kind) == 0, party.block, party.warp,
                           party.lane);
  };
  const bool swap = order(later, b) < order(earlier, a);
  const Party &first = swap ? later : earlier, &second = swap ? earlier : later;
  if (rule == Rule::SameValueRace) {
    Note& note = notes_[lines];
    if (note.first != kNoSite) {
      ++note.finding.count;
      return;
    }
    note.first = a.site;
    note.second = b.site;
    fill(note.finding, rule, first, second, address);
    return;
  }
  if (rule != Rule::StreamRace) errors_.insert(lines);
  known = pair;
  results::Finding* finding =
      collector_.found(rule, a.site, b.site, host ? verb_of(a) + verb_of(b) : std::string());
  if (finding) {
    fill(*finding, rule, first, second, address);
  } else if (!same_warp && !streams && !host) {
    // What orders the threads of one warp is not enough.
    results::Finding* known_one = collector_.known(rule, a.site, b.site);
    if (known_one && known_one->advice.find("__syncwarp()") != std::string::npos)
      known_one->advice =
          advice_of(collector_.sites(), places_[first.key.place()], places_[second.key.place()],
                    {.same_block = same_block, .same_warp = false});
  }
}

void RaceChecker::report_notes() {
  for (auto& [lines, note] : notes_) {
    if (errors_.contains(lines)) continue;
    results::Finding* finding = collector_.found(Rule::SameValueRace, note.first, note.second);
    if (!finding) continue;
    finding->message = std::move(note.finding.message);
    finding->places = std::move(note.finding.places);
    finding->object = std::move(note.finding.object);
    finding->advice = std::move(note.finding.advice);
    finding->count = note.finding.count;
  }
  notes_.clear();
}

void RaceChecker::fill(results::Finding& finding, Rule rule, const Party& first,
                       const Party& second, uint64_t address) {
  const Place& a = places_[first.key.place()];
  const Place& b = places_[second.key.place()];
  const LaunchEvent* launch = collector_.launch();
  if (rule == Rule::MbarrierMisuse) {
    const bool first_sets = a.kind == AccessKind::Store;
    describe_unordered_setup(finding, place_of(first_sets ? second : first),
                             place_of(first_sets ? first : second));
    return;
  }
  finding.places = {place_of(first), place_of(second)};
  const uint32_t bytes = 1u << std::min(first.key.size_log2(), second.key.size_log2());
  std::string what = is_shared(address) ? "shared memory" : "global memory";
  if (launch && is_shared(address))
    finding.object = shared_object(*launch, address & kOffsetBits, bytes);
  else if (launch && launch->memory)
    finding.object = global_object(*launch->memory, address, bytes);
  if (finding.object && !finding.object->kind.empty()) what = indexed_text_of(*finding.object);
  if (rule == Rule::FreedInUse) {
    finding.message = "memory is freed while work of another stream may use it";
    finding.advice =
        "let the stream of the free wait for an event of the other (cudaStreamWaitEvent), or "
        "synchronize before";
    return;
  }
  if (rule == Rule::StreamRace) {
    finding.message = fmt::format("{} and {} of {} are on different streams without an order",
                                  article(verb_of(a)), article(verb_of(b)), what);
    finding.advice =
        "different streams: record an event after the first and let the other stream wait for it "
        "(cudaEventRecord, cudaStreamWaitEvent)";
    return;
  }
  Distance distance;
  distance.same_block = first.block == second.block;
  distance.same_warp = distance.same_block && first.warp == second.warp;
  finding.message = fmt::format("{} and {} of {} by threads of {} are not ordered",
                                article(verb_of(a)), article(verb_of(b)), what,
                                distance.same_warp    ? "one warp"
                                : distance.same_block ? "one block"
                                                      : "different blocks");
  finding.advice = advice_of(collector_.sites(), a, b, distance);
  if (rule == Rule::SameValueRace) {
    finding.message =
        fmt::format("several threads write the same value to {} without an order", what);
    finding.advice = "harmless while the values are equal: let one thread write it to be sure";
  }
}

}  // namespace kiln::watch
