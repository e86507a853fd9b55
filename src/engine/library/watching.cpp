// SPDX-License-Identifier: Apache-2.0
// What do the watchers provide to the library?
#include "engine/library/watching.h"

#include <memory>
#include <mutex>
#include <utility>

#include "engine/cuda/errors.h"
#include "engine/cudart/state.h"
#include "watch/asked.h"
#include "watch/compiled.h"
#include "watch/fanout.h"
#include "watch/sanitize/sanitizer.h"

namespace kiln::engine {
namespace {

constexpr uint64_t kQuarantineBytes = uint64_t{32} << 20;

}  // namespace

Sink* watchers_of(const Environment& asked, std::string* problem) {
  if (asked.compile == "report") watch::report_compiled();
  if (!asked.sanitize.empty()) state().device.heap.set_quarantine(kQuarantineBytes);
  return watch::make_watchers({std::string(asked.accesses),
                               asked.accesses_limit,
                               std::string(asked.lines),
                               std::string(asked.counters),
                               std::string(asked.caches),
                               asked.fidelity,
                               {std::string(asked.sanitize), std::string(asked.sanitize_folder)}},
                              problem);
}

const char* sanitize_part(const char* checks) {
  static std::unique_ptr<watch::SanitizedPart> part;
  static std::string answer;
  Device& device = state().device;
  if (checks) {
    std::string problem;
    if (device.watched()) problem = "the process is watched already";
    auto begun = problem.empty() ? watch::SanitizedPart::begin(checks, &problem) : nullptr;
    answer = problem.empty() ? "{}" : watch::SanitizedPart::refusal(problem);
    if (!begun) return answer.c_str();
    part = std::move(begun);
    device.sink = &part->sink();
  } else if (part) {
    device.sink = nullptr;
    answer = part->end();
    part.reset();
  } else {
    answer = watch::SanitizedPart::refusal("nothing was begun");
  }
  return answer.c_str();
}

int count_launches_into(const char* path) {
  Device& device = state().device;
  static Sink* before = nullptr;
  static std::unique_ptr<Sink> counting;
  device.watched();  // so that the watchers of the environment exist
  std::lock_guard lock(device.watching);
  if (counting) device.sink = before;
  counting.reset();
  if (!path) return kSuccess;
  auto counters = watch::make_counters(path, std::string(environment().caches));
  if (!counters) return kInvalidValue;
  before = device.sink;
  auto both = std::make_unique<watch::Fanout>();
  if (before) both->add(*before);
  both->add(std::move(counters));
  counting = watch::Fanout::simplest(std::move(both));
  device.sink = counting.get();
  return kSuccess;
}

}  // namespace kiln::engine
