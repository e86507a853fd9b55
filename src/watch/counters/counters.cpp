// SPDX-License-Identifier: Apache-2.0
#include "watch/counters/counters.h"

#include <algorithm>
#include <bit>

#include "engine/machine/fault.h"

namespace kiln::watch {

using namespace engine;
using results::Counts;
using results::Metric;

namespace {

uint64_t lanes_in(uint32_t mask) { return static_cast<uint64_t>(std::popcount(mask)); }
uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

struct GlobalSlots {
  Metric requests, sectors, bytes, ideal;
  bool has_ideal;
};
GlobalSlots global_slots(const AccessEvent& event) {
  using enum Metric;
  switch (event.kind) {
    case AccessKind::Load:
      return {global_ld_requests, global_ld_sectors, global_ld_bytes, global_ld_ideal_sectors,
              true};
    case AccessKind::Store:
      return {global_st_requests, global_st_sectors, global_st_bytes, global_st_ideal_sectors,
              true};
    case AccessKind::Atomic:
      return {global_atom_requests, global_atom_sectors, global_atom_bytes, global_atom_sectors,
              false};
    case AccessKind::Reduction:
      break;
  }
  return {global_red_requests, global_red_sectors, global_red_bytes, global_red_sectors, false};
}

// Resolves addresses of any shape to lanes.
const uint64_t* lanes_of(const AccessEvent& event, uint64_t (&to)[kWarpSize]) {
  if (event.shape == AddressShape::Lanes) return event.addresses;
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const uint32_t lane = first_lane(rest);
    to[lane] = event.address(lane);
  }
  return to;
}

enum class Memory { Global, Shared, Local, Constant, Mixed };
Memory memory_of_tag(uint64_t address) {
  const uint64_t tag = address >> 56;
  return tag == kSharedTag ? Memory::Shared : tag == kLocalTag ? Memory::Local : Memory::Global;
}
Memory memory_of(const AccessEvent& event) {
  switch (event.space) {
    case ptx::Space::Shared:
      return Memory::Shared;
    case ptx::Space::Local:
      return Memory::Local;
    case ptx::Space::Const:
    case ptx::Space::Param:
      return Memory::Constant;
    case ptx::Space::Generic:
      break;
    default:
      return Memory::Global;
  }
  const Memory first = memory_of_tag(event.address(first_lane(event.by.mask)));
  if (event.shape != AddressShape::Lanes) return first;
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    if (memory_of_tag(event.addresses[first_lane(rest)]) != first) return Memory::Mixed;
  }
  return first;
}

constexpr uint32_t kMostLaneBytes = 32;  // what a load of registers has; a bulk copy has more

}  // namespace

Counters::Counters(Write write, const Caches& caches, std::string_view version)
    : write_(std::move(write)), caches_(caches) {
  write_(results::header_line(version));
}

Counters::Site& Counters::site_of(const Actor& by) {
  if (by.program != last_program_) [[unlikely]] {
    begin_program(*by.program);
  }
  return (*last_sites_)[by.site];
}

void Counters::begin_program(const Program& program) {
  last_program_ = &program;
  last_sites_ = &running_[&program];
  if (!last_sites_->empty()) return;
  last_sites_->resize(program.sites.size());
  const auto [found, added] = listings_.try_emplace(program.serial);
  if (added) {
    found->second = list_program(program);
    write_(results::to_line(found->second.program));
  }
  const auto& listed = found->second.instructions;
  for (size_t i = 0; i < listed.size() && i < last_sites_->size(); ++i)
    (*last_sites_)[i].may_merge = listed[i].may_merge;
}

Counters::Block& Counters::block_of(uint64_t number) {
  if (last_block_ && last_block_->number == number) return *last_block_;
  std::unique_ptr<Block>& block = blocks_[number];
  if (!block) {
    if (spare_blocks_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_blocks_.back());
      spare_blocks_.pop_back();
    }
    block->number = number;
  }
  last_block_ = block.get();
  return *last_block_;
}

void Counters::on(const StretchEvent& event) {
  Site& site = site_of(event.by);
  site.stretch_length = event.count;
  ++site.stretches;
  site.threads += lanes_in(event.issued);
  site.guarded += lanes_in(event.by.mask);
}

void Counters::on(const BranchEvent& event) {
  Counts& counts = site_of(event.by).counts;
  ++counts[Metric::branches];
  counts[Metric::branches_divergent] += event.paths > 1;
}

void Counters::on(const SyncEvent& event) {
  if (event.by.program && event.kind == SyncKind::Block)
    ++site_of(event.by).counts[Metric::barriers];
}

void Counters::on(const AccessEvent& event) {
  if (event.by.mask == 0) return;
  // Lanes that come one by one are one instruction, up to a lane that came before.
  if (pending_.waits) [[unlikely]] {
    if (join(event)) return;
    flush();
  }
  if (event.shape == AddressShape::Uniform && std::has_single_bit(event.by.mask) &&
      event.bytes <= kMostLaneBytes) {
    pending_.waits = true;
    pending_.event = event;
    pending_.addresses[first_lane(event.by.mask)] = event.base;
    return;
  }
  take(event);
}

