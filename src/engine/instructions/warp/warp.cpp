// SPDX-License-Identifier: Apache-2.0
// How do the lanes of a warp exchange values? (PTX ISA 9.7.9.6, 9.7.13.9 to 9.7.13.12) Each *.sync
// waits until its members have arrived.
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/lowerings.h"
#include "engine/instructions/warp/groups.h"
#include "engine/machine/lane_masks.h"
#include "engine/numbers/comparisons.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace kiln::engine {
namespace {

// Writes one value to all lanes of a group.
void put(Warp& warp, uint32_t offset, uint32_t group, uint32_t value) {
  uint32_t* to = warp.lanes<uint32_t>(offset);
  for (uint32_t i = 0; i < kWarpSize; ++i) to[i] = (group >> i & 1) ? value : to[i];
}
void put_predicate(Warp& warp, uint32_t offset, uint32_t group, uint32_t value) {
  uint32_t& p = warp.predicate(offset);
  p = (p & ~group) | (value & group);
}

enum Direction : uint8_t { kUp, kDown, kButterfly, kIndex };

struct Shuffle {
  uint32_t value, predicate;
  Source by, clamp, members;
  Direction direction;
};

// The value of each lane, or one scalar for all.
const uint32_t* said(Warp& warp, Source by, uint32_t (&room)[kWarpSize]) {
  return spread(warp.lanes<uint32_t>(by.offset), by.uniform, room);
}

// The lane that `lane` reads; false: it keeps its own value. Before the clamp, the lane may be
// outside its segment, or below lane 0.
template <Direction kDirection>
[[gnu::always_inline]] inline bool reads_from(uint32_t lane, uint32_t by, uint32_t clamp,
                                              uint32_t* from) {
  const uint32_t segment = clamp >> 8 & 31;
  const uint32_t most = (lane & segment) | (clamp & 31 & ~segment), least = lane & segment;
  const int32_t here = static_cast<int32_t>(lane), distance = static_cast<int32_t>(by & 31);
  const int32_t wanted = kDirection == kUp     ? here - distance
                         : kDirection == kDown ? here + distance
                         : kDirection == kButterfly
                             ? here ^ distance
                             : static_cast<int32_t>(least | (by & 31 & ~segment));
  *from = static_cast<uint32_t>(wanted & 31);
  const int32_t end = static_cast<int32_t>(most);
  return kDirection == kUp ? wanted >= end : wanted <= end;
}

// What each lane reads if the distance and the clamp are the same for all lanes.
template <Direction kDirection>
uint32_t sources_of(uint32_t by, uint32_t clamp, uint8_t* from) {
  uint32_t in_range = 0;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    uint32_t source;
    if (reads_from<kDirection>(lane, by, clamp, &source)) in_range |= 1u << lane;
    from[lane] = static_cast<uint8_t>(source);
  }
  return in_range;
}

bool reads_from(Direction direction, uint32_t lane, uint32_t by, uint32_t clamp, uint32_t* from) {
  switch (direction) {
    case kUp:
      return reads_from<kUp>(lane, by, clamp, from);
    case kDown:
      return reads_from<kDown>(lane, by, clamp, from);
    case kButterfly:
      return reads_from<kButterfly>(lane, by, clamp, from);
    case kIndex:
      break;
  }
  return reads_from<kIndex>(lane, by, clamp, from);
}

[[gnu::cold]] void deliver_shuffle(Warp& warp, const Op* op, const Shuffle& s) {
  uint32_t rooms[3][kWarpSize];
  const uint32_t *by = said(warp, s.by, rooms[0]), *clamp = said(warp, s.clamp, rooms[1]);
  int8_t sources[kWarpSize];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    uint32_t from;
    const bool good = reads_from(s.direction, lane, by[lane], clamp[lane], &from);
    sources[lane] = good ? static_cast<int8_t>(from) : int8_t{-1};
  }
  deliver_groups(warp, op, SyncKind::Exchange, said(warp, s.members, rooms[2]), sources);
}

// Is the value the same in all lanes?
bool is_alike(Source from, const uint32_t* lanes) {
  uint32_t differs = 0;
  for (uint32_t i = 1; i < (from.uniform ? 1 : kWarpSize); ++i) differs |= lanes[i] ^ lanes[0];
  return differs == 0;
}

void take_all(const uint32_t* value, const uint32_t* sources, uint32_t* to) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_loadu_si512(value), high = _mm512_loadu_si512(value + 16);
  for (uint32_t i : {0, 16}) {
    const __m512i from = _mm512_loadu_si512(sources + i);
    _mm512_storeu_si512(to + i, _mm512_permutex2var_epi32(low, from, high));
  }
#else
  uint32_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = value[sources[i]];
  std::memcpy(to, result, sizeof result);
#endif
}

