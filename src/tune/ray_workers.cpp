// SPDX-License-Identifier: Apache-2.0
// How are variants built and measured on several machines?
#include "tune/ray_workers.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "tune/local_workers.h"

namespace kiln::tune {

namespace {

// A cluster that has to start first, and contexts on all its GPUs.
constexpr double kOpen_s = 180;

Error gone(const sys::ChildEvent& event) {
  const std::vector<std::string_view> lines = text::lines(text::trim(event.last_err));
  return {Fault::Environment, "the connection to Ray ended",
          lines.empty() ? fmt::format("with code {}", event.exit_code) : std::string(lines.back()),
          "pip install kiln-cuda[ray]; -v shows what Ray says"};
}

Error error_of(const Json& line) {
  const Json& error = line["error"];
  return {Fault::Environment, error.value("what", "Ray"), error.value("why", ""), error.value("fix", "")};
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
  workers->builders_ = answer["ready"].value("builders", size_t{1});
  for (const Json& lane : answer["ready"]["lanes"]) workers->devices_.push_back(lane);
  if (workers->devices_.empty())
    return Error{Fault::Environment, "the cluster has nothing to measure on", "Ray knows no worker",
                 "start one: ray start --address=HEAD:6379, and see ray status"};
  return workers;
}

Result<Json> RayWorkers::line_with(const char* key, double limit_s) {
  const double begun = sys::now_seconds();
  while (sys::now_seconds() - begun < limit_s) {
    std::optional<Json> found;
    for (const sys::ChildEvent& event : children_.wait(0.5)) {
      if (event.ended) return gone(event);
      TRY(Json line, parse_json(event.line, "the answer of Ray's workers"));
      if (line.contains("error")) return error_of(line);
      if (!found && line.contains(key))
        found = std::move(line);
      else
        early_.push_back(std::move(line));
    }
    if (found) return std::move(*found);
    if (sys::pending_interrupt()) return sys::interrupted_error();
  }
  return Error{Fault::Environment, "Ray's workers do not answer", fmt::format("for {:.0f} s", limit_s), "ray status"};
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
      TRY(Json line, parse_json(event.line, "the answer of Ray's workers"));
      lines.push_back(std::move(line));
    }
  std::vector<WorkEvent> found;
  for (const Json& line : lines) {
    if (line.contains("error")) return error_of(line);
    WorkEvent event;
    event.answer = line.contains("answer") ? line["answer"] : Json::object();
    event.lane = line.value("lane", size_t{0});
    if (line.contains("built")) {
      event.id = line["built"].get<uint64_t>();
    } else if (line.contains("measured")) {
      event.kind = WorkEvent::Kind::Measured;
      event.id = line["measured"].get<uint64_t>();
    } else if (line.contains("lane_ended")) {
      event.kind = WorkEvent::Kind::LaneEnded;
      event.lane = line["lane_ended"].get<size_t>();
      event.id = line.value("id", uint64_t{0});
      event.words = line.value("words", "the process ended");
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
