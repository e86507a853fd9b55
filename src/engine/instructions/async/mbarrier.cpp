// SPDX-License-Identifier: Apache-2.0
// How do mbarriers run? (PTX ISA 9.7.13.15)
#include "engine/memory/mbarrier.h"

#include <bit>
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings.h"
#include "engine/instructions/lowerings_async.h"
#include "engine/machine/access.h"
#include "engine/machine/watching.h"

namespace kiln::engine {
namespace {

// Visits the objects of the active lanes in order. Returns null if a fault was reported.
template <class Body>
const Op* for_each_object(Warp& warp, const Op* op, Body body) {
  std::byte* pointer[kWarpSize];
  Shape shape = locate(warp, op, 8, Access::Atomic, pointer);
  if (shape == Shape::Fault) return nullptr;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    std::byte* at = shape == Shape::Uniform      ? pointer[0]
                    : shape == Shape::Contiguous ? pointer[0] + size_t{lane} * 8
                                                 : pointer[lane];
    uint64_t word;
    std::memcpy(&word, at, 8);
    body(lane, &word);
    std::memcpy(at, &word, 8);
  }
  return op + 1;
}

// What an instruction reports to watchers.
struct Watched {
  MbarrierStep step;
  Order order;
  bool async = false;
};

// Delivers what happens to the objects of the active lanes; does nothing in runs that are not
// watched.
class Reporter {
 public:
  Reporter(Warp& warp, const Op* op) : sink_(sink_for(warp, kMbarrierEvents)) {
    if (sink_) [[unlikely]]
      prepare(warp, op);
  }
  bool on() const { return sink_ != nullptr; }
  // For one lane, with the object's word before and after.
  void deliver(uint32_t lane, uint64_t before, uint64_t after, uint32_t count, int64_t bytes,
               bool drops) {
    event_.by.mask = 1u << lane;
    event_.address = at(lane);
    event_.count = count;
    event_.bytes = bytes;
    event_.drops = drops;
    event_.parity = static_cast<uint32_t>(before >> 63);
    event_.completed = event_.step != MbarrierStep::Init && before >> 63 != after >> 63;
    sink_->on(event_);
  }
  // Lanes that test the same object with the same result, in one event.
  [[gnu::cold]] void deliver_tests(uint32_t mask, uint32_t over, uint32_t parities) {
    for (uint32_t rest = mask; rest;) {
      const auto first = static_cast<uint32_t>(std::countr_zero(rest));
      uint32_t group = 0;
      for (uint32_t i = 0; i < kWarpSize; ++i) {
        const bool same = (rest >> i & 1) && at(i) == at(first) &&
                          (over >> i & 1) == (over >> first & 1) &&
                          (parities >> i & 1) == (parities >> first & 1);
        group |= same ? 1u << i : 0;
      }
      event_.by.mask = group;
      event_.address = at(first);
      event_.parity = parities >> first & 1;
      event_.passed = over >> first & 1;
      sink_->on(event_);
      rest &= ~group;
    }
  }

 private:
  [[gnu::cold]] void prepare(Warp& warp, const Op* op) {
    const Watched& how = *static_cast<const Watched*>(op->data);
    event_.by = actor(warp, op);
    event_.step = how.step;
    event_.order = how.order;
    event_.async = how.async;
    window_ = op->z == static_cast<uint8_t>(ptx::Space::Shared) ? kSharedWindow : 0;
    lane_addresses(warp, op, addresses_);
  }
  uint64_t at(uint32_t lane) const { return addresses_[lane] | window_; }