bool Counters::join(const AccessEvent& event) {
  AccessEvent& first = pending_.event;
  const bool same = event.shape == AddressShape::Uniform && std::has_single_bit(event.by.mask) &&
                    event.by.program == first.by.program && event.by.site == first.by.site &&
                    event.by.warp == first.by.warp && event.by.block == first.by.block &&
                    event.kind == first.kind && event.bytes == first.bytes &&
                    event.space == first.space && event.by.mask > first.by.mask;
  if (!same) return false;
  pending_.addresses[first_lane(event.by.mask)] = event.base;
  first.by.mask |= event.by.mask;
  return true;
}

void Counters::flush() {
  pending_.waits = false;
  pending_.event.shape = AddressShape::Lanes;
  pending_.event.addresses = pending_.addresses;
  take(pending_.event);
}

void Counters::take(const AccessEvent& event) {
  Site& site = site_of(event.by);
  if (event.async && event.bytes > 16) {
    bulk_access(event, site);
    return;
  }
  switch (memory_of(event)) {
    case Memory::Global:
      global_access(event, site);
      break;
    case Memory::Shared:
      shared_access(event, site);
      break;
    case Memory::Local:
      ++site.counts[event.kind == AccessKind::Load ? Metric::local_ld_requests
                                                   : Metric::local_st_requests];
      break;
    case Memory::Constant:
      ++site.counts[Metric::const_requests];
      break;
    case Memory::Mixed:
      split_generic(event);
  }
}

// A warp whose generic addresses are in several spaces goes to each of them.
void Counters::split_generic(const AccessEvent& event) {
  for (Memory memory : {Memory::Global, Memory::Shared, Memory::Local}) {
    AccessEvent part = event;
    part.by.mask = 0;
    for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
      if (memory_of_tag(event.addresses[first_lane(rest)]) == memory) part.by.mask |= rest & -rest;
    }
    if (part.by.mask) take(part);
  }
}

void Counters::global_access(const AccessEvent& event, Site& site) {
  const GlobalSlots slots = global_slots(event);
  Block& block = block_of(event.by.block);
  const uint32_t mask = event.by.mask;
  const bool loads = event.kind != AccessKind::Store, stores = event.kind != AccessKind::Load;
  uint32_t cost = 0;
  const auto touch = [&](auto... sectors) {
    if (loads) block.touched.loaded.add(sectors...);
    if (stores) block.touched.stored.add(sectors...);
  };
  const uint64_t step = event.shape == AddressShape::Uniform ? 0 : event.step;
  const bool by_step = event.shape == AddressShape::Run || event.shape == AddressShape::Uniform;
  uint64_t found_lanes[kWarpSize];
  WarpAddresses lanes{mask, event.bytes, nullptr};
  if (by_step && is_one_range(mask, event.bytes, step)) {
    const SectorRange range = range_of(mask, event.bytes, event.base, step);
    cost = static_cast<uint32_t>(range.last - range.first + 1);
    touch(range.first, range.last);
  } else {
    lanes.at = lanes_of(event, found_lanes);
    Sectors sectors;
    find_sectors(lanes, &sectors);
    cost = sectors.count;
    for (uint32_t i = 0; i < cost; ++i) touch(sectors.of[i]);
  }
  Counts& counts = site.counts;
  const uint64_t active = lanes_in(mask);
  if (event.async) counts[Metric::async_copy_bytes] += active * event.bytes;
  ++counts[slots.requests];
  counts[slots.sectors] += cost;
  counts[slots.bytes] += active * event.bytes;
  if (slots.has_ideal) counts[slots.ideal] += ideal_sectors(mask, event.bytes);
  if (event.kind == AccessKind::Atomic || event.kind == AccessKind::Reduction) {
    if (!lanes.at) lanes.at = lanes_of(event, found_lanes);
    counts[slots.sectors] += atomic_sectors(lanes) - cost;
    counts[Metric::atomic_lanes] += active;
    counts[Metric::atomic_serial] += busiest_address(lanes);
  } else if (event.kind == AccessKind::Load && event.strength != Strength::Weak) {
    strong_sectors_ += cost;
  }
  if (is_better_sample(event, site, cost)) keep_sample(event, site, false, cost);
}

