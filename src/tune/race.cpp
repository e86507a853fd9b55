// SPDX-License-Identifier: Apache-2.0
// Which of the fastest is the fastest? Their single times were taken minutes apart: here they run in turns, in one
// process.
#include <algorithm>

#include "base/text.h"
#include "tune/reasons.h"
#include "tune/tuner.h"

namespace kiln::tune {

namespace {

constexpr uint64_t kRace = ~uint64_t{0};

std::string key_of(const std::vector<std::string>& defines) { return text::join(defines, " "); }

}  // namespace

// Those of an earlier run are built again; the cache has them.
Result<std::map<std::string, std::string>> Tuner::libraries_of(const std::vector<Outcome>& outcomes) {
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
      if (event.answer.contains("library")) libraries[found->second] = event.answer["library"].get<std::string>();
      building_.erase(event.id);
      wanted.erase(found);
    }
    if (hooks_.interrupted && hooks_.interrupted()) return Error{Fault::Interrupted, "interrupted", "", ""};
    if (hooks_.now() - begun <= task_.build_limit_s) continue;
    for (const auto& [id, key] : wanted) workers_.stop_build(id), building_.erase(id);
    wanted.clear();
  }
  return libraries;
}

Result<std::vector<Finalist>> Tuner::race(std::vector<std::string>& findings) {
  const std::vector<Outcome> best = fastest(journal_.outcomes(), task_.finalists);
  std::vector<Finalist> finalists;
  for (const Outcome& outcome : best)
    finalists.push_back({outcome.defines, outcome.time_us, outcome.low_us, outcome.high_us, 1, 1, 1});
  if (best.size() < 2) return finalists;
  TRY(const auto libraries, libraries_of(best));
  Json paths = Json::array();
  for (const Outcome& outcome : best) {
    const auto found = libraries.find(key_of(outcome.defines));
    if (found == libraries.end()) {
      findings.push_back("the fastest were not timed in turns: " + key_of(outcome.defines) +
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
  while (answer.is_null()) {
    TRY(const std::vector<WorkEvent> events, workers_.wait(kWait_s));
    account();
    for (const WorkEvent& event : events) {
      if (event.kind == WorkEvent::Kind::LaneEnded && event.lane == 0)
        answer = Json{{"error", {{"what", "the race"}, {"why", event.words}}}};
      if (event.kind == WorkEvent::Kind::Measured && event.id == kRace) answer = event.answer;
    }
    if (hooks_.interrupted && hooks_.interrupted()) return Error{Fault::Interrupted, "interrupted", "", ""};
    if (hooks_.now() - begun > task_.lane_limit_s * static_cast<double>(best.size()))
      answer = Json{{"error", {{"what", "the race"}, {"why", "it did not finish in time"}}}};
  }
  measuring_.clear();
  if (answer.contains("error")) {
    findings.push_back("the fastest were not timed in turns: " + reason_of(answer));
    return finalists;
  }
  for (size_t i = 0; i < finalists.size(); ++i) {
    Finalist& one = finalists[i];
    one.us = answer["us"][i].get<double>();
    one.low_us = answer["low_us"][i].get<double>();
    one.high_us = answer["high_us"][i].get<double>();
    one.ratio = answer["ratio"][i][0].get<double>();
    one.ratio_low = answer["ratio"][i][1].get<double>();
    one.ratio_high = answer["ratio"][i][2].get<double>();
  }
  if (answer.contains("findings"))
    for (const Json& finding : answer["findings"]) findings.push_back(finding.get<std::string>());
  std::ranges::stable_sort(finalists, {}, &Finalist::us);
  return finalists;
}

}  // namespace kiln::tune
