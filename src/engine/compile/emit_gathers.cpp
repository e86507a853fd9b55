// SPDX-License-Identifier: Apache-2.0
// How are gathers compiled? One branch checks the addresses of all lanes, as distances from the
// start of the memory. If 32 bits are enough for the distances, this takes half as many
// instructions.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>

#include "engine/compile/emitter.h"

namespace kiln::engine {

// Computes the addresses of half a strip, 64 bits each, as distances from the start of the memory,
// and adds their faults to `all`. Lanes that do not run use the first byte.
Reg Emitter::gather_address(const Step& step, uint32_t s, uint32_t h, const Gathered& all) {
  const Variable& v = plan_.variables[*step.a];
  const Group& group = group_of(step);
  // Other accesses of the group use it too.
  Reg from = group.count > 1 ? t_.new_vector() : t_.vector();
  if (v.bytes == 8) {
    t_.binary(Does::Add, Number::U64, from, vector_of(*step.a, s, h), all.shift);
  } else {
    Reg moved = vector_of(*step.a, s, 0);
    if (group.first) {  // within 32 bits
      Reg offset = t_.vector(), sum = t_.vector();
      t_.constant(offset, static_cast<uint32_t>(group.first), 4);
      t_.binary(Does::Add, Number::U32, sum, moved, offset);
      moved = sum;
    }
    t_.widen(false, h == 1, from, moved);
    if (!is_own(static_cast<ptx::Space>(step.op.z)))
      t_.binary(Does::Add, Number::U64, from, from, all.shift);
  }
  if (is_for_some(step)) t_.binary(Does::And, Number::U64, from, from, runs(step, s, h, 8));
  Reg left = t_.vector();
  t_.binary(Does::Sub, Number::U64, left, all.limit, from);
  t_.binary(Does::Or, Number::U64, all.beyond, all.beyond, left);
  Reg first = from;
  if (all.element.isValid()) {
    first = t_.vector();
    t_.binary(Does::Sub, Number::U64, first, from, all.element);
    if (is_for_some(step)) t_.binary(Does::And, Number::U64, first, first, runs(step, s, h, 8));
  }
  t_.binary(Does::Or, Number::U64, all.low, all.low, first);
  return from;
}

// Computes the distance of each lane's memory from the returned place, two vectors of 64 bits per
// strip, with one check for all lanes and for the whole group.
Emitter::Placed Emitter::distances_of(const Step& step, List<Reg>* from) {
  Group& group = group_of(step);
  const ReachWords& reach = reach_words(step);
  Placed place{reach.begin, step.op.imm - group.first};
  if (group.is_checked) {
    *from = group.from;
    return place;
  }
  Reg shift = t_.word();
  t_.constant_word(shift,
                   plan_.variables[*step.a].bytes == 8 ? static_cast<uint64_t>(group.first) : 0);
  if (!is_own(static_cast<ptx::Space>(step.op.z)))
    t_.word_binary(Does::Sub, Number::U64, shift, shift, reach.begin);
  Gathered all{t_.vector(), t_.vector(), t_.vector(), t_.vector(), {}};
  t_.splat(all.limit, reach.limit, 8);
  t_.splat(all.shift, shift, 8);
  t_.constant(all.beyond, 0, 8);
  t_.constant(all.low, 0, 8);
  if (const uint64_t behind = static_cast<uint64_t>(group.first) & (group.align - 1)) {
    all.element = t_.vector();
    t_.constant(all.element, behind, 8);
  }
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < 2; ++h) from->push_back(gather_address(step, s, h, all));
  }
  // A distance below the start or beyond the end sets the sign in one of these.
  constexpr uint64_t kSign = uint64_t{1} << 63;
  t_.jump_if_lanes(all.low, kSign | (group.align - 1), 8, bail());
  t_.jump_if_lanes(all.beyond, kSign, 8, bail());
  if (is_local(step)) add_lanes(*from);
  group.is_checked = true;
  if (group.count > 1) group.from = *from;
  return place;
}

void Emitter::addresses_of(const Step& step, List<Reg>* where) {
  List<Reg> from;
  const Placed at = distances_of(step, &from);
  Reg everywhere = t_.vector(), base = t_.word();
  t_.word_add(base, at.base, at.offset);
  t_.splat(everywhere, base, 8);
  for (const Reg& each : from) {
    where->push_back(t_.vector());
    t_.binary(Does::Add, Number::U64, where->back(), each, everywhere);
  }
}

