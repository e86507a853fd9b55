// SPDX-License-Identifier: Apache-2.0
// How does an event become entries of lines? Runs of neighbours at once, all others lane by lane.
#include "watch/race/race.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/memory/memory.h"
#include "watch/race/partial_order.h"

namespace kiln::watch {

using namespace engine;
using namespace race;

namespace {

constexpr uint32_t kScattered = 8;  // as many lanes at places of their own split a line

// Words of a line from a byte on, rounded to whole ones.
uint32_t words_of(uint64_t first_byte, uint64_t bytes) {
  const uint64_t first = first_byte / kWordBytes, last = (first_byte + bytes - 1) / kWordBytes;
  const uint64_t count = last - first + 1;
  return static_cast<uint32_t>(((uint64_t{1} << count) - 1) << first);
}

// Of the addresses of lanes.
uint64_t all_bits(const uint64_t* addresses, uint32_t mask) {
  uint64_t all = 0;
  if (mask == ~0u) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) all |= addresses[lane];
  } else {
    for (uint32_t rest = mask; rest; rest &= rest - 1) all |= addresses[std::countr_zero(rest)];
  }
  return all;
}

// Lines and words of a page, for all lanes before the first is looked up: in vectors.
void find_places(const uint64_t* addresses, uint64_t page_bytes, uint32_t (&line_at)[kLanes],
                 uint32_t (&word_at)[kLanes]) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto in_page = static_cast<uint32_t>(addresses[lane] & (page_bytes - 1));
    line_at[lane] = in_page / kLineBytes;
    word_at[lane] = in_page % kLineBytes / kWordBytes;
  }
}

bool is_tracked(ptx::Space space) {
  return space == ptx::Space::Generic || space == ptx::Space::Global || space == ptx::Space::Shared;
}

}  // namespace

RaceChecker::RaceChecker(Collector& collector)
    : collector_(collector),
      places_(collector.sites()),
      checker_(pool_, order_, host_, places_, *this) {}

void RaceChecker::on(const LaunchEvent& event) {
  if (event.ended) {
    report_notes();
    given_up_.clear();
    order_.end_launch();
    running_ = false;
    return;
  }
  const uint64_t blocks = uint64_t{event.grid.x} * event.grid.y * event.grid.z;
  if (!host_.uids_left(blocks) || order_.now() > 0xf0000000u) forget_all();
  const HostOrder::Operation& operation =
      host_.begin(event.stream, static_cast<uint32_t>(blocks), event.number, false);
  launch_uid_ = operation.first_uid;
  order_.begin_launch(event, launch_uid_, in_part(*event.program));
  accessor_since_ = ~0u;
  accessor_.launch_uid = launch_uid_;
  accessor_.floor = host_.floor();
  launch_line_before_ = accessor_.floor == launch_uid_ ? order_.now() : 0;
  running_ = true;
}

bool RaceChecker::in_part(const Program& program) {
  const auto [found, is_new] = in_part_.try_emplace(program.serial);
  if (is_new) found->second = orders_in_part(program);
  return found->second;
}

void RaceChecker::forget_all() {
  global_.clear();
  host_.restart();
  order_.restart();
}

// Of the block itself, or of a peer of its cluster.
Line* RaceChecker::shared_line(uint64_t address, Accessor& me) {
  const uint64_t rank = (address & kPeerBits) >> kPeerShift, offset = address & kOffsetBits;
  BlockOrder* owner = rank ? order_.peer(*me.block, static_cast<uint32_t>(rank - 1)) : me.block;
  const uint64_t line = offset / kLineBytes;
  if (!owner || line >= owner->shared.size()) return nullptr;
  me.line_address = kSharedWindow | uint64_t{owner->uid} << kPeerShift | line * kLineBytes;
  me.drop_before = me.line_before = me.shared_before;
  return &owner->shared[line];
}

// Null: accesses to it are not recorded.
inline Line* RaceChecker::line_of(const AccessEvent& event, uint64_t address, Accessor& me) {
  const uint64_t tag = address >> 56;
  if (event.space == ptx::Space::Shared ||
      (event.space == ptx::Space::Generic && tag == kSharedTag))
    return shared_line(address, me);
  if (tag != 0) return nullptr;  // local
  me.line_address = address & ~uint64_t{kLineBytes - 1};
  me.drop_before = 0;
  me.line_before = launch_line_before_;
  return global_.line(address);
}

