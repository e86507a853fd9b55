// SPDX-License-Identifier: Apache-2.0
// How are variants built and measured on this machine?
#include "tune/local_workers.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "tune/reasons.h"

namespace kiln::tune {

namespace {

// The lane is never to wait for a compiler.
constexpr int kBuildNiceness = 10;
// A context on a machine with many GPUs takes seconds.
constexpr double kLaneStart_s = 120;

std::string last_words(const sys::ChildEvent& event) {
  const std::vector<std::string_view> lines = text::lines(text::trim(event.last_err));
  std::string words = event.signal ? fmt::format("the process ended by signal {} ({})",
                                                 event.signal, ::strsignal(event.signal))
                                   : fmt::format("the process ended with code {}", event.exit_code);
  if (!lines.empty() && !lines.back().empty()) words += ": " + std::string(lines.back());
  return words;
}

}  // namespace

std::vector<std::string> build_words(const build::Request& request) {
  std::vector<std::string> words = request.targets;
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", flag, value));
  };
  add("--name", request.name);
  add("--arch", request.arch);
  for (const std::string& define : request.defines) add("--define", define);
  for (const std::string& folder : request.includes) add("--include", folder);
  for (const std::string& flag : request.cuda_flags) add("--cuda-flag", flag);
  for (const std::string& flag : request.cflags) add("--cflag", flag);
  for (const std::string& flag : request.ldflags) add("--ldflag", flag);
  if (request.fast_math) words.emplace_back("--fast-math");
  if (request.compat != "auto") add("--compat", request.compat);
  if (request.findings_fail) add("--findings", *request.findings_fail ? "error" : "warning");
  if (request.fresh) words.emplace_back("--fresh");
  add("--build-dir", request.build_dir);
  return words;
}

Result<std::unique_ptr<LocalWorkers>> LocalWorkers::open(LocalPlan plan) {
  auto workers = std::unique_ptr<LocalWorkers>(new LocalWorkers(std::move(plan)));
  CHECK_OK(workers->start_lane());
  return workers;
}

sys::fs::path LocalWorkers::folder_of(uint64_t id) const {
  return plan_.folder / fmt::format("variant-{}", id);
}

Status LocalWorkers::see_hello(const sys::ChildEvent& event) {
  if (event.ended)
    return Error{Fault::Environment, "cannot start the process that measures", last_words(event),
                 "check that the target runs on its own: kiln call FILE.cu OP ARGS"};
  TRY(Json answer, parse_json(event.line, "the answer of the measuring process"));
  if (!answer.contains("device") || !answer["device"].is_object()) {
    const Json error = error_in(answer);
    return Error{Fault::Environment, "cannot measure on this machine",
                 text_in(error, "why", event.line), text_in(error, "fix")};
  }
  devices_ = {answer["device"]};
  return {};
}

// It says what it measures on: a GPU that a variant has broken does not answer.
Status LocalWorkers::start_lane() {
  sys::ChildSpec spec;
  spec.arguments = plan_.lane;
  spec.env = plan_.env;
  spec.talks = true;
  TRY(lane_, children_.start(spec));
  children_.say(lane_, dump({{"do", "hello"}}));
  const double begun = sys::now_seconds();
  while (sys::now_seconds() - begun < kLaneStart_s) {
    std::optional<sys::ChildEvent> first;
    // All of them: a build that ends in the same moment ends only once.
    for (sys::ChildEvent& event : children_.wait(0.5)) {
      if (event.child != lane_ || first)
        early_.push_back(std::move(event));
      else
        first = std::move(event);
    }
    if (first) return see_hello(*first);
    if (sys::pending_interrupt()) return sys::interrupted_error();
  }
  return Error{Fault::Environment, "cannot start the process that measures",
               fmt::format("it did not answer in {:.0f} s", kLaneStart_s), "check nvidia-smi"};
}

Status LocalWorkers::build(uint64_t id, const std::vector<std::string>& defines) {
  build::Request request = plan_.request;
  request.defines.insert(request.defines.end(), defines.begin(), defines.end());
  request.build_dir = folder_of(id).string();
  sys::ChildSpec spec;
  spec.arguments = {plan_.kiln.string(), "build", "--json"};
  for (std::string& word : build_words(request)) spec.arguments.push_back(std::move(word));
  spec.env = plan_.env;
  spec.env->set("MAX_JOBS", "1");
  spec.directory = plan_.request.directory;
  // Nothing is timed on the engine.
  if (text_in(devices_.front(), "kind") != "engine") spec.niceness = kBuildNiceness;
  TRY(const int child, children_.start(spec));
  builds_.emplace(child, id);
  return {};
}

Status LocalWorkers::measure(size_t, uint64_t id, const Json& request) {
  Json whole = request;
  whole["id"] = id;
  children_.say(lane_, dump(whole));  // one that has gone is an event of its own
  return {};
}

Result<std::vector<WorkEvent>> LocalWorkers::wait(double seconds) {
  std::vector<WorkEvent> found;
  std::vector<sys::ChildEvent> events = std::exchange(early_, {});
  if (events.empty()) events = children_.wait(seconds);
  for (const sys::ChildEvent& event : events) {
    WorkEvent work;
    if (event.child == lane_) {
      work.kind = event.ended ? WorkEvent::Kind::LaneEnded : WorkEvent::Kind::Measured;
      if (event.ended) {
        work.words = last_words(event);
      } else {
        auto answer = parse_json(event.line, "the answer of the measuring process");
        if (!answer || !answer->is_object() || !answer->contains("id") ||
            !(*answer)["id"].is_number_unsigned()) {
          // Which question it belongs to is not known: the lane begins anew.
          work.kind = WorkEvent::Kind::LaneEnded;
          work.words = "the measuring process gave an unexpected answer: " + excerpt(event.line);
        } else {
          work.answer = std::move(*answer);
          work.id = work.answer["id"].get<uint64_t>();
        }
      }
      found.push_back(std::move(work));
      continue;
    }
    const auto build = builds_.find(event.child);
    if (build == builds_.end() || !event.ended) continue;
    work.id = build->second;
    builds_.erase(build);
    auto answer = parse_json(event.out, "the answer of kiln build");
    work.answer = answer && answer->is_object()
                      ? *answer
                      : Json{{"error", {{"what", "kiln build"}, {"why", last_words(event)}}}};
    if (event.exit_code != 0) work.answer.erase("library");
    found.push_back(std::move(work));
  }
  return found;
}

Status LocalWorkers::restart_lane(size_t) {
  children_.kill(lane_, SIGKILL);
  return start_lane();
}

void LocalWorkers::stop_build(uint64_t id) {
  for (auto at = builds_.begin(); at != builds_.end(); ++at) {
    if (at->second != id) continue;
    children_.kill(at->first, SIGTERM);
    builds_.erase(at);
    return;
  }
}

void LocalWorkers::forget(uint64_t id) { (void)sys::real_files().remove(folder_of(id)); }

}  // namespace kiln::tune