// Shared memory is so small that 32 bits are enough for an address in it and a sign.
bool Emitter::is_narrow(const Step& step) {
  constexpr int64_t kFarthest = int64_t{1} << 30;
  return t_.gathers_narrow() && t_.adds_steps() &&
         static_cast<ptx::Space>(step.op.z) == ptx::Space::Shared &&
         plan_.variables[*step.a].bytes == 4 && memory_bytes(step) >= 4 &&
         std::abs(group_of(step).first) < kFarthest;
}

// The addresses of a strip, plus an offset.
Reg Emitter::narrow_address(const Step& step, uint32_t strip, int64_t offset) {
  const Reg from = vector_of(*step.a, strip, 0);
  Reg at = from;
  if (offset) t_.add_steps(at = t_.vector(), from, offset, 0, 4);
  if (is_for_some(step)) {
    const Reg all = at;
    t_.binary(Does::And, Number::U32, at = t_.vector(), all, runs(step, strip, 0, 4));
  }
  return at;
}

// The highest address must be inside, and no address may have one of the low bits set. One check
// per basic block is enough.
void Emitter::check_narrow(const Step& step) {
  const Group& group = group_of(step);
  const auto covers = [&](const Checked& other) {
    return other.variable == group.variable && other.first <= group.first &&
           other.last >= group.last && other.align >= group.align;
  };
  if (std::any_of(checked_.begin(), checked_.end(), covers)) return;
  if (!step.under) checked_.push_back({group.variable, group.first, group.last, group.align});
  const Target::Mark mark = t_.mark();
  Reg limit = t_.vector(), most = t_.vector(), low = t_.vector();
  t_.splat(limit, reach_words(step).limit, 4);
  t_.copy(most, limit);
  t_.constant(low, 0, 4);
  const uint64_t behind = static_cast<uint64_t>(group.first) & (group.align - 1);
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark inner = t_.mark();
    const Reg at = narrow_address(step, s, group.first);
    t_.binary(Does::Max, Number::U32, most, most, at);
    Reg first = at;
    if (behind) {
      t_.add_steps(first = t_.vector(), at, -static_cast<int64_t>(behind), 0, 4);
      if (is_for_some(step)) t_.binary(Does::And, Number::U32, first, first, runs(step, s, 0, 4));
    }
    t_.binary(Does::Or, Number::U32, low, low, first);
    t_.release(inner);
  }
  t_.binary(Does::Xor, Number::U32, most, most, limit);
  t_.jump_if_lanes(most, 0xffffffffu, 4, bail());
  if (group.align > 1) t_.jump_if_lanes(low, group.align - 1, 4, bail());
  t_.release(mark);
}

void Emitter::gather_narrow(const Step& step) {
  check_narrow(step);
  const Reg base = reach_words(step).begin;
  const int64_t first = group_of(step).first;
  const bool some = is_for_some(step);
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    // Lanes that do not run use the first byte of the group.
    const Reg at = some ? narrow_address(step, s, first) : vector_of(*step.a, s, 0);
    t_.gather_narrow(result(*step.d, s, 0), base, some ? step.op.imm - first : step.op.imm, at, 0);
    t_.release(mark);
  }
}

// The pointer and the index that the step computes an address from.
std::optional<Emitter::Indexed> Emitter::indexed_by(const Step& step) const {
  const auto is_vector = [&](const std::optional<uint32_t>& index, uint32_t bytes) {
    return index && plan_.variables[*index].kept == Kept::Vector &&
           plan_.variables[*index].bytes == bytes;
  };
  const auto stays = [&](uint32_t index) {
    return !plan_.variables[index].home || !plan_.variables[index].written;
  };
  const Step* product = &step;
  std::optional<uint32_t> pointer = step.c;
  if (step.meaning.does == Does::Add) {
    const bool second = is_vector(step.b, 8);
    const auto from = second ? step.b : step.a;
    pointer = second ? step.a : step.b;
    if (!is_vector(from, 8) || plan_.variables[*from].home) return std::nullopt;
    product = values_[*from].made_by;
    if (!product || product->meaning.does != Does::MulWide) return std::nullopt;
  } else if (step.meaning.does != Does::MadWide) {
    return std::nullopt;
  }
  if (product->meaning.from != Number::S32 || !is_vector(product->a, 4) || !pointer ||
      plan_.variables[*pointer].kept != Kept::Word || !stays(*pointer) || !stays(*product->a) ||
      plan_.variables[*product->a].lazy)
    return std::nullopt;
  const Variable& by = plan_.variables[*product->b];
  constexpr uint64_t kMost = 8;  // the highest factor of a load instruction
  if (!by.is_constant || by.constant > kMost || !std::has_single_bit(by.constant))
    return std::nullopt;
  return Indexed{*pointer, *product->a, static_cast<uint32_t>(std::countr_zero(by.constant))};
}

