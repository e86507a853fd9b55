// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/collector.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <bit>

#include "engine/machine/fault.h"

namespace kiln::watch {

using namespace engine;
using results::Finding;
using results::FindingPlace;
using results::Rule;

namespace {

std::vector<int64_t> of_dim(uint64_t number, const KilnDim3& dim) {
  const uint64_t x = std::max(dim.x, 1u), y = std::max(dim.y, 1u);
  return {static_cast<int64_t>(number % x), static_cast<int64_t>(number / x % y),
          static_cast<int64_t>(number / x / y)};
}

}  // namespace

void Collector::count_launch(const LaunchEvent& event, const std::string& kernel) {
  ++findings_.launches;
  auto& kernels = findings_.kernels;
  if (programs_.size() < results::Findings::kMostKernels &&
      programs_.insert(event.program->serial).second &&
      std::ranges::find(kernels, kernel) == kernels.end())
    kernels.push_back(kernel);
}

void Collector::on(const LaunchEvent& event) {
  faulty_.clear();
  if (event.ended) {
    running_.reset();
    return;
  }
  running_ = event;
  // Names of old launches are dropped before the process runs out of memory.
  if (launches_.size() >= kMostLaunches) {
    const uint64_t oldest = event.number - std::min<uint64_t>(event.number, kMostLaunches / 2);
    std::erase_if(launches_, [&](const auto& entry) { return entry.first < oldest; });
  }
  const std::string kernel = demangled(event.program->name);
  count_launch(event, kernel);
  launches_[event.number] = {event.number, event.stream, kernel, event.grid, event.block};
}

const KnownLaunch* Collector::launch_named(uint64_t number) const {
  const auto found = launches_.find(number);
  return found == launches_.end() ? nullptr : &found->second;
}

Finding* Collector::found(Rule rule, SiteId first, SiteId second, std::string_view text) {
  if (news_ && on_more_) on_more_();
  const auto number = static_cast<uint32_t>(rule);
  counts_.resize(results::rules().size());
  ++counts_[number];
  ++times_;
  uint64_t low = sites_[first].line_id, high = sites_[second].line_id;
  if (low > high) std::swap(low, high);
  const Key key{low << 32 | high, number, text.empty() ? 0 : std::hash<std::string_view>()(text)};
  const auto known = known_.find(key);
  if (known != known_.end()) {
    ++findings_.findings[known->second].count;
    return nullptr;
  }
  if (findings_.findings.size() >= kMostFindings) {
    ++findings_.left_out;
    return nullptr;
  }
  known_.emplace(key, findings_.findings.size());
  news_ = true;
  const results::RuleRow& row = results::row_of(rule);
  Finding& finding = findings_.findings.emplace_back();
  finding.rule = row.name;
  finding.check = name_of(row.check);
  finding.severity = name_of(row.severity);
  finding.message = row.title;
  return &finding;
}

Finding* Collector::known(Rule rule, SiteId first, SiteId second) {
  uint64_t low = sites_[first].line_id, high = sites_[second].line_id;
  if (low > high) std::swap(low, high);
  const auto known = known_.find(Key{low << 32 | high, static_cast<uint32_t>(rule), 0});
  return known == known_.end() ? nullptr : &findings_.findings[known->second];
}

Finding* Collector::newest(Rule rule) {
  if (findings_.findings.empty()) return nullptr;
  Finding& last = findings_.findings.back();
  return last.rule == results::row_of(rule).name && last.count == 1 ? &last : nullptr;
}

void Collector::withdraw_newest(Rule rule) {
  if (!newest(rule)) return;
  findings_.findings.pop_back();
  std::erase_if(known_,
                [&](const auto& entry) { return entry.second == findings_.findings.size(); });
  --counts_[static_cast<uint32_t>(rule)];
}

FindingPlace Collector::place(SiteId site, const Who& who, std::string action) const {
  const KnownSite& known = sites_[site];
  FindingPlace place;
  place.action = std::move(action);
  place.stack = known.stack;
  place.ptx_line = known.ptx_line;
  place.opcode = known.opcode;
  place.launch = static_cast<int64_t>(who.launch);
  if (const KnownLaunch* launch = launch_named(who.launch)) {
    place.kernel = launch->kernel;
    place.stream = static_cast<int64_t>(launch->stream);
    place.thread = of_dim(who.thread, launch->block);
    place.block = of_dim(who.block, launch->grid);
  }
  if (known.function != place.kernel) place.function = known.function;
  return place;
}

FindingPlace Collector::host_place(std::string action, uint64_t stream) const {
  FindingPlace place;
  place.action = std::move(action);
  place.stream = static_cast<int64_t>(stream);
  return place;
}

const results::Findings& Collector::findings() {
  findings_.by_rule.clear();
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i]) findings_.by_rule.emplace_back(results::rules()[i].name, counts_[i]);
  }
  return findings_;
}

