// SPDX-License-Identifier: Apache-2.0
// How do the counts of a launch become its result?
#include <algorithm>

#include "engine/machine/fault.h"
#include "watch/counters/counters.h"
#include "watch/counters/listing.h"

namespace kiln::watch {

using namespace engine;
using results::Counts;
using results::Metric;

namespace {

std::array<uint32_t, 3> dims(const KilnDim3& of) { return {of.x, of.y, of.z}; }

// Blocks of one multiprocessor, by threads and shared memory: registers are not in PTX.
uint64_t blocks_of_multiprocessor(const LaunchEvent& launch) {
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const uint64_t warps = std::max<uint64_t>(1, (threads + kWarpSize - 1) / kWarpSize);
  const uint64_t by_warps = kMaxThreadsPerMultiprocessor / (warps * kWarpSize);
  const uint64_t by_shared =
      kSharedBytesPerMultiprocessor / (launch.shared_bytes + kReservedSharedBytes);
  return std::max<uint64_t>(
      1, std::min<uint64_t>({by_warps, by_shared, uint64_t{kMaxBlocksPerMultiprocessor}}));
}

ReuseScale reuse_scale(const LaunchEvent& launch, const Caches& caches, uint64_t resident_blocks) {
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const uint64_t warps = (threads + kWarpSize - 1) / kWarpSize;
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const uint64_t each = (blocks + caches.multiprocessors - 1) / caches.multiprocessors;
  const uint64_t here = std::min(resident_blocks, each);
  const uint64_t shared = here * (launch.shared_bytes + kReservedSharedBytes);
  return {caches.l1_bytes > shared ? caches.l1_bytes - shared : 1, caches.l2_bytes, here * warps,
          std::min(blocks, resident_blocks * caches.multiprocessors) * warps};
}

void move(Counts& counts, Metric from, Metric to) {
  counts[to] += counts[from];
  counts[from] = 0;
}

void finish_counts(const ListedInstruction& listed, Counts& counts) {
  if (!listed.conditional) counts[Metric::branches] = counts[Metric::branches_divergent] = 0;
  if (listed.becomes_reduction && counts[Metric::global_atom_requests]) {
    move(counts, Metric::global_atom_requests, Metric::global_red_requests);
    move(counts, Metric::global_atom_sectors, Metric::global_red_sectors);
    move(counts, Metric::global_atom_bytes, Metric::global_red_bytes);
  }
  const bool matrix = listed.kind == ptx::Kind::Matrix;
  counts[listed.flops_of] +=
      listed.flops * counts[matrix ? Metric::inst_executed : Metric::thread_inst_executed_pred_on];
}

bool is_empty(const Counts& counts) {
  return std::all_of(counts.of.begin(), counts.of.end(), [](uint64_t n) { return n == 0; });
}

}  // namespace

void Counters::on(const BlockEvent& event) {
  if (!event.ended) return;
  if (pending_.waits) flush();
  const auto found = std::find_if(blocks_.begin(), blocks_.end(),
                                  [&](const auto& block) { return block->number == event.block; });
  if (found == blocks_.end()) return;  // it touched no global memory
  end_block(**found);
  spare_blocks_.push_back(std::move(*found));
  *found = std::move(blocks_.back());
  blocks_.pop_back();
  last_block_ = nullptr;
}

void Counters::end_block(Block& block) {
  footprint_.end_block(block.number, block.touched);
  block.touched.clear();
  if (block.first_warp) reuse_.add(block.first_warp->found());
  block.first_warp.reset();
}

// Two of them, from different parts of the grid.
bool Counters::stands_for_others(uint64_t block) const {
  return block == launch_blocks_ / 8 || block == launch_blocks_ * 5 / 8;
}

void Counters::on(const LaunchEvent& event) {
  if (event.ended) {
    if (pending_.waits) flush();
    end_launch(event);
    return;
  }
  resident_blocks_ = blocks_of_multiprocessor(event);
  footprint_.begin(caches_, resident_blocks_ * caches_.multiprocessors);
  strong_sectors_ = 0;
  reuse_ = {};
  launch_blocks_ = uint64_t{event.grid.x} * event.grid.y * event.grid.z;
  reuse_scale_ = reuse_scale(event, caches_, resident_blocks_);
}

// A stretch's count is that of each of its instructions.
void Counters::add_sites(const Program& program, std::vector<Site>& sites,
                         results::CounterLaunch* launch) {
  const Listing& listing = listings_.at(program.serial);
  const Site* stretch = nullptr;
  uint32_t left = 0;
  for (uint32_t i = 0; i < sites.size() && i < listing.instructions.size(); ++i) {
    Site& site = sites[i];
    if (site.stretch_length) {
      stretch = &site;
      left = site.stretch_length;
    }
    if (left) {
      --left;
      site.counts[Metric::inst_executed] += stretch->stretches;
      site.counts[Metric::thread_inst_executed] += stretch->threads;
      site.counts[Metric::thread_inst_executed_pred_on] += stretch->guarded;
    }
    add_run(site);
    for (Pattern& pattern : site.patterns) add_pattern(site, pattern);
    finish_counts(listing.instructions[i], site.counts);
    if (is_empty(site.counts)) continue;
    results::CounterSite out;
    out.program = program.serial;
    out.instruction = i;
    out.counts = site.counts;
    if (site.other.bytes) out.other = site.other;
    if (site.sample) out.sample = std::move(*site.sample);
    launch->sites.push_back(std::move(out));
  }
}

void Counters::end_launch(const LaunchEvent& event) {
  // Blocks that a fault left behind.
  for (const auto& block : blocks_) end_block(*block);
  blocks_.clear();
  last_block_ = nullptr;
  results::CounterLaunch launch;
  launch.number = event.number;
  launch.kernel = demangled(event.program->name);
  launch.mangled = event.program->name;
  launch.file = event.file;
  launch.grid = dims(event.grid);
  launch.block = dims(event.block);
  launch.cluster = dims(event.cluster);
  launch.shared_bytes = event.shared_bytes;
  launch.dynamic_shared_bytes = event.dynamic_shared_bytes;
  launch.code = event.code;
  // By the order in which they were decoded: addresses differ from run to run.
  std::vector<std::pair<const Program*, std::vector<Site>*>> programs;
  for (auto& [program, sites] : running_) programs.emplace_back(program, &sites);
  std::sort(programs.begin(), programs.end(),
            [](const auto& a, const auto& b) { return a.first->serial < b.first->serial; });
  for (const auto& [program, sites] : programs) add_sites(*program, *sites, &launch);
  Counts total;
  for (const results::CounterSite& site : launch.sites) total.add(site.counts);
  const Traffic traffic = footprint_.end();
  results::ModelledTraffic& out = launch.traffic;
  out.multiprocessors = caches_.multiprocessors;
  out.resident_blocks = static_cast<uint32_t>(resident_blocks_);
  out.l2_bytes = caches_.l2_bytes;
  const uint64_t from_dram = reuse_.more_from_dram(traffic.block_sectors) * kSectorBytes;
  out.l2_read_sectors =
      traffic.block_sectors + strong_sectors_ + reuse_.more_from_l2(traffic.block_sectors);
  out.l2_write_sectors = total[Metric::global_st_sectors] + total[Metric::bulk_st_bytes] / 32;
  out.dram_read_bytes = traffic.dram_read_sectors * kSectorBytes + from_dram;
  if (from_dram) out.dram_reread_bytes = from_dram;
  out.dram_write_bytes = traffic.dram_write_sectors * kSectorBytes;
  out.read_bytes = traffic.read_sectors * kSectorBytes;
  out.written_bytes = traffic.written_sectors * kSectorBytes;
  const uint64_t blocks = uint64_t{event.grid.x} * event.grid.y * event.grid.z;
  const uint64_t each = (blocks + caches_.multiprocessors - 1) / caches_.multiprocessors;
  out.least_l2_read_sectors =
      std::max(traffic.read_sectors, traffic.block_sectors / std::max<uint64_t>(each, 1));
  if (const uint64_t most = updates_.end()) out.busiest_atomic_updates = most;
  write_(results::to_line(launch));
  running_.clear();
  last_program_ = nullptr;
}

}  // namespace kiln::watch