inline void RaceChecker::add(const AccessEvent& event, uint64_t address, const Entry& mine,
                             Accessor& me, bool scattered) {
  if (Line* line = line_of(event, address, me)) checker_.access(*line, mine, me, scattered);
}

bool RaceChecker::add_dense(const AccessEvent& event, uint64_t base, uint32_t lane, uint32_t mask,
                            Entry mine, Accessor& me) {
  const uint32_t size = event.bytes;
  if (event.kind == AccessKind::Store && event.strength == Strength::Weak)
    mine.value = stored_value(event, mask << lane);
  const auto skip = static_cast<uint32_t>(std::countr_zero(mask));
  mask >>= skip;
  lane += skip;
  base += uint64_t{skip} * size;
  const auto count = static_cast<uint32_t>(32 - std::countl_zero(mask));
  const bool whole = mask == (count == 32 ? ~0u : (1u << count) - 1);
  if (!std::has_single_bit(size) || base % size || size > 16) return false;
  if (size < kWordBytes && (base % kWordBytes || count * size % kWordBytes)) return false;
  if (!whole && size != kWordBytes) return false;
  mine.key.bits |= Key::kDense | 15u;
  const uint64_t end = base + uint64_t{count} * size;
  for (uint64_t line = base & ~uint64_t{kLineBytes - 1}; line < end; line += kLineBytes) {
    const uint64_t first = std::max(line, base), last = std::min(line + kLineBytes, end);
    mine.words = words_of(first - line, last - first);
    const auto elements = static_cast<int64_t>(line - base) >> mine.key.size_log2();
    mine.lanes = lane + static_cast<uint32_t>(elements);
    if (!whole) {
      const int64_t shift = static_cast<int64_t>(line - base) / int64_t{kWordBytes};
      mine.words &= shift >= 0 ? mask >> shift : mask << -shift;
    }
    if (mine.words) add(event, first, mine, me, false);
  }
  return true;
}

// Each lane at one place: whole words that lie in one line, or a part of a word. False: neither.
inline bool RaceChecker::add_place(const AccessEvent& event, uint64_t address, Entry& mine,
                                   Accessor& me, bool scattered) {
  const uint32_t bytes = event.bytes;
  if (!std::has_single_bit(bytes) || bytes > 16 || address % bytes) return false;
  const auto word = static_cast<uint32_t>(address % kLineBytes / kWordBytes);
  if (bytes >= kWordBytes) {
    mine.key.bits |= 15u;
    mine.words = ((1u << bytes / kWordBytes) - 1) << word;
  } else {
    const uint32_t part = ((1u << bytes) - 1) << address % kWordBytes;
    mine.key.bits = (mine.key.bits & ~15u) | part;
    mine.words = 1u << word;
  }
  Line* line = line_of(event, address, me);
  if (!line) return true;
  if (!scattered)
    checker_.access(*line, mine, me);
  else if (bytes <= kWordBytes)
    checker_.access_word(*line, mine, me);
  else
    checker_.access_words(*line, mine, me);
  return true;
}

void RaceChecker::add_lane(const AccessEvent& event, uint64_t address, uint32_t lanes, Entry mine,
                           Accessor& me, bool scattered) {
  mine.lanes = lanes;
  if (event.kind == AccessKind::Store && event.strength == Strength::Weak)
    mine.value = stored_value(event, lanes);
  if (add_place(event, address, mine, me, scattered)) return;
  for (uint64_t rest = event.bytes; rest;) {
    const uint64_t in_line = address % kLineBytes;
    uint64_t bytes = std::min<uint64_t>(rest, kLineBytes - in_line);
    const uint64_t in_word = address % kWordBytes;
    if (in_word || bytes < kWordBytes) {
      bytes = std::min(bytes, kWordBytes - in_word);
      mine.key.bits =
          (mine.key.bits & ~15u) | static_cast<uint32_t>(((1u << bytes) - 1) << in_word);
    } else {
      bytes &= ~uint64_t{kWordBytes - 1};
      mine.key.bits |= 15u;
    }
    mine.words = words_of(in_line, bytes);
    add(event, address, mine, me, scattered);
    address += bytes;
    rest -= bytes;
  }
}