// The usual exchange for a sum over a warp: every lane reads its partner's value.
#if defined(__AVX512F__)
bool exchange_all(const uint32_t* value, uint32_t by, uint32_t* to) {
  uint32_t sources[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) sources[i] = i ^ (by & 31);
  take_all(value, sources, to);
  return true;
}
#else
template <uint32_t kBy>
void exchange_by(const uint32_t* value, uint32_t* to) {
  uint32_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = value[i ^ kBy];
  std::memcpy(to, result, sizeof result);
}
bool exchange_all(const uint32_t* value, uint32_t by, uint32_t* to) {
  switch (by) {
    case 1:
      exchange_by<1>(value, to);
      return true;
    case 2:
      exchange_by<2>(value, to);
      return true;
    case 4:
      exchange_by<4>(value, to);
      return true;
    case 8:
      exchange_by<8>(value, to);
      return true;
    case 16:
      exchange_by<16>(value, to);
      return true;
    default:
      return false;
  }
}
#endif

// Loops that become vector code, one for each direction. Returns the lanes that are in range.
template <Direction kDirection>
uint32_t exchange(const uint32_t* value, const uint32_t* by, const uint32_t* clamp,
                  uint32_t (&result)[kWarpSize]) {
  uint32_t sources[kWarpSize], bits[kWarpSize], in_range = 0;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    uint32_t from;
    const bool good = reads_from<kDirection>(lane, by[lane], clamp[lane], &from);
    sources[lane] = good ? from : lane;
    bits[lane] = good ? kPartBits<uint32_t>[lane] : 0;
  }
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) in_range |= bits[lane];
  take_all(value, sources, result);
  return in_range;
}

uint32_t exchange(Direction direction, const uint32_t* value, const uint32_t* by,
                  const uint32_t* clamp, uint32_t (&result)[kWarpSize]) {
  switch (direction) {
    case kUp:
      return exchange<kUp>(value, by, clamp, result);
    case kDown:
      return exchange<kDown>(value, by, clamp, result);
    case kButterfly:
      return exchange<kButterfly>(value, by, clamp, result);
    case kIndex:
      break;
  }
  return exchange<kIndex>(value, by, clamp, result);
}

const Op* run_shuffle(Warp& warp, const Op* op) {
  const Shuffle& s = *static_cast<const Shuffle*>(op->data);
  const uint32_t* value = warp.lanes<uint32_t>(s.value);
  uint32_t all[kWarpSize];
  if (warp.mask == kFullMask && !warp.block->sync_sink) [[likely]] {
    warp.pass_sync = false;  // all are here
    const uint32_t *by = warp.lanes<uint32_t>(s.by.offset),
                   *clamp = warp.lanes<uint32_t>(s.clamp.offset);
    if (s.direction == kButterfly && clamp[0] == 31 && is_alike(s.clamp, clamp) &&
        is_alike(s.by, by) && exchange_all(value, by[0], warp.lanes<uint32_t>(op->d))) {
      warp.predicate(s.predicate) = kFullMask;
      return op + 1;
    }
  } else {
    uint32_t room[kWarpSize], away;
    std::memcpy(all, value, sizeof all);
    value = all;
    const uint32_t members = named_by(warp, said(warp, s.members, room)).any;
    if (!warp.all_here(op, members, all, sizeof(uint32_t), &away)) return nullptr;
    if (warp.block->sync_sink) [[unlikely]]
      deliver_shuffle(warp, op, s);
  }
  uint32_t result[kWarpSize], rooms[2][kWarpSize];
  const uint32_t in_range = exchange(s.direction, value, said(warp, s.by, rooms[0]),
                                     said(warp, s.clamp, rooms[1]), result);
  warp.put(op->d, result);
  warp.set_predicate(s.predicate, in_range);
  return op + 1;
}

// op->x: 0 all, 1 any, 2 uni.
const Op* run_vote(Warp& warp, const Op* op) {
  uint32_t votes = warp.predicate(op->a);
  return run_groups(warp, op, &votes, 0, [&](uint32_t group, uint32_t members) {
    const uint32_t yes = votes & members;
    bool holds = op->x == 0 ? yes == members : op->x == 1 ? yes != 0 : (yes == 0 || yes == members);
    put_predicate(warp, op->d, group, holds ? kFullMask : 0);
  });
}

const Op* run_ballot(Warp& warp, const Op* op) {
  uint32_t votes = warp.predicate(op->a);
  return run_groups(warp, op, &votes, 0, [&](uint32_t group, uint32_t members) {
    put(warp, op->d, group, votes & members);
  });
}

