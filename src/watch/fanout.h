// SPDX-License-Identifier: Apache-2.0
// How do several watchers see one run? Each event goes to those that want it, in their order.
#pragma once

#include <memory>
#include <vector>

#include "engine/machine/events.h"

namespace kiln::watch {

class Fanout : public engine::Sink {
 public:
  void add(std::unique_ptr<engine::Sink> watcher) { watchers_.push_back(std::move(watcher)); }
  bool empty() const { return watchers_.empty(); }

  uint32_t wanted() const override {
    uint32_t all = 0;
    for (const auto& each : watchers_) all |= each->wanted();
    return all;
  }
  bool can_merge() const override {
    for (const auto& each : watchers_) {
      if (!each->can_merge()) return false;
    }
    return true;
  }
  void on(const engine::AccessEvent& e) override { pass(e, engine::kAccessEvents); }
  void on(const engine::InstructionEvent& e) override { pass(e, engine::kInstructionEvents); }
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
  void on(const engine::LaunchEvent& e) override { pass(e, ~0u); }

 private:
  template <class Event>
  void pass(const Event& event, uint32_t bit) {
    for (const auto& each : watchers_) {
      if (bit == ~0u || (each->wanted() & bit)) each->on(event);
    }
  }

  std::vector<std::unique_ptr<engine::Sink>> watchers_;
};

}  // namespace kiln::watch
