// SPDX-License-Identifier: Apache-2.0
// Which of the fastest is the fastest? Their single times were taken minutes apart: here they run
// in turns, in one process.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "tune/reasons.h"
#include "tune/tuner.h"

namespace kiln::tune {

namespace {

constexpr uint64_t kRace = ~uint64_t{0};

// A number at `i` of the list under `key`, and of a list of lists at `part` of that; nothing for
// every other form.
std::optional<double> at(const Json& answer, const char* key, size_t i,
                         std::optional<size_t> part = {}) {
  const auto found = answer.find(key);
  if (found == answer.end() || !found->is_array() || i >= found->size()) return std::nullopt;
  const Json* value = &(*found)[i];
  if (part && (!value->is_array() || *part >= value->size())) return std::nullopt;
  if (part) value = &(*value)[*part];
  return value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

// False when one of its numbers is missing, or is none.
bool take_times(Finalist& one, const Json& answer, size_t i) {
  const auto us = at(answer, "us", i), low = at(answer, "low_us", i),
             high = at(answer, "high_us", i), ratio = at(answer, "ratio", i, 0),
             ratio_low = at(answer, "ratio", i, 1), ratio_high = at(answer, "ratio", i, 2);
  if (!us || !low || !high || !ratio || !ratio_low || !ratio_high) return false;
  one.us = *us;
  one.low_us = *low;
  one.high_us = *high;
  one.ratio = *ratio;
  one.ratio_low = *ratio_low;
  one.ratio_high = *ratio_high;
  return true;
}

}  // namespace

// Those of an earlier run are built again; the cache has them.
Result<std::map<std::string, std::string>> Tuner::libraries_of(
    const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::string> libraries;
  for (const auto& [id, variant] : kept_) libraries[key_of(variant.defines)] = variant.library;
  std::map<uint64_t, std::string> wanted;
  for (const Outcome& outcome : outcomes) {
    if (libraries.contains(key_of(outcome.defines))) continue;
    CHECK_OK(workers_.build(++last_id_, outcome.defines));
    wanted.emplace(last_id_, key_of(outcome.defines));
    // Counts as building for the account.
    building_.emplace(last_id_, Variant{{}, outcome.defines, hooks_.now(), "", Json::object()});
  }
  const double begun = hooks_.now();
  while (!wanted.empty()) {
    TRY(const std::vector<WorkEvent> events, workers_.wait(kWait_s));
    account();
    for (const WorkEvent& event : events) {
      const auto found = wanted.find(event.id);
      if (event.kind != WorkEvent::Kind::Built || found == wanted.end()) continue;
      if (std::string library = text_in(event.answer, "library"); !library.empty())
        libraries[found->second] = std::move(library);
      building_.erase(event.id);
      wanted.erase(found);
    }
    if (hooks_.interrupted && hooks_.interrupted())
      return Error{Fault::Interrupted, "interrupted", "", ""};
    if (hooks_.now() - begun <= task_.build_limit_s) continue;
    for (const auto& [id, key] : wanted) workers_.stop_build(id), building_.erase(id);
    wanted.clear();
  }
  return libraries;
}

// The single times of two finalists were taken minutes apart, at other clocks and temperatures.
// Only samples taken in turns can say which is faster, so the best few meet once more in one
// process.
Result<std::vector<Finalist>> Tuner::race(std::vector<std::string>& findings) {
  const std::vector<Outcome> best = fastest(journal_.outcomes(), task_.finalists);
  std::vector<Finalist> finalists;
  for (const Outcome& outcome : best)
    finalists.push_back(
        {outcome.defines, outcome.time_us, outcome.low_us, outcome.high_us, 1, 1, 1});
  if (best.size() < 2) return finalists;
  TRY(const auto libraries, libraries_of(best));
  Json paths = Json::array();
  for (const Outcome& outcome : best) {
    const auto found = libraries.find(key_of(outcome.defines));
    if (found == libraries.end()) {
      findings.push_back("the fastest were not timed in alternation: " + key_of(outcome.defines) +
                         " could not be built again");
      return finalists;
    }
    paths.push_back(found->second);
  }
  Json request = request_for({}, "race");
  request["libraries"] = std::move(paths);
  request["options"] = task_.racing;
  account();
  measuring_.emplace(kRace, Variant{});
  CHECK_OK(workers_.measure(0, kRace, request));
  const double begun = hooks_.now();
  Json answer;
  bool answered = false;
  const auto take = [&](Json given) {
    answer = std::move(given);
    answered = true;
  };
  while (!answered) {
    TRY(const std::vector<WorkEvent> events, workers_.wait(kWait_s));
    account();
    for (const WorkEvent& event : events) {
      if (event.kind == WorkEvent::Kind::LaneEnded && event.lane == 0)
        take(Json{{"error", {{"what", "the race"}, {"why", event.words}}}});
      if (event.kind == WorkEvent::Kind::Measured && event.id == kRace) take(event.answer);
    }
    if (hooks_.interrupted && hooks_.interrupted())
      return Error{Fault::Interrupted, "interrupted", "", ""};
    if (hooks_.now() - begun > task_.lane_limit_s * static_cast<double>(best.size()))
      take(Json{{"error", {{"what", "the race"}, {"why", "it did not finish in time"}}}});
  }
  measuring_.clear();
  if (answer.contains("error")) {
    findings.push_back("the fastest were not timed in alternation: " + reason_of(answer));
    return finalists;
  }
  std::vector<Finalist> raced = finalists;
  for (size_t i = 0; i < raced.size(); ++i)
    if (!answer.is_object() || !take_times(raced[i], answer, i)) {
      findings.push_back(
          "the fastest were not timed in alternation: the measuring process gave an unexpected "
          "answer: " +
          excerpt(dump(answer)));
      return finalists;
    }
  finalists = std::move(raced);
  if (answer.contains("findings") && answer["findings"].is_array())
    for (const Json& finding : answer["findings"])
      if (finding.is_string()) findings.push_back(finding.get<std::string>());
  std::ranges::stable_sort(finalists, {}, &Finalist::us);
  return finalists;
}

}  // namespace kiln::tune
