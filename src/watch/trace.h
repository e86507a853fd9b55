// SPDX-License-Identifier: Apache-2.0
// Which bytes did each instruction touch? A line of JSON for each access of a warp, with its source
// line: the raw material for a question that no other tool answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"
#include "engine/memory/memory.h"

namespace kiln::watch {

class AccessTrace : public engine::Sink {
 public:
  using Write = std::function<void(std::string_view)>;
  using LaunchEnded = std::function<void()>;

  // `write` gets whole lines, and `launch_ended` is called behind the last one of a launch.
  // Accesses beyond `most` are counted and not written.
  AccessTrace(Write write, LaunchEnded launch_ended, uint64_t most)
      : write_(std::move(write)), launch_ended_(std::move(launch_ended)), most_(most) {}

  uint32_t wanted() const override { return engine::kAccessEvents; }
  void on(const engine::AccessEvent& event) override;
  void on(const engine::LaunchEvent& event) override;

 private:
  std::string region_text(const engine::AccessEvent& event);
  const std::string& place_text(const engine::Actor& by);

  Write write_;
  LaunchEnded launch_ended_;
  uint64_t most_, written_ = 0, left_out_ = 0;
  const engine::MemoryMap* memory_ = nullptr;
  uint64_t launch_ = 0;
  // Of the launch at hand, by site, as JSON; empty: not asked for yet.
  std::unordered_map<const engine::Program*, std::vector<std::string>> places_;
};

}  // namespace kiln::watch
