// SPDX-License-Identifier: Apache-2.0
#include "watch/line_counts.h"

#include <bit>

#include "base/json.h"
#include "engine/machine/fault.h"

namespace kiln::watch {

using namespace engine;

void LineCounts::on(const InstructionEvent& event) {
  if (event.by.program != last_) {
    last_ = event.by.program;
    counts_ = &running_[last_];
    counts_->resize(last_->sites.size());
  }
  Count& count = (*counts_)[event.by.site];
  ++count.warps;
  count.lanes += static_cast<uint64_t>(std::popcount(event.by.mask));
}

// Programs go away with their library: their names and lines are taken while they are here.
void LineCounts::on(const LaunchEvent& event) {
  if (!event.ended) return;
  for (const auto& [program, counts] : running_) {
    auto& lines = table_[demangled(program->name)];
    for (uint32_t site = 0; site < counts.size(); ++site) {
      if (counts[site].warps == 0) continue;
      Op op;
      op.site = site;
      Count& line = lines[place_of(*program, op)];
      line.warps += counts[site].warps;
      line.lanes += counts[site].lanes;
    }
  }
  running_.clear();
  last_ = nullptr;
  write_(table_);
}

std::string to_json(const LineCounts::Table& table) {
  Json functions = Json::array();
  for (const auto& [name, counts] : table) {
    Json lines = Json::array();
    for (const auto& [at, count] : counts) {
      lines.push_back(
          {{"at", at}, {"instructions", count.warps}, {"thread_instructions", count.lanes}});
    }
    functions.push_back({{"name", name}, {"lines", std::move(lines)}});
  }
  return Json{{"functions", std::move(functions)}}.dump(1, ' ', false,
                                                        Json::error_handler_t::replace) +
         "\n";
}

}  // namespace kiln::watch