// The scattered access that most kernels have: words of global memory.
void RaceChecker::add_words(const AccessEvent& event, const uint64_t* addresses, Entry one,
                            Accessor& me) {
  const bool has_value = event.kind == AccessKind::Store && event.strength == Strength::Weak;
  one.key.bits |= 15u;
  me.drop_before = 0;
  me.line_before = launch_line_before_;
  if (event.kind == AccessKind::Load && Checker::can_read(me)) {
    read_words(event, addresses, one, me);
    return;
  }
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const uint64_t address = addresses[std::countr_zero(rest)];
    one.lanes = rest & -rest;
    one.words = 1u << (address % kLineBytes / kWordBytes);
    if (has_value) one.value = stored_value(event, one.lanes);
    me.line_address = address & ~uint64_t{kLineBytes - 1};
    if (Line* line = global_.line(address)) checker_.access_word(*line, one, me);
  }
}

// The same, if they only read.
void RaceChecker::read_words(const AccessEvent& event, const uint64_t* addresses, Entry one,
                             Accessor& me) {
  const uint32_t first = Reader::of(me.uid, me.warp_index).bits;
  const Key key = one.key;
  const Time time = one.time;
  uint32_t line_at[kLanes], word_at[kLanes];
  const uint64_t some = addresses[std::countr_zero(event.by.mask)];
  uint64_t apart = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) apart |= addresses[lane] ^ some;
  find_places(addresses, GlobalShadow::kPageBytes, line_at, word_at);
  Line* lines = global_.page(some);
  const bool one_page = event.by.mask == ~0u && apart < GlobalShadow::kPageBytes && lines;
  uint32_t left = event.by.mask;
  if (one_page)
    left = checker_.read_new_words(lines, line_at, word_at, key, time, me, Reader{first});
  for (; left; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    if (!one_page) lines = global_.page(addresses[lane]);
    if (!lines) continue;
    Line& line = lines[line_at[lane]];
    const uint32_t word = word_at[lane];
    if (checker_.read_word(line, key, time, word, me, Reader{first | lane})) continue;
    one.lanes = 1u << lane;
    one.words = 1u << word;
    me.line_address = addresses[lane] & ~uint64_t{kLineBytes - 1};
    checker_.access_word(line, one, me);
  }
}

// The same of the block's own shared memory.
void RaceChecker::add_shared_words(const AccessEvent& event, const uint64_t* addresses, Entry one,
                                   Accessor& me) {
  const bool has_value = event.kind == AccessKind::Store && event.strength == Strength::Weak;
  one.key.bits |= 15u;
  me.drop_before = me.line_before = me.shared_before;
  const bool agrees = me.agreement != Agreement::None;
  Lines& lines = me.block->shared;
  const uint64_t begin = kSharedWindow | uint64_t{me.block->uid} << kPeerShift;
  uint32_t line_at[kLanes], word_at[kLanes];
  find_places(addresses, kOffsetBits + 1, line_at, word_at);
  uint32_t left = event.by.mask;
  if (agrees) left = checker_.touch_again(lines, line_at, word_at, left, one);
  for (; left; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    if (line_at[lane] >= lines.size()) continue;
    one.lanes = left & -left;
    one.words = 1u << word_at[lane];
    if (has_value) one.value = stored_value(event, one.lanes);
    me.line_address = begin | uint64_t{line_at[lane]} * kLineBytes;
    checker_.access_word(lines[line_at[lane]], one, me);
  }
}

void RaceChecker::add_lanes(const AccessEvent& event, const uint64_t* addresses, const Entry& mine,
                            Accessor& me) {
  const uint32_t mask = event.by.mask;
  const bool scattered = static_cast<uint32_t>(std::popcount(mask)) >= kScattered;
  if (scattered && event.bytes == kWordBytes) {
    const uint64_t all = all_bits(addresses, mask);
    const bool shared = event.space == ptx::Space::Shared;
    if (all % kWordBytes == 0 && (shared ? all <= kOffsetBits : all >> 56 == 0)) {
      if (shared)
        add_shared_words(event, addresses, mine, me);
      else
        add_words(event, addresses, mine, me);
      return;
    }
  }
  const bool has_value = event.kind == AccessKind::Store && event.strength == Strength::Weak;
  Entry one = mine;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const uint64_t address = addresses[std::countr_zero(rest)];
    one.lanes = rest & -rest;
    if (has_value) one.value = stored_value(event, one.lanes);
    if (!add_place(event, address, one, me, scattered))
      add_lane(event, address, one.lanes, mine, me, false);
  }
}