void Collector::end() {
  for (const auto& decide : at_end_) decide();
}

void Collector::forget() {
  for (const auto& forget_own : at_fork_) forget_own();
  const std::vector<std::string> checks = std::move(findings_.checks);
  findings_ = {};
  findings_.checks = checks;
  programs_.clear();
  known_.clear();
  counts_.clear();
  news_ = false;
  // The child is noticed at its first launch, which is its own.
  if (running_) count_launch(*running_, demangled(running_->program->name));
}

namespace {

// Not the clock's: on a busy machine a kernel takes longer, and does no more.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A thread that spins holds up those that wait at a barrier: its value comes first.
std::string deadlock_advice(const std::vector<Waiter>& waiters) {
  const auto any = [&](WaitsFor what) {
    return std::ranges::any_of(waiters, [&](const auto& one) { return one.waits_for == what; });
  };
  if (any(WaitsFor::Memory))
    return "write the value before the launch, or in a thread that runs at the same time and does "
           "not wait itself: neither the host nor a later kernel can write it in time";
  if (any(WaitsFor::Mbarrier))
    return "let as many threads arrive as the mbarrier was set up for, and all bytes that it "
           "expects";
  if (any(WaitsFor::Grid)) return "let every thread of the grid reach its barrier";
  if (any(WaitsFor::Cluster)) return "let every thread of the cluster arrive at its barrier";
  return "let every thread that the barrier counts reach it, the same number of times";
}

}  // namespace

bool Collector::gives_up(const Actor& by) {
  const auto first = faulty_.find(by.block);
  return first != faulty_.end() && thread_seconds() - first->second > kMostSecondsAfterFault;
}

bool Collector::recovers(const FaultEvent& fault) {
  if (fault.kind != FaultKind::Deadlock && fault.kind != FaultKind::Other) {
    // Blocks that wait for each other are few; those of before have ended.
    if (faulty_.size() >= kMostFaultyBlocks) faulty_.clear();
    if (!faulty_.contains(fault.by.block)) faulty_.emplace(fault.by.block, thread_seconds());
    return true;
  }
  const bool deadlock = fault.kind == FaultKind::Deadlock;
  const bool somewhere = fault.by.program != nullptr;
  const SiteId site = somewhere ? sites_.id_of(fault.by) : kNoSite;
  if (!running_) return false;
  const std::string text = fault.text ? *fault.text : "";
  Finding* finding = found(deadlock ? Rule::Deadlock : Rule::KernelFault, site, kNoSite,
                           somewhere ? std::string_view() : running_->program->name);
  if (!finding) return false;
  if (!text.empty()) finding->message = first_line(text);
  if (somewhere) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(fault.by.mask));
    finding->places.push_back(place(site, who(running_->number, fault.by, lane), "stops here"));
  }
  if (!fault.waiters) return false;
  for (const Waiter& waiter : *fault.waiters) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(waiter.by.mask));
    finding->places.push_back(place(
        sites_.id_of(waiter.by), who(running_->number, waiter.by, lane),
        fmt::format("{} thread{} wait{} at {}", waiter.threads, waiter.threads == 1 ? "" : "s",
                    waiter.threads == 1 ? "s" : "", waiter.waits_at)));
  }
  finding->advice = deadlock_advice(*fault.waiters);
  return false;
}

}  // namespace kiln::watch
