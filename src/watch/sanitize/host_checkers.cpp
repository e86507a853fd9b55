// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/host_checkers.h"

#include <fmt/format.h>

#include <bit>

namespace kiln::watch {

using namespace engine;
using results::Finding;
using results::Rule;

ApiChecker::ApiChecker(Collector& collector) : collector_(collector) {
  collector.at_end([this] { report(); });
  collector.at_fork([this] { open_.clear(); });
}

void ApiChecker::on(const HostEvent& event) {
  if (event.kind == HostKind::ErrorRead) open_.erase(event.thread);
  if (event.kind != HostKind::Failed) return;
  Failure& failure = open_[event.thread][event.text];
  failure.text = event.text;
  failure.code = event.code;
  ++failure.count;
}

void ApiChecker::report() {
  for (const auto& [thread, failures] : open_) {
    for (const auto& [text, failure] : failures) {
      Finding* finding = collector_.found(Rule::ApiError, kNoSite, kNoSite, text);
      if (!finding) continue;
      finding->message = text.substr(0, text.find('\n'));
      finding->count = failure.count;
      finding->places.push_back(
          collector_.host_place(fmt::format("host call failed with error {}", failure.code), 0));
      finding->advice = "check the result of each CUDA call, or ask cudaGetLastError()";
    }
  }
  open_.clear();
}

LeakChecker::LeakChecker(Collector& collector) : collector_(collector) {
  collector.at_end([this] { report(); });
  collector.at_fork([this] { alive_.clear(); });
}

void LeakChecker::on(const HostEvent& event) {
  if (event.code) return;
  if (event.kind == HostKind::Free) alive_.erase(event.to.at);
  if (event.kind != HostKind::Allocate) return;
  Allocated& memory = alive_[event.to.at];
  memory.bytes = event.width;
  memory.call = event.call;
  if (!event.by.program || !collector_.launch()) return;
  memory.site = collector_.sites().id_of(event.by);
  memory.who = who(collector_.launch()->number, event.by,
                   static_cast<uint32_t>(std::countr_zero(event.by.mask)));
}

void LeakChecker::report() {
  for (const auto& [address, memory] : alive_) {
    const bool on_device = memory.site != kNoSite;
    Finding* finding = collector_.found(
        Rule::Leak, memory.site, kNoSite,
        on_device ? std::string() : fmt::format("{} {}", memory.call, memory.bytes));
    if (!finding) continue;
    finding->message = fmt::format("{} of {} bytes is never freed", memory.call, memory.bytes);
    finding->places.push_back(on_device ? collector_.place(memory.site, memory.who, memory.call)
                                        : collector_.host_place(memory.call, 0));
    finding->advice = "free it when the last kernel that uses it has ended";
  }
  alive_.clear();
}

}  // namespace kiln::watch