// A pattern of base and step that comes again costs what it did.
uint32_t Counters::passes(const AccessEvent& event, uint32_t bytes, Pattern& known) {
  const uint32_t mask = event.by.mask;
  const bool by_step = event.shape == AddressShape::Run || event.shape == AddressShape::Uniform;
  const uint64_t step = event.shape == AddressShape::Uniform ? 0 : event.step;
  const auto phase = static_cast<uint8_t>(event.base % 128);
  if (by_step && known.step == step && known.mask == mask && known.phase == phase)
    return known.cost;
  uint64_t found[kWarpSize];
  WarpAddresses lanes{mask, bytes, lanes_of(event, found)};
  uint64_t aligned[kWarpSize];
  if (bytes > event.bytes) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint32_t lane = first_lane(rest);
      aligned[lane] = lanes.at[lane] / bytes * bytes;
    }
    lanes.at = aligned;
  }
  const uint32_t cost = wavefronts(lanes, event.kind == AccessKind::Load);
  if (by_step) known = {step, mask, phase, static_cast<uint16_t>(cost)};
  return cost;
}

// ptxas may make one wide access of several, and narrow one of a load whose other bytes nothing
// uses: its code says what it did (counters/sass.h), here is what each would take.
void Counters::add_other_widths(const AccessEvent& event, Site& site) {
  results::OtherWidths& other = site.other;
  const uint32_t mask = event.by.mask;
  other.bytes = event.bytes;
  if (event.bytes > 4) {
    other.passes4 += passes(event, 4, site.pattern4);
    other.ideal4 += ideal_wavefronts(mask, 4);
  }
  if (event.bytes == 16 || site.may_merge) {
    other.passes8 += passes(event, 8, site.pattern8);
    other.ideal8 += ideal_wavefronts(mask, 8);
  }
  if (site.may_merge) {
    other.passes16 += passes(event, 16, site.pattern16);
    other.ideal16 += ideal_wavefronts(mask, 16);
  }
}

void Counters::shared_access(const AccessEvent& event, Site& site) {
  using enum Metric;
  Counts& counts = site.counts;
  const uint32_t mask = event.by.mask;
  if (event.kind == AccessKind::Atomic || event.kind == AccessKind::Reduction) {
    uint64_t found[kWarpSize];
    ++counts[shared_atom_requests];
    counts[atomic_lanes] += lanes_in(mask);
    counts[atomic_serial] += busiest_address({mask, event.bytes, lanes_of(event, found)});
    return;
  }
  if (event.async) return;  // the write of a copy: no instruction of its own
  const uint32_t cost = passes(event, event.bytes, site.pattern);
  if (event.bytes > 4 || site.may_merge) add_other_widths(event, site);
  const uint32_t ideal = ideal_wavefronts(mask, event.bytes);
  const bool load = event.kind == AccessKind::Load;
  ++counts[load ? shared_ld_requests : shared_st_requests];
  counts[load ? shared_ld_wavefronts : shared_st_wavefronts] += cost;
  counts[load ? shared_ld_ideal_wavefronts : shared_st_ideal_wavefronts] += ideal;
  counts[load ? shared_ld_conflicts : shared_st_conflicts] += cost > ideal ? cost - ideal : 0;
  if (is_better_sample(event, site, cost)) keep_sample(event, site, true, cost);
}

// Bulk and tensor copies: whole rows, one lane each.
void Counters::bulk_access(const AccessEvent& event, Site& site) {
  if (memory_of(event) != Memory::Global) return;
  const bool load = event.kind == AccessKind::Load;
  Block& block = block_of(event.by.block);
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const uint64_t at = event.address(first_lane(rest));
    SectorSet& set = load ? block.touched.loaded : block.touched.stored;
    set.add(at / kSectorBytes, (at + event.bytes - 1) / kSectorBytes);
    site.counts[load ? Metric::bulk_ld_bytes : Metric::bulk_st_bytes] += event.bytes;
  }
}

// The costliest request of a site; of several the first warp's, so that the schedule does not
// matter.
bool Counters::is_better_sample(const AccessEvent& event, const Site& site, uint32_t cost) {
  if (!site.sample || cost != site.sample_cost) return !site.sample || cost > site.sample_cost;
  return event.by.block < site.sample->block ||
         (event.by.block == site.sample->block && event.by.warp < site.sample->warp);
}

void Counters::keep_sample(const AccessEvent& event, Site& site, bool shared, uint32_t cost) {
  uint64_t found[kWarpSize];
  const uint64_t* at = lanes_of(event, found);
  uint64_t lowest = ~uint64_t{0};
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1)
    lowest = std::min(lowest, at[first_lane(rest)]);
  const uint64_t from = lowest / 128 * 128;
  auto sample = std::make_unique<results::WarpSample>();
  sample->space = shared ? "shared" : "global";
  sample->kind = event.kind == AccessKind::Load    ? "load"
                 : event.kind == AccessKind::Store ? "store"
                                                   : "atomic";
  sample->bytes = event.bytes;
  sample->block = event.by.block;
  sample->warp = event.by.warp;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const bool active = event.by.mask >> lane & 1;
    sample->addresses.push_back(active ? static_cast<int64_t>(at[lane] - from) : -1);
  }
  site.sample_cost = cost;
  site.sample = std::move(sample);
}

}  // namespace kiln::watch