void RaceChecker::add_run(const AccessEvent& event, const Entry& mine, Accessor& me) {
  uint64_t addresses[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) addresses[lane] = event.base + event.step * lane;
  add_lanes(event, addresses, mine, me);
}

namespace {

// Runs of neighbours, or of lanes at one place, that are too short would fill the list of a line,
// and split it in the end.
bool is_scattered(uint64_t pairs_next, uint64_t pairs_same, uint64_t lanes) {
  return 8 * pairs_next + 8 < 7 * lanes && 2 * pairs_same < lanes;
}

// Of a whole warp, counted in a way that the compiler makes vectors of.
bool is_scattered(const uint64_t* at, uint64_t bytes) {
  uint64_t same = 0, next = 0;
  for (uint32_t lane = 0; lane + 1 < kLanes; ++lane) {
    const uint64_t step = at[lane + 1] - at[lane];
    same += step == 0;
    next += step == bytes;
  }
  return is_scattered(next, same, kLanes);
}

}  // namespace

// Lanes are often neighbours, or at one place, without the engine knowing.
void RaceChecker::add_unknown(const AccessEvent& event, const Entry& mine, Accessor& me) {
  const uint32_t mask = event.by.mask;
  const uint64_t* at = event.addresses;
  if (mask == ~0u && is_scattered(at, event.bytes)) {
    add_lanes(event, at, mine, me);
    return;
  }
  uint32_t same = 0, next = 0;  // lane l + 1 is at the place of lane l, or follows it
  for (uint32_t lane = 0; lane + 1 < kLanes; ++lane) {
    const uint64_t step = at[lane + 1] - at[lane];
    same |= uint32_t{step == 0} << lane;
    next |= uint32_t{step == event.bytes} << lane;
  }
  same &= mask & mask >> 1;
  next &= mask & mask >> 1;
  const auto count_of = [](uint32_t lanes) { return static_cast<uint64_t>(std::popcount(lanes)); };
  if (is_scattered(count_of(next), count_of(same), count_of(mask))) {
    add_lanes(event, at, mine, me);
    return;
  }
  for (uint32_t rest = mask; rest;) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const auto equal = static_cast<uint32_t>(std::countr_one(same >> lane)),
               follow = static_cast<uint32_t>(std::countr_one(next >> lane));
    const uint32_t count = 1 + std::max(equal, follow);
    const uint32_t lanes = (count >= kLanes ? ~0u : (1u << count) - 1) << lane;
    rest &= ~lanes;
    if (follow <= equal) {
      add_lane(event, at[lane], lanes, mine, me, count < kScattered);
    } else if (!add_dense(event, at[lane], lane, lanes >> lane, mine, me)) {
      for (uint32_t i = 0; i < count; ++i)
        add_lane(event, at[lane + i], 1u << (lane + i), mine, me, false);
    }
  }
}

void RaceChecker::add_rows(const AccessEvent& event, const Entry& mine, Accessor& me) {
  for (uint32_t first = 0; first < kLanes; first += event.row_lanes) {
    const uint32_t row = event.row_lanes >= kLanes ? ~0u : (1u << event.row_lanes) - 1;
    const uint32_t mask = event.by.mask & row << first;
    if (!mask) continue;
    const uint64_t base = event.address(first);
    if (event.step == 0) {
      add_lane(event, base, mask, mine, me, false);
    } else if (event.step != event.bytes ||
               !add_dense(event, base, first, mask >> first, mine, me)) {
      for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
        add_lane(event, event.address(lane), 1u << lane, mine, me, false);
      }
    }
  }
}

