// SPDX-License-Identifier: Apache-2.0
// What is told of a block, or a cluster, in which nobody can go on?
#include <fmt/format.h>

#include <bit>
#include <map>

#include "engine/machine/fault.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

std::string Block::describe_deadlock() const {
  struct Group {
    uint32_t threads = 0;
    ThreadId first{};
    const Block* block = nullptr;
  };
  std::map<std::string, Group> waiting;  // by place
  const bool together = cluster && cluster->blocks.size() > 1;
  std::vector<const Block*> blocks{this};
  if (together) blocks.assign(cluster->blocks.begin(), cluster->blocks.end());
  std::vector<std::pair<const Block*, const Warp*>> unfinished;
  for (const Block* block : blocks) {
    for (uint32_t i = 0; i < block->started; ++i)
      unfinished.emplace_back(block, block->warps[i].get());
  }
  for (const auto& [block, warp] : unfinished) {
    for (const Split& split : warp->splits) {
      // A cluster's wait is looked at anew, an mbarrier's is a loop of the program's.
      const bool of_cluster = split.looks == Look::Cluster;
      const bool of_grid = split.looks == Look::Grid;
      const bool behind = split.wait == Wait::Barrier || split.looks == Look::Mbarrier;
      const Op* at = behind ? split.at - 1 : split.at;
      std::string what = split.wait == Wait::Barrier ? fmt::format("barrier {}", split.barrier)
                         : of_cluster                ? "the barrier of the cluster"
                         : of_grid                   ? "the barrier of the grid"
                         : split.looks != Look::None ? "an mbarrier whose phase does not end"
                                                     : "a warp-wide *.sync";
      Group& group = waiting[fmt::format("{} in {}", what, place_of(*split.frame->program, *at))];
      if (group.threads == 0) {
        group.first = thread_of(*warp, static_cast<uint32_t>(std::countr_zero(split.mask)));
        group.block = block;
      }
      group.threads += static_cast<uint32_t>(std::popcount(split.mask));
    }
  }
  std::string text = fmt::format(
      "Barrier deadlock: no thread of the {} can continue\n  at {}\n  in block ({},{},{}), {} of "
      "{} "
      "threads have not "
      "ended",
      together ? "cluster" : "block", demangled(grid->program->name), x, y, z, live_threads,
      grid->threads_per_block);
  for (const auto& [place, group] : waiting) {
    text += fmt::format("\n  {} threads wait at {}, the first is thread ({},{},{})", group.threads,
                        place, group.first.x, group.first.y, group.first.z);
    if (together)
      text += fmt::format(" of block ({},{},{})", group.block->x, group.block->y, group.block->z);
  }
  return text;
}

}  // namespace kiln::engine