// The check covers multiples of the factor only, so the accesses of the group must not need a
// larger alignment.
bool Emitter::may_be_indexed(const Step& load, const Indexed& by) {
  constexpr int64_t kFarthest = int64_t{1} << 30;
  const auto space = static_cast<ptx::Space>(load.op.z);
  if (load.meaning.does != Does::Load || is_own(space) || memory_bytes(load) != 4 ||
      (load.op.x & kAddress32) || plan_.variables[*load.d].kept != Kept::Vector ||
      prepared_of_.count(load.index))
    return false;
  const Group& group = group_of(load);
  const uint64_t each = uint64_t{1} << by.shift;
  return group.align <= each && (static_cast<uint64_t>(group.first) & (each - 1)) == 0 &&
         std::abs(group.first) < kFarthest;
}

// Which addresses need not be computed? Those that are a pointer plus a multiple of a number and
// that only gathers use: the instruction adds them itself, and the check needs half as many bits.
// Not after a store: an exit to the interpreter would need the address.
void Emitter::find_indexed() {
  if (!t_.gathers_narrow() || !t_.adds_steps() || (plan_.phase.stores && plan_.phase.loops)) return;
  List<uint32_t> reads(plan_.variables.size(), 0), served(plan_.variables.size(), 0);
  bool has_stored = false;
  for (const Step& step : plan_.steps) {
    for (const auto& from : {step.a, step.b, step.c, step.under}) {
      if (from) ++reads[*from];
    }
    for (uint32_t from : step.reads) ++reads[from];
    has_stored |= changes_memory(step);
    if (!step.a || has_stored) continue;
    const Variable& v = plan_.variables[*step.a];
    const Step* made_by = values_[*step.a].made_by;
    if (v.home || v.kept != Kept::Vector || v.bytes != 8 || v.blended || !made_by) continue;
    const auto by = indexed_by(*made_by);
    if (!by || !may_be_indexed(step, *by)) continue;
    ++served[*step.a];
    values_[*step.a].indexed = by;
  }
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].indexed) continue;
    if (served[i] != reads[i]) {
      values_[i].indexed.reset();
      continue;
    }
    const Step& step = *values_[i].made_by;
    if (step.meaning.does != Does::Add) continue;
    for (const auto& from : {step.a, step.b}) ++served[*from];
  }
  for (const Step& step : plan_.steps) {
    if (!step.d || step.meaning.does != Does::MulWide) continue;
    const Variable& v = plan_.variables[*step.d];
    values_[*step.d].is_skipped =
        !v.home && !v.blended && v.kept == Kept::Vector && served[*step.d] == reads[*step.d];
  }
}

// In all lanes number + add must be at most `most`, unsigned. The magnitudes of `add` and `most`
// are at most 2^30, so a 32-bit sum that wraps around is always larger.
const Emitter::Scaled& Emitter::scaled(const Step& load, const Indexed& by) {
  const uint32_t reach = reach_of_.at(load.index);
  const int64_t first = group_of(load).first;
  for (const Scaled& each : scaled_) {
    if (each.pointer == by.pointer && each.reach == reach && each.shift == by.shift &&
        each.first == first)
      return each;
  }
  const uint64_t limit = uint64_t{1} << 30 << by.shift;
  Scaled out{by.pointer, reach, by.shift, first, t_.new_vector(), t_.new_vector()};
  const Target::Mark mark = t_.mark();
  Reg distance = t_.word(), moved = t_.word(), number = t_.word(), most = t_.word();
  t_.word_binary(Does::Sub, Number::U64, distance, word_of(by.pointer), reach_words_[reach].begin);
  if (first) t_.word_add(distance, distance, first);
  t_.jump_if_bits(distance, (uint64_t{1} << by.shift) - 1, bail());
  t_.constant_word(number, limit);
  t_.word_binary(Does::Add, Number::U64, moved, distance, number);
  t_.constant_word(number, 2 * limit - 1);
  bail_if_above(moved, number);
  t_.constant_word(number, limit - 1);
  t_.word_binary(Does::Min, Number::U64, most, reach_words_[reach].limit, number);
  t_.word_shift(distance, distance, by.shift);
  t_.word_shift(most, most, by.shift);
  t_.splat(out.add, distance, 4);
  t_.splat(out.most, most, 4);
  t_.release(mark);
  scaled_.push_back(out);
  return scaled_.back();
}

