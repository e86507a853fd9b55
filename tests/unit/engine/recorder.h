// SPDX-License-Identifier: Apache-2.0
// How does a test see what a sink gets?
#pragma once

#include <string>
#include <vector>

#include "engine/machine/events.h"
#include "harness.h"

namespace kiln::engine {

// Keeps copies of all events, and what the addresses were.
struct Recorder : Sink {
  static constexpr uint32_t kAll = ~uint32_t{kGroupedAccesses};  // each by itself

  explicit Recorder(uint32_t bits = kAll) : bits_(bits) {}
  uint32_t wanted() const override { return bits_; }
  void on(const AccessEvent& event) override {
    accesses.push_back(event);
    accesses.back().addresses = nullptr;
    std::vector<uint64_t> at;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      if (event.by.mask >> lane & 1) at.push_back(event.address(lane));
    }
    addresses.push_back(at);
  }
  void on(const InstructionEvent& event) override { instructions.push_back(event); }
  void on(const ValueEvent& event) override {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      uint64_t value = 0;
      if (event.by.mask >> lane & 1) {
        std::memcpy(&value, static_cast<const std::byte*>(event.lanes) + lane * event.bytes,
                    event.bytes);
        values.push_back(value);
      }
    }
  }
  void on(const BranchEvent& event) override { branches.push_back(event); }
  void on(const CallEvent& event) override { calls.push_back(event); }
  void on(const ExitEvent& event) override { exits.push_back(event); }
  void on(const SyncEvent& event) override {
    syncs.push_back(event);
    syncs.back().sources = nullptr;
    sources.emplace_back();
    if (event.sources) sources.back().assign(event.sources, event.sources + kWarpSize);
  }
  void on(const MbarrierEvent& event) override { mbarriers.push_back(event); }
  void on(const HostEvent& event) override { host.push_back(event); }
  void on(const FenceEvent& event) override { fences.push_back(event); }
  void on(const AsyncEvent& event) override { asyncs.push_back(event); }
  void on(const BlockEvent& event) override { blocks.push_back(event); }
  void on(const LaunchEvent& event) override { launches.push_back(event); }

  std::vector<AccessEvent> accesses;
  std::vector<std::vector<uint64_t>> addresses;  // of the active lanes
  std::vector<InstructionEvent> instructions;
  std::vector<uint64_t> values;
  std::vector<BranchEvent> branches;
  std::vector<CallEvent> calls;
  std::vector<ExitEvent> exits;
  std::vector<SyncEvent> syncs;
  std::vector<std::vector<int8_t>> sources;  // of each sync
  std::vector<MbarrierEvent> mbarriers;
  std::vector<HostEvent> host;
  std::vector<FenceEvent> fences;
  std::vector<AsyncEvent> asyncs;
  std::vector<BlockEvent> blocks;
  std::vector<LaunchEvent> launches;

 private:
  uint32_t bits_;
};

struct Watched {
  explicit Watched(const std::string& text, uint32_t bits = Recorder::kAll)
      : session(text), recorder(bits) {
    session.device.sink = &recorder;
  }
  Session session;
  Recorder recorder;
};

inline std::string_view mnemonic_of(const Actor& by) { return by.program->sites[by.site].mnemonic; }

}  // namespace kiln::engine