  Sink* sink_;
  MbarrierEvent event_;
  uint64_t window_ = 0;
  uint64_t addresses_[kWarpSize];
};

const Op* run_init(Warp& warp, const Op* op) {
  const uint32_t* count = warp.lanes<uint32_t>(op->b);
  Reporter reporter(warp, op);
  return for_each_object(warp, op, [&](uint32_t lane, uint64_t* word) {
    uint64_t n = op->y ? 0 : count[lane] & kArrivalMask;
    *word = encode_phase({n, n, 0, 0});
    if (reporter.on()) reporter.deliver(lane, *word, *word, static_cast<uint32_t>(n), 0, false);
  });
}

// op->b: arrivals; op->c: bytes to expect; the old word is the token. op->y: 1 returns the token, 2
// drops the arrivals from later phases, 4 bytes have arrived.
constexpr uint8_t kGivesToken = 1, kDrops = 2, kBytesCame = 4;

const Op* run_arrive(Warp& warp, const Op* op) {
  const uint32_t *count = warp.lanes<uint32_t>(op->b), *bytes = warp.lanes<uint32_t>(op->c);
  uint64_t tokens[kWarpSize] = {};
  Reporter reporter(warp, op);
  const Op* next = for_each_object(warp, op, [&](uint32_t lane, uint64_t* word) {
    tokens[lane] = *word;
    Phase p = decode_phase(*word);
    p.bytes +=
        op->y & kBytesCame ? -static_cast<int64_t>(bytes[lane]) : static_cast<int64_t>(bytes[lane]);
    if (op->y & kDrops) p.wanted -= std::min<uint64_t>(p.wanted, count[lane]);
    p.pending -= std::min<uint64_t>(p.pending, count[lane]);
    complete_if_done(&p);
    *word = encode_phase(p);
    if (reporter.on())
      reporter.deliver(lane, tokens[lane], *word, count[lane], bytes[lane], op->y & kDrops);
  });
  warp.moved = true;
  if (next && (op->y & kGivesToken)) warp.put(op->d, tokens);
  return next;
}

// op->b: a token (op->y is 0) or a parity (op->y is 1). If the phase is not complete, the predicate
// is false, and others get a turn.
const Op* run_wait(Warp& warp, const Op* op) {
  uint32_t over = 0;
  const uint64_t* token = warp.lanes<uint64_t>(op->b);
  const uint32_t* parity = warp.lanes<uint32_t>(op->b);
  uint32_t parities = 0;
  Reporter reporter(warp, op);
  const Op* next = for_each_object(warp, op, [&](uint32_t lane, uint64_t* word) {
    uint64_t of_phase = op->y ? parity[lane] & 1 : token[lane] >> 63;
    parities |= static_cast<uint32_t>(of_phase) << lane;
    over |= decode_phase(*word).parity != of_phase ? 1u << lane : 0;
  });
  if (!next) return nullptr;
  if (reporter.on()) reporter.deliver_tests(warp.mask, over, parities);
  warp.set_predicate(op->d, over);
  if (warp.mask & over) warp.moved = true;
  return (warp.mask & ~over) ? warp.look_again(next, Look::Mbarrier) : next;
}

bool set_object(Lowering& l, Op* op, const ptx::Operand& operand) {
  Source base;
  uint32_t base_bytes = 8;
  bool shared = l.has("shared") || l.has("shared::cta") || l.has("shared::cluster");
  ptx::Space space = shared ? ptx::Space::Shared : ptx::Space::Generic;
  if (!l.address(operand, &base, &base_bytes, &op->imm, &space)) return false;
  op->a = base.offset;
  op->x = address_flags(base.uniform, base.affine, l.variant().narrow_rows(), base_bytes);
  op->z = static_cast<uint8_t>(space);
  return true;
}

void place(Lowering& l, const Op& prepared, Handler handler, Watched watched) {
  // PTX ISA 9.7.13.15: an arrival releases and a wait acquires, at block scope.
  if (watched.order.strength == Strength::Weak)
    watched.order.strength = watched.step == MbarrierStep::Test     ? Strength::Acquire
                             : watched.step == MbarrierStep::Arrive ? Strength::Release
                                                                    : Strength::Relaxed;
  if (!l.has("cluster")) watched.order.scope = Scope::Block;
  Op& op = l.emit(handler);
  uint32_t site = op.site;
  op = prepared;
  op.data = l.own(watched);
  op.run = handler;
  op.site = site;
}

ptx::Operand number(uint64_t value) {
  ptx::Operand out;
  out.kind = ptx::OperandKind::Integer;
  out.bits = value;
  return out;
}

}  // namespace

