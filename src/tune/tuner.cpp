// SPDX-License-Identifier: Apache-2.0
// In which order are variants built, pruned, checked, timed and raced?
#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tune/reasons.h"

namespace kiln::tune {

namespace {

// Libraries that wait for a lane lie on the disk.
constexpr size_t kMostReady = 64;
// Of a budget in time: what is left for the race.
constexpr double kSearchShare = 0.9;

bool is_gpu(const Json& device) { return text_in(device, "kind") != "engine"; }

// "9.0" gives 90.
uint32_t compute_of(const Json& device) {
  std::string digits = text_in(device, "compute");
  std::erase(digits, '.');
  return static_cast<uint32_t>(text::to_int(digits).value_or(0));
}

}  // namespace

std::string mixed_lanes(const std::vector<Json>& lanes) {
  std::vector<std::string> names;
  for (const Json& lane : lanes) {
    const std::string name = text_in(lane, "name", "?");
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names.size() > 1 ? text::join(names, ", ") : "";
}

std::vector<Outcome> fastest(const std::vector<Outcome>& outcomes, size_t count) {
  std::vector<Outcome> timed;
  for (const Outcome& outcome : outcomes)
    if (outcome.fate == Fate::Timed) timed.push_back(outcome);
  std::ranges::stable_sort(timed, {}, &Outcome::time_us);
  timed.resize(std::min(timed.size(), count));
  return timed;
}

std::optional<Outcome> best_of(const std::vector<Outcome>& outcomes) {
  const std::vector<Outcome> best = fastest(outcomes, 1);
  return best.empty() ? std::nullopt : std::optional(best.front());
}

void tell(Search& search, const Point& point, const Outcome& outcome) {
  if (outcome.fate == Fate::Timed)
    search.report(point, outcome.time_us);
  else if (outcome.fate == Fate::Pruned || outcome.fate == Fate::Unbuildable)
    search.report_refused(point);
  else
    search.report_untimed(point);
}

Tuner::Tuner(const Space& space, Search search, Journal& journal, Workers& workers, Task task,
             Hooks hooks)
    : space_(space),
      search_(std::move(search)),
      journal_(journal),
      workers_(workers),
      task_(std::move(task)),
      hooks_(std::move(hooks)),
      lanes_(workers.lanes().size()) {}

// What is known already is not tried again; a point that is no more in the space is passed over.
void Tuner::take_journal() {
  for (const Outcome& outcome : journal_.outcomes()) {
    const std::optional<Point> point = space_.find(outcome.defines);
    if (!point) continue;
    tell(search_, *point, outcome);
  }
  done_before_ = journal_.outcomes().size();
}

Progress Tuner::progress(std::string doing) const {
  Progress now;
  now.done = journal_.outcomes().size();
  now.trials = std::max<uint64_t>(search_.trials(), now.done);
  for (const Outcome& outcome : journal_.outcomes()) now.counts[outcome.fate]++;
  now.best = best_of(journal_.outcomes());
  now.doing = std::move(doing);
  const double elapsed = hooks_.now() - begun_;
  const uint64_t done_now = now.done - done_before_;
  if (done_now > 0)
    now.left_s =
        elapsed / static_cast<double>(done_now) * static_cast<double>(now.trials - now.done);
  if (task_.seconds > 0) {
    const double budget_left = std::max(0.0, task_.seconds - elapsed);
    now.left_s = done_now > 0 ? std::min(now.left_s, budget_left) : budget_left;
  }
  return now;
}

void Tuner::account() {
  const double now = hooks_.now();
  if (!building_.empty()) build_s_ += now - seen_;
  if (!measuring_.empty()) measure_s_ += now - seen_;
  seen_ = now;
}

bool Tuner::over() const {
  return task_.seconds > 0 && hooks_.now() - begun_ > task_.seconds * kSearchShare;
}

Status Tuner::start_builds() {
  while (!search_is_over_ && building_.size() < workers_.builders() && ready_.size() < kMostReady) {
    // A search that follows its results must not run far ahead of them.
    if (!search_.exhaustive() &&
        building_.size() + ready_.size() >= workers_.builders() + lanes_.size())
      return {};
    const std::vector<Point> points = search_.next(1);
    if (points.empty()) {
      // Neighbours of what is still under way may come.
      search_is_over_ = building_.empty() && ready_.empty() && measuring_.empty();
      return {};
    }
    Variant variant{points[0], space_.defines(points[0]), hooks_.now(), "", Json::object()};
    CHECK_OK(workers_.build(++last_id_, variant.defines));
    building_.emplace(last_id_, std::move(variant));
  }
  return {};
}

Json Tuner::request_for(const Variant& variant, const char* what) const {
  Json request{{"do", what},
               {"library", variant.library},
               {"op", task_.op},
               {"arguments", task_.arguments},
               {"check", task_.check},
               {"reference", task_.reference.string()},
               {"establish", !task_.has_reference},
               {"seed", task_.seed},
               {"options", task_.timing}};
  if (task_.rtol) request["rtol"] = *task_.rtol;
  if (task_.atol) request["atol"] = *task_.atol;
  return request;
}

Status Tuner::start_measurements() {
  // In turns, so that all show that they work.
  for (size_t tried = 0; tried < lanes_.size() && !ready_.empty(); ++tried) {
    const size_t lane = next_lane_++ % lanes_.size();
    if (lanes_[lane].id) continue;
    // Until there is something to compare with, one at a time makes it, in the order of the search:
    // which variant the others are compared with must not hang on which compiler is quicker.
    if (!task_.has_reference && !building_.empty() &&
        building_.begin()->first < ready_.begin()->first)
      return {};
    if (!task_.has_reference && std::exchange(establishing_, true)) return {};
    auto node = ready_.extract(ready_.begin());
    CHECK_OK(workers_.measure(lane, node.key(), request_for(node.mapped(), "time")));
    lanes_[lane] = {node.key(), hooks_.now()};
    measuring_.insert(std::move(node));
  }
  return {};
}

// A library is kept while its variant may still be a finalist.
void Tuner::forget_slow() {
  std::set<std::string> wanted;
  for (const Outcome& outcome : fastest(journal_.outcomes(), task_.finalists))
    wanted.insert(key_of(outcome.defines));
  for (auto at = kept_.begin(); at != kept_.end();) {
    const bool stays = wanted.contains(key_of(at->second.defines));
    if (!stays) workers_.forget(at->first);
    at = stays ? std::next(at) : kept_.erase(at);
  }
}

Status Tuner::finish(uint64_t id, Outcome outcome) {
  for (std::map<uint64_t, Variant>* from : {&building_, &ready_, &measuring_}) {
    auto node = from->extract(id);
    if (!node) continue;
    outcome.defines = node.mapped().defines;
    Json facts = node.mapped().facts;
    facts.update(outcome.facts);
    outcome.facts = std::move(facts);
    tell(search_, node.mapped().point, outcome);
    kept_.insert(std::move(node));
  }
  CHECK_OK(journal_.add(outcome));
  forget_slow();
  if (hooks_.on_outcome) hooks_.on_outcome(outcome);
  return {};
}

Status Tuner::built(uint64_t id, const Json& answer) {
  const auto found = building_.find(id);
  if (found == building_.end()) return {};
  Variant& variant = found->second;
  if (answer.contains("seconds")) variant.facts["build_s"] = answer["seconds"];
  if (answer.contains("worker")) variant.facts["built_by"] = answer["worker"];
  const std::string library = text_in(answer, "library");
  if (library.empty()) {
    Outcome outcome;
    // A project whose findings are errors has them found by its build.
    const std::string spill = line_with(answer, "spill to local memory");
    outcome.fate = spill.empty() ? Fate::Unbuildable : Fate::Pruned;
    outcome.reason = spill.empty() ? reason_of(answer) : spill;
    return finish(id, std::move(outcome));
  }
  variant.library = library;
  std::vector<std::string> defines = task_.defines;
  defines.insert(defines.end(), variant.defines.begin(), variant.defines.end());
  TRY(const CodeFacts facts,
      code_facts(variant.library, compute_of(workers_.lanes().front()), task_.rules, defines));
  variant.facts.update(to_json(facts));
  if (std::string why = why_pruned(facts, task_.rules); !why.empty()) {
    Outcome outcome;
    outcome.fate = Fate::Pruned;
    outcome.reason = std::move(why);
    return finish(id, std::move(outcome));
  }
  ready_.insert(building_.extract(found));
  return {};
}

Status Tuner::measured(uint64_t id, const Json& answer, size_t lane) {
  lanes_[lane].id.reset();
  establishing_ = false;
  Outcome outcome;
  const Json error = error_in(answer);
  const std::string fault = text_in(error, "fault");
  if (fault == "usage" || fault == "bug")
    return Error{Fault::Usage, text_in(error, "what"), text_in(error, "why"),
                 text_in(error, "fix")};
  const std::optional<double> us = number_in(answer, "us");
  // One that says neither how long it took nor what went wrong cannot be asked again.
  const bool odd = !answer.is_object() || (answer.contains("us") && !us);
  if (odd || answer.contains("error")) {
    outcome.fate = text_in(answer, "fate") == "wrong" ? Fate::Wrong : Fate::Crashed;
    outcome.reason =
        odd ? "the measuring process gave an unexpected answer: " + excerpt(dump(answer))
        : outcome.fate == Fate::Wrong ? first_line(text_in(error, "why"))
                                      : reason_of(answer);
    CHECK_OK(finish(id, std::move(outcome)));
    const bool lost = odd || (answer.contains("lost") && answer["lost"] == true);
    return lost ? workers_.restart_lane(lane) : Status();
  }
  if (answer.contains("established") && answer["established"] == true) task_.has_reference = true;
  outcome.fate = us ? Fate::Timed : Fate::Checked;
  outcome.time_us = us.value_or(0);
  outcome.low_us = number_in(answer, "low_us").value_or(outcome.time_us);
  outcome.high_us = number_in(answer, "high_us").value_or(outcome.time_us);
  for (const char* key : {"samples", "findings"})
    if (answer.contains(key)) outcome.facts[key] = answer[key];
  if (lanes_.size() > 1) outcome.facts["lane"] = lane;
  return finish(id, std::move(outcome));
}

Status Tuner::see(const WorkEvent& event) {
  if (event.kind == WorkEvent::Kind::Built) return built(event.id, event.answer);
  // The end of a lane that was restarted meanwhile.
  if (event.kind == WorkEvent::Kind::LaneEnded && event.id != 0 &&
      (event.lane >= lanes_.size() || lanes_[event.lane].id != event.id))
    return {};
  if (event.lane >= lanes_.size() || !lanes_[event.lane].id) {
    // A lane that ends while nobody asks it for anything does not belong to a variant.
    return event.kind == WorkEvent::Kind::LaneEnded ? workers_.restart_lane(event.lane) : Status();
  }
  const uint64_t id = *lanes_[event.lane].id;
  if (event.kind == WorkEvent::Kind::Measured)
    return event.id == id ? measured(id, event.answer, event.lane) : Status();
  lanes_[event.lane].id.reset();
  establishing_ = false;
  Outcome outcome;
  outcome.fate = Fate::Crashed;
  outcome.reason = first_line(event.words);
  CHECK_OK(finish(id, std::move(outcome)));
  return workers_.restart_lane(event.lane);
}

// Whoever takes too long is ended; the lane that hung begins anew.
Status Tuner::end_late() {
  const double now = hooks_.now();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane].id || now - lanes_[lane].since < task_.lane_limit_s) continue;
    const uint64_t id = *lanes_[lane].id;
    lanes_[lane].id.reset();
    establishing_ = false;
    CHECK_OK(workers_.restart_lane(lane));
    Outcome outcome;
    outcome.fate = Fate::Hung;
    outcome.reason = fmt::format("it did not finish in {:.0f} s", task_.lane_limit_s);
    CHECK_OK(finish(id, std::move(outcome)));
  }
  std::vector<uint64_t> late;
  for (const auto& [id, variant] : building_)
    if (now - variant.since > task_.build_limit_s) late.push_back(id);
  for (uint64_t id : late) {
    workers_.stop_build(id);
    Outcome outcome;
    outcome.fate = Fate::Unbuildable;
    outcome.reason = fmt::format("the build did not finish in {:.0f} s", task_.build_limit_s);
    CHECK_OK(finish(id, std::move(outcome)));
  }
  return {};
}