// The usual vote, of all 32 lanes. op->x as above.
const Op* run_vote_of_all(Warp& warp, const Op* op) {
  if (warp.mask != kFullMask || warp.block->sync_sink) return run_vote(warp, op);
  warp.pass_sync = false;  // all are here
  const uint32_t yes = warp.predicate(op->a);
  const bool holds = op->x == 0   ? yes == kFullMask
                     : op->x == 1 ? yes != 0
                                  : yes == 0 || yes == kFullMask;
  warp.predicate(op->d) = holds ? kFullMask : 0;
  return op + 1;
}

const Op* run_ballot_of_all(Warp& warp, const Op* op) {
  if (warp.mask != kFullMask || warp.block->sync_sink) return run_ballot(warp, op);
  warp.pass_sync = false;
  std::fill_n(warp.lanes<uint32_t>(op->d), kWarpSize, warp.predicate(op->a));
  return op + 1;
}

template <class T>
uint32_t lanes_with(const T* value, T wanted) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) out |= value[i] == wanted ? kLaneBits[i] : 0;
  return out;
}

template <class T>
const Op* run_match_any(Warp& warp, const Op* op) {
  T value[kWarpSize];
  std::memcpy(value, warp.lanes<T>(op->a), sizeof value);
  return run_groups(warp, op, value, sizeof(T), [&](uint32_t group, uint32_t members) {
    uint32_t* to = warp.lanes<uint32_t>(op->d);
    // Once for each value that a lane has.
    for (uint32_t rest = group; rest;) {
      const uint32_t first = first_member(rest), same = lanes_with(value, value[first]) & members;
      for (uint32_t lanes = same & group; lanes; lanes &= lanes - 1) to[first_member(lanes)] = same;
      rest &= ~same & (rest - 1);
    }
  });
}

template <class T>
const Op* run_match_all(Warp& warp, const Op* op) {
  T value[kWarpSize];
  std::memcpy(value, warp.lanes<T>(op->a), sizeof value);
  return run_groups(warp, op, value, sizeof(T), [&](uint32_t group, uint32_t members) {
    bool same = true;
    for (uint32_t i = 0; i < kWarpSize; ++i)
      same &= !(members >> i & 1) || value[i] == value[first_member(members)];
    put(warp, op->d, group, same ? members : 0);
    put_predicate(warp, op->c, group, same ? kFullMask : 0);
  });
}

const Op* run_active_mask(Warp& warp, const Op* op) {
  uint32_t result[kWarpSize];
  for (uint32_t& r : result) r = warp.mask;
  warp.put(op->d, result);
  return op + 1;
}

enum Reduction : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

template <class T>
uint32_t reduced(const T* value, uint32_t group, uint8_t reduction) {
  uint32_t total = static_cast<uint32_t>(value[first_member(group)]);
  for (uint32_t rest = group & (group - 1); rest; rest &= rest - 1) {
    T v = value[first_member(rest)];
    T t = static_cast<T>(total);
    switch (reduction) {
      case kAdd:
        total += static_cast<uint32_t>(v);
        break;
      case kMin:
        total = static_cast<uint32_t>(v < t ? v : t);
        break;
      case kMax:
        total = static_cast<uint32_t>(v > t ? v : t);
        break;
      case kAnd:
        total &= static_cast<uint32_t>(v);
        break;
      case kOr:
        total |= static_cast<uint32_t>(v);
        break;
      default:
        total ^= static_cast<uint32_t>(v);
    }
  }
  return total;
}

template <class T>
const Op* run_reduce(Warp& warp, const Op* op) {
  T value[kWarpSize];
  std::memcpy(value, warp.lanes<T>(op->a), sizeof value);
  return run_groups(warp, op, value, sizeof(T), [&](uint32_t group, uint32_t members) {
    put(warp, op->d, group, reduced(value, members, op->x));
  });
}

const Op* run_elect(Warp& warp, const Op* op) {
  uint32_t nothing = 0;
  return run_groups(warp, op, &nothing, 0, [&](uint32_t group, uint32_t members) {
    put(warp, op->d, group, first_member(members));
    put_predicate(warp, op->c, group, 1u << first_member(members));
  });
}

}  // namespace

// The handlers that write every lane of a whole warp.
void describe_warp(Meanings& to) {
  to.warpwide(&run_shuffle, [](const Op& op, Touched& out) {
    const Shuffle& s = *static_cast<const Shuffle*>(op.data);
    out.reads = {{s.value, 4}};
    for (const Source& from : {s.by, s.clamp, s.members})
      out.reads.push_back({from.offset, 4, from.uniform});
    out.writes = {{op.d, 4}, {s.predicate, 0}};
    constexpr decltype(out.sources) kSources[] = {&sources_of<kUp>, &sources_of<kDown>,
                                                  &sources_of<kButterfly>, &sources_of<kIndex>};
    out.sources = kSources[s.direction];
  });
  to.warpwide(&run_vote_of_all, [](const Op& op, Touched& out) {
    out.reads = {{op.a, 0}};
    out.writes = {{op.d, 0}};
    out.vote = op.x == 0 ? Vote::All : op.x == 1 ? Vote::Any : Vote::Uniform;
  });
  to.warpwide(&run_ballot_of_all, [](const Op& op, Touched& out) {
    out.reads = {{op.a, 0}};
    out.writes = {{op.d, 4}};
    out.vote = Vote::Ballot;
  });
  to.warpwide(&run_active_mask, [](const Op& op, Touched& out) { out.writes = {{op.d, 4}}; });
}