bool mbarrier_init(Lowering& l) {
  Op op;
  bool invalidates = l.has("inval");
  if (!set_object(l, &op, l.operand(0)) ||
      !l.lanes(invalidates ? number(0) : l.operand(1), ptx::Type::u32, &op.b))
    return false;
  op.y = invalidates;
  place(l, op, &run_init, {invalidates ? MbarrierStep::Invalidate : MbarrierStep::Init, {}});
  return true;
}

bool mbarrier_arrive(Lowering& l) {
  const auto& operands = l.ins().operands;
  size_t first = operands[0].kind != ptx::OperandKind::Address ? 1 : 0;
  bool returns = first && operands[0].kind != ptx::OperandKind::Sink;
  bool expects = l.has("expect_tx"), counts = operands.size() > first + 1 && !expects;
  Op op;
  if (!set_object(l, &op, operands[first])) return false;
  if (!l.lanes(counts ? operands[first + 1] : number(1), ptx::Type::u32, &op.b)) return false;
  if (!l.lanes(expects ? operands[first + 1] : number(0), ptx::Type::u32, &op.c)) return false;
  Dest d;
  if (returns && !l.dest(operands[0], 8, false, &d)) return false;
  op.d = d.offset;
  op.y = static_cast<uint8_t>((returns ? kGivesToken : 0) | (l.has("arrive_drop") ? kDrops : 0));
  place(l, op, &run_arrive, {MbarrierStep::Arrive, order_of(l.ins(), false)});
  return true;
}

bool mbarrier_expect(Lowering& l) {
  Op op;
  if (!set_object(l, &op, l.operand(0)) || !l.lanes(number(0), ptx::Type::u32, &op.b)) return false;
  if (!l.lanes(l.operand(1), ptx::Type::u32, &op.c)) return false;
  const bool came = l.has("complete_tx");
  op.y = came ? kBytesCame : 0;
  place(l, op, &run_arrive, {came ? MbarrierStep::Complete : MbarrierStep::Expect, {}});
  return true;
}

// The copies complete at once. Without .noinc the phase would first expect one more arrival, so
// nothing changes.
bool copy_async_arrive(Lowering& l) {
  emit_copy_land(l);
  Op op;
  if (!set_object(l, &op, l.operand(0))) return false;
  if (!l.lanes(number(l.has("noinc") ? 1 : 0), ptx::Type::u32, &op.b)) return false;
  if (!l.lanes(number(0), ptx::Type::u32, &op.c)) return false;
  place(l, op, &run_arrive, {MbarrierStep::Arrive, {}, true});
  return true;
}

bool mbarrier_pending(Lowering& l) {
  struct Pending {
    static uint32_t f(uint64_t token) { return static_cast<uint32_t>(decode_phase(token).pending); }
  };
  Source a;
  if (!l.source(l.operand(1), ptx::Type::b64, &a)) return false;
  l.emit_value(l.operand(0), 4, a.uniform, unary_handler<Pending, uint32_t, uint64_t>(a), a);
  return true;
}

bool mbarrier_wait(Lowering& l) {
  Op op;
  bool by_parity = l.has("parity");
  if (!set_object(l, &op, l.operand(1)) || !l.dest_predicate(l.operand(0), &op.d)) return false;
  if (!l.lanes(l.operand(2), by_parity ? ptx::Type::u32 : ptx::Type::b64, &op.b)) return false;
  op.y = by_parity;
  place(l, op, &run_wait, {MbarrierStep::Test, order_of(l.ins(), false)});
  return true;
}

}  // namespace kiln::engine
