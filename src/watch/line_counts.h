// SPDX-License-Identifier: Apache-2.0
// How often did each source line run? Instructions that warps issued, and the lanes that took part.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/machine/events.h"

namespace kiln::watch {

class LineCounts : public engine::Sink {
 public:
  struct Count {
    uint64_t warps = 0;  // instructions, once for each warp that issued one
    uint64_t lanes = 0;  // the same, once for each lane whose guard held
  };
  // By kernel or device function, then by place: "f.cu:12".
  using Table = std::map<std::string, std::map<std::string, Count>>;
  using Write = std::function<void(const Table&)>;

  // `write` gets all that was counted so far, after each launch.
  explicit LineCounts(Write write) : write_(std::move(write)) {}

  uint32_t wanted() const override { return engine::kInstructionEvents; }
  void on(const engine::InstructionEvent& event) override;
  void on(const engine::LaunchEvent& event) override;

 private:
  std::map<const engine::Program*, std::vector<Count>> running_;  // by site, of the launch at hand
  const engine::Program* last_ = nullptr;
  std::vector<Count>* counts_ = nullptr;  // of last_
  Table table_;
  Write write_;
};

// {"functions":[{"name":...,"lines":[{"at":...,"instructions":...,"thread_instructions":...}]}]}
std::string to_json(const LineCounts::Table& table);

}  // namespace kiln::watch