// 0 where the lanes have different values: those of a run are not kept apart.
uint32_t RaceChecker::stored_value(const AccessEvent& event, uint32_t lanes) {
  if (!event.values || event.bytes > event.value_bytes) return 0;
  uint64_t first = 0;
  for (uint32_t rest = event.same_value ? 1 : lanes, all = rest; rest; rest &= rest - 1) {
    uint64_t value = 0;
    const auto lane = static_cast<size_t>(std::countr_zero(rest));
    std::memcpy(&value, event.values + lane * event.value_bytes, event.bytes);
    if (rest == all) first = value;
    if (value != first) return 0;
  }
  return static_cast<uint32_t>((first * 0x9e3779b97f4a7c15u) >> 32) | 1;
}

void RaceChecker::add_other(const AccessEvent& event, const Entry& mine, Accessor& me) {
  switch (event.shape) {
    case AddressShape::Uniform:
      add_lane(event, event.base, event.by.mask, mine, me, false);
      break;
    case AddressShape::Run:
      if (event.step == 0)
        add_lane(event, event.base, event.by.mask, mine, me, false);
      else if (event.step != event.bytes ||
               !add_dense(event, event.base, 0, event.by.mask, mine, me))
        add_run(event, mine, me);
      break;
    case AddressShape::Rows:
      add_rows(event, mine, me);
      break;
    case AddressShape::Lanes:
      add_unknown(event, mine, me);
      break;
  }
}

// Most accesses are one of two: a line by a warp, or a word by all its lanes.
[[gnu::always_inline]] inline void RaceChecker::add_event(const AccessEvent& event, Entry& mine,
                                                          Accessor& me) {
  const bool same =
      event.shape == AddressShape::Uniform || (event.shape == AddressShape::Run && event.step == 0);
  const bool run = event.shape == AddressShape::Run && event.step == kWordBytes;
  const bool whole_line = run && event.by.mask == ~0u && event.base % kLineBytes == 0;
  if (event.bytes == kWordBytes && (whole_line || (same && event.base % kWordBytes == 0))) {
    if (event.kind == AccessKind::Store && event.strength == Strength::Weak)
      mine.value = stored_value(event, event.by.mask);
    mine.key.bits |= whole_line ? Key::kDense | 15u : 15u;
    mine.words = whole_line ? ~0u : 1u << event.base % kLineBytes / kWordBytes;
    mine.lanes = whole_line ? 0 : event.by.mask;
    add(event, event.base, mine, me, false);
  } else {
    add_other(event, mine, me);
  }
}

// What lanes read at one place after the other, in whole words.
void RaceChecker::add_span(const AccessEvent& event, uint64_t address, uint32_t lanes, Entry mine,
                           Accessor& me) {
  mine.key.bits |= 15u;
  mine.lanes = lanes;
  for (uint64_t rest = uint64_t{event.bytes} * event.repeats; rest;) {
    const uint64_t in_line = address % kLineBytes;
    const uint64_t bytes = std::min<uint64_t>(rest, kLineBytes - in_line);
    mine.words = words_of(in_line, bytes);
    add(event, address, mine, me, false);
    address += bytes;
    rest -= bytes;
  }
}

void RaceChecker::add_repeats(const AccessEvent& event, const Entry& mine, Accessor& me) {
  const auto step = static_cast<uint64_t>(event.repeat_step);
  const bool same = event.shape == AddressShape::Uniform ||
                    (event.shape != AddressShape::Lanes && event.step == 0);
  const bool words = std::has_single_bit(event.bytes) && event.bytes >= kWordBytes &&
                     (event.base | event.row_step) % event.bytes == 0;
  if (same && words && step == event.bytes) {
    const uint32_t row_lanes = event.shape == AddressShape::Rows ? event.row_lanes : kLanes;
    for (uint32_t first = 0; first < kLanes; first += row_lanes) {
      const uint32_t row = row_lanes >= kLanes ? ~0u : (1u << row_lanes) - 1;
      if (const uint32_t lanes = event.by.mask & row << first)
        add_span(event, event.address(first), lanes, mine, me);
    }
    return;
  }
  AccessEvent one = event;
  one.repeats = 1;
  uint64_t addresses[kLanes];
  if (event.shape == AddressShape::Lanes) {
    std::copy_n(event.addresses, kLanes, addresses);
    one.addresses = addresses;
  }
  // Neighbours behind neighbours: of a line that has enough of them there is nothing to keep.
  const bool lanes_apart = event.shape == AddressShape::Run ||
                           (event.shape == AddressShape::Rows && event.row_step == 0);
  const uint64_t row = event.shape == AddressShape::Rows ? event.row_lanes : kLanes;
  const bool in_lines = lanes_apart && words && event.step == event.bytes && event.by.mask == ~0u &&
                        step == row * event.bytes && kLineBytes % step == 0 &&
                        event.base % kLineBytes == 0 && Checker::can_skip(me);
  const Key dense{mine.key.bits | Key::kDense | 15u};
  for (uint32_t i = 0; i < event.repeats;) {
    const auto in_line = in_lines ? static_cast<uint32_t>(kLineBytes / step) : 0;
    if (in_line && one.base % kLineBytes == 0 && i + in_line <= event.repeats) {
      const Line* line = line_of(event, one.base, me);
      if (!line || checker_.suffices(*line, dense, ~0u, me)) {
        i += in_line;
        one.base += kLineBytes;
        continue;
      }
    }
    Entry entry = mine;
    add_event(one, entry, me);
    ++i;
    one.base += step;
    if (event.shape != AddressShape::Lanes) continue;
    for (uint64_t& each : addresses) each += step;
  }
}

