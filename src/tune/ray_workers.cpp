// SPDX-License-Identifier: Apache-2.0
// How are variants built and measured on several machines?
#include "tune/ray_workers.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "tune/local_workers.h"
#include "tune/reasons.h"

namespace kiln::tune {

namespace {

// A cluster that has to start first, and contexts on all its GPUs.
constexpr double kOpen_s = 180;

Error gone(const sys::ChildEvent& event) {
  const std::vector<std::string_view> lines = text::lines(text::trim(event.last_err));
  return {Fault::Environment, "the connection to Ray ended",
          lines.empty() ? fmt::format("with code {}", event.exit_code) : std::string(lines.back()),
          "pip install ray; -v shows what Ray says"};
}

Error error_of(const Json& line) {
  const Json error = error_in(line);
  return {Fault::Environment, text_in(error, "what", "Ray"), text_in(error, "why"),
          text_in(error, "fix")};
}

// Ray and what it runs may print lines of their own in between: those are nobody's answer.
std::optional<Json> answer_in(const std::string& line) {
  auto answer = parse_json(line, "the answer of Ray's workers");
  return answer && answer->is_object() ? std::optional(std::move(*answer)) : std::nullopt;
}

template <class Number>
std::optional<Number> count_in(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->template get<Number>();
}

}  // namespace

Result<std::unique_ptr<RayWorkers>> RayWorkers::open(RayPlan plan) {
  auto workers = std::unique_ptr<RayWorkers>(new RayWorkers(std::move(plan)));
  const RayPlan& own = workers->plan_;
  sys::ChildSpec spec;
  spec.arguments = own.bridge;
  spec.env = own.env;
  spec.talks = true;
  TRY(workers->bridge_, workers->children_.start(spec));
  workers->children_.say(workers->bridge_, dump({{"do", "open"},
                                                 {"address", own.address},
                                                 {"target", own.request.targets.at(0)},
                                                 {"folder", own.folder.string()},
                                                 {"device", own.device}}));
  TRY(const Json answer, workers->line_with("ready", kOpen_s));
  const Json& ready = answer["ready"];
  workers->builders_ = ready.is_object() ? count_in<size_t>(ready, "builders").value_or(1) : 1;
  if (ready.contains("lanes"))
    for (const Json& lane : ready["lanes"])
      if (lane.is_object()) workers->devices_.push_back(lane);
  if (workers->devices_.empty())
    return Error{Fault::Environment, "the cluster has nothing to measure on", "Ray has no workers",
                 "start one: ray start --address=HEAD:6379, and check ray status"};
  return workers;
}

Result<Json> RayWorkers::line_with(const char* key, double limit_s) {
  const double begun = sys::now_seconds();
  while (sys::now_seconds() - begun < limit_s) {
    std::optional<Json> found;
    for (const sys::ChildEvent& event : children_.wait(0.5)) {
      if (event.ended) return gone(event);
      std::optional<Json> line = answer_in(event.line);
      if (!line) continue;
      if (line->contains("error")) return error_of(*line);
      if (!found && line->contains(key))
        found = std::move(line);
      else
        early_.push_back(std::move(*line));
    }
    if (found) return std::move(*found);
    if (sys::pending_interrupt()) return sys::interrupted_error();
  }
  return Error{Fault::Environment, "Ray's workers do not respond",
               fmt::format("for {:.0f} s", limit_s), "ray status"};
}

Status RayWorkers::build(uint64_t id, const std::vector<std::string>& defines) {
  build::Request request = plan_.request;
  request.targets.clear();  // each machine has its own copy
  request.build_dir.clear();
  request.defines.insert(request.defines.end(), defines.begin(), defines.end());
  children_.say(bridge_, dump({{"do", "build"}, {"id", id}, {"words", build_words(request)}}));
  return {};
}

Status RayWorkers::measure(size_t lane, uint64_t id, const Json& request) {
  Json whole = request;
  whole["id"] = id;
  children_.say(bridge_, dump({{"do", "measure"}, {"lane", lane}, {"id", id}, {"request", whole}}));
  return {};
}

Result<std::vector<WorkEvent>> RayWorkers::wait(double seconds) {
  std::vector<Json> lines = std::exchange(early_, {});
  if (lines.empty())
    for (const sys::ChildEvent& event : children_.wait(seconds)) {
      if (event.ended) return gone(event);
      if (std::optional<Json> line = answer_in(event.line)) lines.push_back(std::move(*line));
    }
  std::vector<WorkEvent> found;
  for (const Json& line : lines) {
    if (line.contains("error")) return error_of(line);
    WorkEvent event;
    event.answer = line.contains("answer") ? line["answer"] : Json::object();
    event.lane = count_in<size_t>(line, "lane").value_or(0);
    const auto built = count_in<uint64_t>(line, "built"),
               measured = count_in<uint64_t>(line, "measured");
    const auto ended = count_in<size_t>(line, "lane_ended");
    if (built) {
      event.id = *built;
    } else if (measured) {
      event.kind = WorkEvent::Kind::Measured;
      event.id = *measured;
    } else if (ended) {
      event.kind = WorkEvent::Kind::LaneEnded;
      event.lane = *ended;
      event.id = count_in<uint64_t>(line, "id").value_or(0);
      event.words = text_in(line, "words", "the process ended");
    } else {
      continue;
    }
    found.push_back(std::move(event));
  }
  return found;
}

Status RayWorkers::restart_lane(size_t lane) {
  children_.say(bridge_, dump({{"do", "restart"}, {"lane", lane}}));
  TRY(const Json answer, line_with("restarted", kOpen_s));
  return {};
}

void RayWorkers::forget(uint64_t id) {
  (void)sys::real_files().remove(plan_.folder / fmt::format("variant-{}.so", id));
}

}  // namespace kiln::tune
