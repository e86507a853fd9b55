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
};
// By AccessKind. Atomics have no ideal: theirs is the number of addresses.
constexpr GlobalSlots kGlobalSlots[] = {
    {Metric::global_ld_requests, Metric::global_ld_sectors, Metric::global_ld_bytes,
     Metric::global_ld_ideal_sectors},
    {Metric::global_st_requests, Metric::global_st_sectors, Metric::global_st_bytes,
     Metric::global_st_ideal_sectors},
    {Metric::global_atom_requests, Metric::global_atom_sectors, Metric::global_atom_bytes, {}},
    {Metric::global_red_requests, Metric::global_red_sectors, Metric::global_red_bytes, {}},
};
static_assert(static_cast<int>(AccessKind::Reduction) == 3);

bool is_by_step(const AccessEvent& event) {
  return event.shape == AddressShape::Run || event.shape == AddressShape::Uniform;
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
  for (size_t i = 0; i < listed.size() && i < last_sites_->size(); ++i) {
    (*last_sites_)[i].may_merge = listed[i].may_merge;
    (*last_sites_)[i].rounds = listed[i].rounds;
  }
}

Counters::Block& Counters::find_block(uint64_t number) {
  for (const auto& block : blocks_) {
    if (block->number == number) return *(last_block_ = block.get());
  }
  if (spare_blocks_.empty()) spare_blocks_.push_back(std::make_unique<Block>());
  blocks_.push_back(std::move(spare_blocks_.back()));
  spare_blocks_.pop_back();
  last_block_ = blocks_.back().get();
  last_block_->number = number;
  if (stands_for_others(number))
    last_block_->first_warp = std::make_unique<WarpReuse>(reuse_scale_);
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

// A pattern of shared memory that its site had before, which is what most accesses are.
bool Counters::is_repeated(const AccessEvent& event) {
  if (event.space != ptx::Space::Shared || event.by.program != last_program_ ||
      event.shape == AddressShape::Lanes || event.async || event.kind >= AccessKind::Atomic)
    return false;
  Site& site = (*last_sites_)[event.by.site];
  Pattern& known = site.patterns[event.base % 16 / 4];
  // Shapes without rows have the row_step and row_lanes of the event's defaults.
  if (known.step != event.step || known.mask != event.by.mask || known.row_step != event.row_step ||
      known.row_lanes != event.row_lanes || known.phase != event.base % 16 ||
      known.load != (event.kind == AccessKind::Load) || is_better_sample(event, site, known.cost))
    return false;
  ++known.times;
  return true;
}

void Counters::on(const AccessEvent& event) {
  if (event.by.mask == 0) return;
  if (!pending_.waits && is_repeated(event)) return;
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

void Counters::track(const AccessEvent& event, uint64_t first, uint64_t last) {
  if (event.by.warp != 0) return;
  if (event.kind == AccessKind::Load)
    last_block_->first_warp->load(first, last);
  else
    last_block_->first_warp->store(first, last);
}

uint32_t Counters::touch_run(const AccessEvent& event, const Run& run) {
  const uint64_t low = event.base + static_cast<uint64_t>(run.offset);
  const uint64_t first = low / kSectorBytes, last = (low + run.span - 1) / kSectorBytes;
  Block& block = block_of(event.by.block);
  if (event.kind != AccessKind::Store) block.touched.load(first, last);
  if (event.kind != AccessKind::Load) block.touched.store(first, last);
  if (block.first_warp) [[unlikely]]
    track(event, first, last);
  return static_cast<uint32_t>(last - first + 1);
}

uint32_t Counters::touch_lanes(const AccessEvent& event) {
  uint64_t found[kWarpSize];
  Sectors sectors;
  find_sectors({event.by.mask, event.bytes, lanes_of(event, found)}, &sectors);
  Block& block = block_of(event.by.block);
  if (event.kind != AccessKind::Store)
    for (uint32_t i = 0; i < sectors.count; ++i) block.touched.load(sectors.of[i]);
  if (event.kind != AccessKind::Load)
    for (uint32_t i = 0; i < sectors.count; ++i) block.touched.store(sectors.of[i]);
  if (block.first_warp) [[unlikely]]
    for (uint32_t i = 0; i < sectors.count; ++i) track(event, sectors.of[i], sectors.of[i]);
  return sectors.count;
}

// What a run of lanes has in common with the one before is not computed again, and its requests
// are counted when another one comes.
void Counters::begin_run(const AccessEvent& event, uint64_t step, Site& site) {
  add_run(site);
  const uint32_t mask = event.by.mask;
  const uint64_t low = first_lane(mask), high = 31 - static_cast<uint64_t>(std::countl_zero(mask));
  const auto to_low = static_cast<int64_t>(step * low), to_high = static_cast<int64_t>(step * high);
  site.kind = event.kind;
  site.bytes = event.bytes;
  Run& run = site.run;
  run.step = step;
  run.mask = mask;
  run.is_range = is_one_range(mask, event.bytes, step);
  run.offset = std::min(to_low, to_high);
  run.span = static_cast<uint64_t>(std::max(to_low, to_high) - run.offset) + event.bytes;
  run.lanes = static_cast<uint32_t>(lanes_in(mask));
  run.ideal = ideal_sectors(mask, event.bytes);
}

void Counters::add_run(Site& site) {
  Run& run = site.run;
  const GlobalSlots& slots = kGlobalSlots[static_cast<size_t>(site.kind)];
  site.counts[slots.requests] += run.times;
  site.counts[slots.bytes] += run.times * run.lanes * site.bytes;
  if (slots.ideal != Metric{}) site.counts[slots.ideal] += run.times * run.ideal;
  run.times = 0;
}

void Counters::global_access(const AccessEvent& event, Site& site) {
  const uint64_t step = event.shape == AddressShape::Uniform ? 0 : event.step;
  Run& run = site.run;
  if (run.step != step || run.mask != event.by.mask || site.kind != event.kind ||
      site.bytes != event.bytes)
    begin_run(event, step, site);
  ++run.times;
  const uint32_t cost =
      run.is_range && is_by_step(event) ? touch_run(event, run) : touch_lanes(event);
  site.counts[kGlobalSlots[static_cast<size_t>(event.kind)].sectors] += cost;
  if (event.async || event.strength != Strength::Weak || event.kind >= AccessKind::Atomic)
    count_special(event, site, cost);
  if (is_better_sample(event, site, cost)) keep_sample(event, site, false, cost);
}

// Asynchronous copies, loads that go past L1, atomics.
void Counters::count_special(const AccessEvent& event, Site& site, uint32_t cost) {
  Counts& counts = site.counts;
  if (event.async) counts[Metric::async_copy_bytes] += uint64_t{site.run.lanes} * event.bytes;
  if (event.kind == AccessKind::Load && event.strength != Strength::Weak) strong_sectors_ += cost;
  if (event.kind < AccessKind::Atomic) return;
  uint64_t found[kWarpSize];
  const WarpAddresses lanes{event.by.mask, event.bytes, lanes_of(event, found)};
  counts[kGlobalSlots[static_cast<size_t>(event.kind)].sectors] += atomic_sectors(lanes) - cost;
  counts[Metric::atomic_lanes] += site.run.lanes;
  counts[Metric::atomic_serial] += busiest_address(lanes);
  each_address(lanes, [&](uint64_t address, uint32_t same) {
    updates_.add(address, site.rounds ? same : 1);
  });
}

namespace {

// ptxas may make one wide access of several, and a narrow one of a load whose other bytes nothing
// uses: its code says what it did (counters/sass.h), here is what each would take.
uint16_t passes_of_width(const AccessEvent& event, uint32_t bytes, const uint64_t* at) {
  WarpAddresses lanes{event.by.mask, bytes, at};
  uint64_t aligned[kWarpSize];
  if (bytes > event.bytes) {
    for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
      const uint32_t lane = first_lane(rest);
      aligned[lane] = at[lane] / bytes * bytes;
    }
    lanes.at = aligned;
  }
  return static_cast<uint16_t>(wavefronts(lanes, event.kind == AccessKind::Load));
}

}  // namespace

// `other` is used where the lanes have no step.
Counters::Pattern& Counters::pattern_of(const AccessEvent& event, Site& site, Pattern& other) {
  const bool rows = event.shape == AddressShape::Rows, load = event.kind == AccessKind::Load;
  const uint64_t step = event.shape == AddressShape::Uniform ? 0 : event.step;
  const uint64_t row_step = rows ? event.row_step : 0;
  const auto row_lanes = static_cast<uint8_t>(rows ? event.row_lanes : kWarpSize);
  const auto phase = static_cast<uint8_t>(event.base % 16);
  const bool by_lanes = event.shape == AddressShape::Lanes;
  Pattern& known = by_lanes ? other : site.patterns[phase / 4];
  if (!by_lanes && known.step == step && known.mask == event.by.mask &&
      known.row_step == row_step && known.row_lanes == row_lanes && known.phase == phase &&
      known.load == load)
    return known;
  add_pattern(site, known);
  uint64_t found[kWarpSize];
  const uint64_t* at = lanes_of(event, found);
  known = {};
  known.step = step;
  known.row_step = row_step;
  known.row_lanes = row_lanes;
  known.phase = phase;
  known.mask = event.by.mask;
  known.load = load;
  known.cost = passes_of_width(event, event.bytes, at);
  known.ideal = static_cast<uint16_t>(ideal_wavefronts(event.by.mask, event.bytes));
  if (event.bytes > 4) known.passes4 = passes_of_width(event, 4, at);
  if (event.bytes == 16 || site.may_merge) known.passes8 = passes_of_width(event, 8, at);
  if (site.may_merge) known.passes16 = passes_of_width(event, 16, at);
  return known;
}

void Counters::add_pattern(Site& site, Pattern& pattern) {
  using enum Metric;
  const uint64_t times = pattern.times;
  if (times == 0) return;
  pattern.times = 0;
  Counts& counts = site.counts;
  const uint64_t cost = pattern.cost, ideal = pattern.ideal;
  const bool load = pattern.load;
  counts[load ? shared_ld_requests : shared_st_requests] += times;
  counts[load ? shared_ld_wavefronts : shared_st_wavefronts] += times * cost;
  counts[load ? shared_ld_ideal_wavefronts : shared_st_ideal_wavefronts] += times * ideal;
  counts[load ? shared_ld_conflicts : shared_st_conflicts] +=
      times * (cost > ideal ? cost - ideal : 0);
  results::OtherWidths& other = site.other;
  other.passes4 += times * pattern.passes4;
  other.passes8 += times * pattern.passes8;
  other.passes16 += times * pattern.passes16;
  if (pattern.passes4) other.ideal4 += times * ideal_wavefronts(pattern.mask, 4);
  if (pattern.passes8) other.ideal8 += times * ideal_wavefronts(pattern.mask, 8);
  if (pattern.passes16) other.ideal16 += times * ideal_wavefronts(pattern.mask, 16);
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
  Pattern unknown;
  Pattern& pattern = pattern_of(event, site, unknown);
  ++pattern.times;
  if (event.bytes > 4 || site.may_merge) site.other.bytes = event.bytes;
  if (is_better_sample(event, site, pattern.cost)) keep_sample(event, site, true, pattern.cost);
  if (&pattern == &unknown) add_pattern(site, unknown);
}

// Bulk and tensor copies: whole rows, one lane each.
void Counters::bulk_access(const AccessEvent& event, Site& site) {
  if (memory_of(event) != Memory::Global) return;
  const bool load = event.kind == AccessKind::Load;
  Block& block = block_of(event.by.block);
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const uint64_t at = event.address(first_lane(rest));
    const uint64_t first = at / kSectorBytes, last = (at + event.bytes - 1) / kSectorBytes;
    if (load)
      block.touched.load(first, last);
    else
      block.touched.store(first, last);
    site.counts[load ? Metric::bulk_ld_bytes : Metric::bulk_st_bytes] += event.bytes;
  }
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
  site.has_sample = true;
  site.sample_cost = cost;
  site.sample_block = event.by.block;
  site.sample_warp = event.by.warp;
  site.sample = std::move(sample);
}

}  // namespace kiln::watch