bool shuffle(Lowering& l) {
  const auto& operands = l.ins().operands;
  bool tells = operands.size() == 6;
  size_t first = tells ? 2 : 1;
  if (operands.size() < first + 4) return l.refuse("it needs four operands to read");
  Shuffle s;
  Dest d;
  if (!l.lanes(operands[first], ptx::Type::b32, &s.value) ||
      !l.source(operands[first + 1], ptx::Type::b32, &s.by) ||
      !l.source(operands[first + 2], ptx::Type::b32, &s.clamp) ||
      !l.source(operands[first + 3], ptx::Type::b32, &s.members)) {
    return false;
  }
  s.predicate = l.temporary_predicate();
  if (!l.dest(operands[0], 4, false, &d) || (tells && !l.dest_predicate(operands[1], &s.predicate)))
    return false;
  s.direction = l.has("up") ? kUp : l.has("down") ? kDown : l.has("bfly") ? kButterfly : kIndex;
  Op& op = l.emit(&run_shuffle);
  op.d = d.offset;
  op.data = l.own(s);
  return true;
}

bool vote(Lowering& l) {
  uint32_t p, members, d;
  if (!l.predicate(l.operand(1), &p) || !l.lanes(l.operand(2), ptx::Type::b32, &members))
    return false;
  if (!l.dest_predicate(l.operand(0), &d)) return false;
  Op& op = l.emit(l.is_lane_constant(members, kFullMask, 4) ? &run_vote_of_all : &run_vote);
  op.a = p;
  op.b = members;
  op.d = d;
  op.x = l.has("all") ? 0 : l.has("any") ? 1 : 2;
  return true;
}

bool vote_ballot(Lowering& l) {
  uint32_t p, members;
  Dest d;
  if (!l.predicate(l.operand(1), &p) || !l.lanes(l.operand(2), ptx::Type::b32, &members))
    return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(l.is_lane_constant(members, kFullMask, 4) ? &run_ballot_of_all : &run_ballot);
  op.a = p;
  op.b = members;
  op.d = d.offset;
  return true;
}

bool match_any(Lowering& l) {
  uint32_t a, members;
  Dest d;
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), ptx::Type::b32, &members))
    return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op =
      l.emit(ptx::bytes_of(l.type()) == 8 ? &run_match_any<uint64_t> : &run_match_any<uint32_t>);
  op.a = a;
  op.b = members;
  op.d = d.offset;
  return true;
}

bool match_all(Lowering& l) {
  const auto& operands = l.ins().operands;
  bool tells = operands.size() == 4;
  size_t first = tells ? 2 : 1;
  uint32_t a, members, p = l.temporary_predicate();
  Dest d;
  if (!l.lanes(operands[first], l.type(), &a) ||
      !l.lanes(operands[first + 1], ptx::Type::b32, &members))
    return false;
  if (!l.dest(operands[0], 4, false, &d) || (tells && !l.dest_predicate(operands[1], &p)))
    return false;
  Op& op =
      l.emit(ptx::bytes_of(l.type()) == 8 ? &run_match_all<uint64_t> : &run_match_all<uint32_t>);
  op.a = a;
  op.b = members;
  op.c = p;
  op.d = d.offset;
  return true;
}

bool active_mask(Lowering& l) {
  Dest d;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  l.emit(&run_active_mask).d = d.offset;
  return true;
}

bool reduce_lanes(Lowering& l) {
  uint32_t a, members;
  Dest d;
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), ptx::Type::b32, &members))
    return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(ptx::is_signed(l.type()) ? &run_reduce<int32_t> : &run_reduce<uint32_t>);
  op.a = a;
  op.b = members;
  op.d = d.offset;
  op.x = l.has("add")   ? kAdd
         : l.has("min") ? kMin
         : l.has("max") ? kMax
         : l.has("and") ? kAnd
         : l.has("or")  ? kOr
                        : kXor;
  return true;
}

bool elect_lane(Lowering& l) {
  uint32_t members, p;
  Dest d;
  if (!l.lanes(l.operand(2), ptx::Type::b32, &members)) return false;
  if (!l.dest(l.operand(0), 4, false, &d) || !l.dest_predicate(l.operand(1), &p)) return false;
  Op& op = l.emit(&run_elect);
  op.b = members;
  op.c = p;
  op.d = d.offset;
  return true;
}

}  // namespace kiln::engine
