// SPDX-License-Identifier: Apache-2.0
// How do a test's workers behave? By what is told of each configuration: how long it builds, what a
// lane makes of it.
#pragma once

#include <deque>
#include <map>

#include "base/text.h"
#include "tune/tuner.h"

namespace kiln::tune {

struct FakeVariant {
  double build_s = 1, measure_s = 1;
  double us = 0;            // > 0: right, with this time
  std::string build_error;  // the compiler's words
  enum { Right, Wrong, Crash, Hang, Lose } end = Right;
};

// The clock moves when somebody waits.
class FakeWorkers final : public Workers {
 public:
  std::function<FakeVariant(const std::string& defines)> variant;
  // What the answer to a build, a measurement or a race becomes on its way; may be empty.
  std::function<Json(const std::string& of, Json answer)> garble;
  double clock = 0;
  size_t slots = 2;
  std::vector<Json> devices = {Json{{"kind", "cuda"}, {"name", "GPU A"}, {"compute", "9.0"}}};
  // What was seen.
  std::vector<std::string> built, measured, forgotten;
  int restarts = 0, races = 0;
  size_t most_builds = 0;

  size_t builders() const override { return slots; }
  const std::vector<Json>& lanes() const override { return devices; }
  Status build(uint64_t id, const std::vector<std::string>& defines) override {
    const std::string text = text::join(defines, " ");
    built.push_back(text);
    names_[id] = text;
    const FakeVariant one = variant(text);
    WorkEvent event;
    event.id = id;
    event.answer = one.build_error.empty()
                       ? Json{{"library", library}, {"seconds", one.build_s}}
                       : Json{{"error", {{"what", "compile x.cu"}, {"why", one.build_error}}}};
    if (garble) event.answer = garble("build " + text, event.answer);
    later_.emplace(clock + one.build_s, event);
    most_builds = std::max(most_builds, ++building_);
    return {};
  }
  Status measure(size_t lane, uint64_t id, const Json& request) override {
    WorkEvent event;
    event.kind = WorkEvent::Kind::Measured;
    event.id = id;
    event.lane = lane;
    event.answer = Json::object();
    if (request["do"] == "race") return race(event, request);
    const std::string text = names_.at(id);
    measured.push_back(text);
    const FakeVariant one = variant(text);
    const bool gpu = devices[lane]["kind"] == "cuda";
    if (gpu) event.answer = {{"us", one.us}, {"low_us", one.us * 0.99}, {"high_us", one.us * 1.01}};
    if (request["establish"].get<bool>()) event.answer["established"] = true;
    if (one.end == FakeVariant::Wrong)
      event.answer = {
          {"error", {{"what", "op gives a wrong result"}, {"why", "3 of 8 elements differ"}}},
          {"fate", "wrong"}};
    if (one.end == FakeVariant::Lose)
      event.answer = {{"error", {{"what", "op failed"}, {"why", "an illegal memory access"}}},
                      {"fate", "crashed"},
                      {"lost", true}};
    if (garble) event.answer = garble("measure " + text, event.answer);
    if (one.end == FakeVariant::Crash) {
      event.kind = WorkEvent::Kind::LaneEnded;
      event.words = "the process ended by signal 11 (Segmentation fault)";
    }
    if (one.end != FakeVariant::Hang) later_.emplace(clock + one.measure_s, event);
    return {};
  }
  Result<std::vector<WorkEvent>> wait(double seconds) override {
    const double until = clock + seconds;
    if (!later_.empty() && later_.begin()->first <= until) {
      clock = std::max(clock, later_.begin()->first);
      WorkEvent event = later_.begin()->second;
      later_.erase(later_.begin());
      building_ -= event.kind == WorkEvent::Kind::Built;
      return std::vector<WorkEvent>{event};
    }
    clock = until;
    return std::vector<WorkEvent>();
  }
  Status restart_lane(size_t) override {
    restarts++;
    return {};
  }
  void stop_build(uint64_t) override {}
  void forget(uint64_t id) override { forgotten.push_back(names_[id]); }

  std::string library = "/proc/self/exe";  // without device code: nothing is known about it

 private:
  Status race(WorkEvent event, const Json& request) {
    races++;
    for (size_t i = 0; i < request["libraries"].size(); ++i) {
      // The second of them was unlucky before: in turns it is the fastest.
      const double us = i == 1 ? 1 : 10 + static_cast<double>(i);
      for (const char* key : {"us", "low_us", "high_us"}) event.answer[key].push_back(us);
      event.answer["ratio"].push_back({1.0, 1.0, 1.0});
    }
    if (garble) event.answer = garble("race", event.answer);
    later_.emplace(clock + 1, event);
    return {};
  }
  std::multimap<double, WorkEvent> later_;
  std::map<uint64_t, std::string> names_;
  size_t building_ = 0;
};

}  // namespace kiln::tune