// Lanes that do not run use the first byte.
Reg Emitter::index_of(const Step& load, const Indexed& by, const Scaled& scaled, uint32_t strip) {
  Reg index = t_.vector();
  t_.binary(Does::Add, Number::U32, index, vector_of(by.number, strip, 0), scaled.add);
  if (is_for_some(load)) t_.binary(Does::And, Number::U32, index, index, runs(load, strip, 0, 4));
  return index;
}

void Emitter::gather_indexed(const Step& load, const Indexed& by) {
  Group& group = group_of(load);
  const Scaled all = scaled(load, by);
  const bool some = is_for_some(load);
  const Target::Mark mark = t_.mark();
  List<Reg> from;
  if (!group.is_checked) {
    group.is_checked = true;
    Reg most = t_.vector();
    t_.copy(most, all.most);
    for (uint32_t s = 0; s < strips_; ++s) {
      const Target::Mark inner = t_.mark();
      const Reg index = index_of(load, by, all, s);
      t_.binary(Does::Max, Number::U32, most, most, index);
      if (some)
        from.push_back(index);
      else
        t_.release(inner);
    }
    t_.binary(Does::Xor, Number::U32, most, most, all.most);
    t_.jump_if_lanes(most, 0xffffffffu, 4, bail());
  }
  for (uint32_t s = 0; s < strips_; ++s) {
    const Reg to = result(*load.d, s, 0);
    if (!some) {
      t_.gather_narrow(to, word_of(by.pointer), load.op.imm, vector_of(by.number, s, 0), by.shift);
      continue;
    }
    if (from.size() <= s) from.push_back(index_of(load, by, all, s));
    t_.gather_narrow(to, reach_words(load).begin, load.op.imm - group.first, from[s], by.shift);
  }
  t_.release(mark);
}

bool Emitter::gather(const Step& step) {
  const uint32_t bytes = memory_bytes(step), lanes = t_.vector_lanes();
  const bool small = is_small_load(step);
  if (plan_.variables[*step.d].kept != Kept::Vector) return false;
  if (values_[*step.a].indexed) {
    gather_indexed(step, *values_[*step.a].indexed);
    return true;
  }
  if (is_narrow(step) && bytes == 4) {
    gather_narrow(step);
    return true;
  }
  List<Reg> from;
  const Placed place = distances_of(step, &from);
  const uint32_t in_value = bytes == 8 ? lanes / 2 : lanes;
  bool gathers = !small || is_local(step);  // local memory: the gather may read a few bytes more
  for (uint32_t s = 0; s < strips_ && gathers; ++s) {
    for (uint32_t h = 0; h < halves_of(bytes) && gathers; ++h) {
      const Target::Mark mark = t_.mark();
      gathers = t_.gather(result(*step.d, s, h), place.base, place.offset, from[s * 2 + h],
                          from[s * 2 + 1], lane_bytes(bytes));
      if (gathers && small) cut_small(step, result(*step.d, s, 0));
      t_.release(mark);
    }
  }
  if (gathers) return true;
  Reg everywhere = t_.vector(), base = t_.word();
  t_.word_add(base, place.base, place.offset);
  t_.splat(everywhere, base, 8);
  for (Reg& where : from) {
    const Reg distance = where;
    t_.binary(Does::Add, Number::U64, where = t_.vector(), distance, everywhere);
  }
  if (small && t_.gathers_small()) {
    put_aside(from, static_cast<int64_t>(offsetof(Pass, scratch)));
    for (uint32_t s = 0; s < strips_; ++s) load_small_aside(step, result(*step.d, s, 0), s);
    return true;
  }
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t h = lane / (lanes / 2);
      const Reg& where = from[s * 2 + h];
      const Reg to = result(*step.d, s, lane / in_value);
      const Target::Mark mark = t_.mark();
      Reg address = t_.word();
      t_.lane_word(address, where, lane % (lanes / 2), 8);
      small ? load_small_lane(step, to, lane, address, 0)
            : t_.load_lane(to, address, lane % in_value, bytes);
      t_.release(mark);
    }
  }
  return true;
}

}  // namespace kiln::engine
