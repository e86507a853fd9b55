// SPDX-License-Identifier: Apache-2.0
// How do several watchers see one run? Each event goes to those that want it, in their order.
#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "engine/machine/events.h"

namespace kiln::watch {

class Fanout : public engine::Sink {
 public:
  void add(std::unique_ptr<engine::Sink> watcher) {
    add(*watcher);
    owned_.push_back(std::move(watcher));
  }
  // One that lives elsewhere.
  void add(engine::Sink& watcher) {
    wanted_ |= watcher.wanted();
    const uint32_t accesses = watcher.wanted() & (engine::kAccessEvents | engine::kGroupedAccesses);
    groups_ &= accesses != engine::kAccessEvents;
    merges_ &= watcher.can_merge();
    for (uint32_t bit = 0; bit < kBits; ++bit) {
      if (watcher.wanted() >> bit & 1) listeners_[bit].push_back(&watcher);
    }
    watchers_.push_back(&watcher);
    const auto& of_accesses = listeners_[std::countr_zero(uint32_t{engine::kAccessEvents})];
    sees_accesses_ = of_accesses.size() == 1 ? of_accesses[0] : nullptr;
  }
  bool empty() const { return watchers_.empty(); }

  // The watcher itself where there is but one: events go to it without a detour.
  static std::unique_ptr<engine::Sink> simplest(std::unique_ptr<Fanout> all) {
    if (all->owned_.size() == 1 && all->watchers_.size() == 1) return std::move(all->owned_[0]);
    return all;
  }

  // Accesses come in groups if all who see them can take them so.
  uint32_t wanted() const override {
    return groups_ ? wanted_ : wanted_ & ~uint32_t{engine::kGroupedAccesses};
  }
  bool can_merge() const override { return merges_; }
  // Most events are accesses, and most often one watcher wants them.
  void on(const engine::AccessEvent& e) override {
    if (sees_accesses_) [[likely]]
      sees_accesses_->on(e);
    else
      pass(e, engine::kAccessEvents);
  }
  void on(const engine::InstructionEvent& e) override { pass(e, engine::kInstructionEvents); }
  void on(const engine::StretchEvent& e) override { pass(e, engine::kStretchEvents); }
  void on(const engine::ValueEvent& e) override { pass(e, engine::kValueEvents); }
  void on(const engine::BranchEvent& e) override { pass(e, engine::kControlEvents); }
  void on(const engine::CallEvent& e) override { pass(e, engine::kControlEvents); }
  void on(const engine::ExitEvent& e) override { pass(e, engine::kSyncEvents); }
  void on(const engine::SyncEvent& e) override { pass(e, engine::kSyncEvents); }
  void on(const engine::FenceEvent& e) override { pass(e, engine::kFenceEvents); }
  void on(const engine::AsyncEvent& e) override { pass(e, engine::kAsyncEvents); }
  void on(const engine::MbarrierEvent& e) override { pass(e, engine::kMbarrierEvents); }
  void on(const engine::BlockEvent& e) override { pass(e, engine::kBlockEvents); }
  void on(const engine::HostEvent& e) override { pass(e, engine::kHostEvents); }
  void on(const engine::LaunchEvent& e) override {
    for (const auto& each : watchers_) each->on(e);
  }
  // All are asked: each may want to note it.
  bool recovers(const engine::FaultEvent& e) override {
    bool goes_on = false;
    for (const auto& each : watchers_) goes_on |= each->recovers(e);
    return goes_on;
  }
  bool gives_up(const engine::Actor& by) override {
    bool stops = false;
    for (const auto& each : watchers_) stops |= each->gives_up(by);
    return stops;
  }

 private:
  static constexpr uint32_t kBits = 32;

  template <class Event>
  void pass(const Event& event, uint32_t bit) {
    for (engine::Sink* each : listeners_[std::countr_zero(bit)]) each->on(event);
  }

  std::vector<engine::Sink*> watchers_;
  std::vector<std::unique_ptr<engine::Sink>> owned_;
  // By bit: asking each watcher for each event took longer than some of them take for it.
  std::vector<engine::Sink*> listeners_[kBits];
  engine::Sink* sees_accesses_ = nullptr;  // alone
  uint32_t wanted_ = 0;
  bool merges_ = true, groups_ = true;
};

}  // namespace kiln::watch
