// SPDX-License-Identifier: Apache-2.0
// Which bytes did each instruction touch? A line of JSON for each access of a warp, with its source
// line: the raw material for a question that no other tool answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/machine/events.h"
#include "engine/memory/memory.h"

namespace kiln::watch {

class AccessTrace : public engine::Sink {
 public:
  using Write = std::function<void(std::string_view)>;

  // `write` gets whole lines. Accesses beyond `most` are counted and not written.
  AccessTrace(Write write, uint64_t most) : write_(std::move(write)), most_(most) {}

  uint32_t wanted() const override { return engine::kAccessEvents; }
  void on(const engine::AccessEvent& event) override;
  void on(const engine::LaunchEvent& event) override;

 private:
  std::string region_text(const engine::AccessEvent& event);

  Write write_;
  uint64_t most_, written_ = 0, left_out_ = 0;
  const engine::MemoryMap* memory_ = nullptr;
  uint64_t launch_ = 0;
};

}  // namespace kiln::watch