Status Tuner::step() {
  TRY(const std::vector<WorkEvent> events, workers_.wait(kWait_s));
  account();
  for (const WorkEvent& event : events) CHECK_OK(see(event));
  if (hooks_.interrupted && hooks_.interrupted())
    return Error{Fault::Interrupted, "interrupted", "", "run the same command again to resume"};
  return end_late();
}

Result<Tuned> Tuner::run() {
  begun_ = seen_ = hooks_.now();
  take_journal();
  if (const std::string names = mixed_lanes(workers_.lanes()); !names.empty())
    return Error{Fault::Environment, "cannot tune on different GPUs at a time",
                 fmt::format("times of {} cannot be compared", names),
                 "use workers with the same GPU model"};
  Tuned tuned;
  tuned.timed = is_gpu(workers_.lanes().front());
  for (;;) {
    if (over()) {
      tuned.time_is_over = !search_is_over_;
      break;
    }
    account();
    CHECK_OK(start_builds());
    CHECK_OK(start_measurements());
    if (search_is_over_ && building_.empty() && ready_.empty() && measuring_.empty()) break;
    if (hooks_.on_progress) hooks_.on_progress(progress(""));
    CHECK_OK(step());
  }
  // What is being measured is let finish; what waits is not.
  ready_.clear();
  for (const auto& [id, variant] : building_) workers_.stop_build(id);
  building_.clear();
  while (!measuring_.empty()) CHECK_OK(step());
  if (tuned.timed) {
    if (hooks_.on_progress) hooks_.on_progress(progress("the fastest in turns"));
    TRY(tuned.finalists, race(tuned.findings));
  }
  account();
  tuned.total_s = hooks_.now() - begun_;
  tuned.build_s = build_s_;
  tuned.measure_s = measure_s_;
  return tuned;
}

}  // namespace kiln::tune