// One warp has many accesses before the next event that orders something.
void RaceChecker::turn_to(const Actor& by) {
  BlockOrder& block = order_.block(by.block);
  Accessor& me = accessor_;
  me.block = &block;
  me.warp_index = by.warp;
  me.warp = &block.warps[by.warp];
  me.uid = block.uid;
  me.shared_before = order_.clustered() ? 0 : block.barrier;
  accessor_block_ = by.block;
  accessor_time_ = block.time_of(*me.warp);
  accessor_since_ = order_.now();
}

// What an asynchronous copy touches is left out: it counts as ordered where it was issued.
void RaceChecker::on(const AccessEvent& event) {
  if (event.async || event.by.mask == 0 || !running_ || !is_tracked(event.space)) return;
  Accessor& me = accessor_;
  if (event.by.block != accessor_block_ || event.by.warp != me.warp_index ||
      order_.now() != accessor_since_)
    turn_to(event.by);
  const Places::Access& access = places_.access_of(event);
  me.agreement = access.agreement;
  Entry mine;
  mine.key = access.key;
  mine.block = me.uid;
  mine.warps = 1u << event.by.warp;
  mine.time = accessor_time_;
  if (event.repeats == 1) [[likely]]
    add_event(event, mine, me);
  else
    add_repeats(event, mine, me);
  const bool relaxed = event.strength == Strength::Relaxed || event.strength == Strength::Volatile;
  if (event.strength != Strength::Weak && !(relaxed && order_.strong_is_plain(*me.warp)))
    synchronize(event, *me.block);
}

// Setting up an mbarrier is a plain write, using it is atomic: who uses it must come after. Peers
// of a cluster are left out, for they also learn of it by fences of their own kind. One that is set
// up again after it was given up has an order of its owner's making.
void RaceChecker::on(const MbarrierEvent& event) {
  const uint64_t location = order_.location_of(order_.block(event.by.block), event.address);
  if (event.step == MbarrierStep::Invalidate) given_up_.insert(location);
  const bool sets = event.step == MbarrierStep::Init && !given_up_.contains(location);
  const bool uses = event.step == MbarrierStep::Arrive || event.step == MbarrierStep::Test;
  if (running_ && !event.async && (sets || uses) && !(event.address & kPeerBits)) {
    AccessEvent access;
    access.by = event.by;
    access.space = ptx::Space::Shared;
    access.kind = sets ? AccessKind::Store : AccessKind::Atomic;
    access.strength = sets ? Strength::Weak : Strength::Relaxed;
    access.scope = sets ? Scope::None : Scope::Cluster;
    access.bytes = sizeof(uint64_t);
    access.shape = AddressShape::Uniform;
    access.base = event.address & kOffsetBits;
    on(access);
  }
  order_.on(event);
}

void RaceChecker::synchronize(const AccessEvent& event, BlockOrder& block) {
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint64_t address = event.address(lane);
    if (event.space == ptx::Space::Shared) address |= kSharedWindow;
    order_.strong_access(block, event.by.warp, lane, order_.location_of(block, address), event);
  }
}

}  // namespace kiln::watch
