// SPDX-License-Identifier: Apache-2.0
// Which addresses of a loop rise so far in each iteration that the CPU does not foresee them? Those
// of a loop over an array that the whole grid shares, for example: a warp skips what all others
// read. Waiting for such memory takes most of the loop's time.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "engine/compile/planner.h"
#include "engine/machine/affine.h"

namespace kiln::engine {
namespace {

constexpr int64_t kFar = 4096;          // the CPU foresees addresses inside a page
constexpr int64_t kFarthest = 1 << 26;  // keeps products of such numbers in 64 bits
constexpr int64_t kCache = 4 << 20;     // memory up to this size stays near the CPU anyway
constexpr int64_t kMostAhead = 4;       // iterations
constexpr int64_t kPerAhead = 16;       // iterations of the loop for one ahead: few go past the end
constexpr uint32_t kMostLooked = 64;    // steps for one address

// How far a value rises in each iteration: by `times` a scalar that does not change, plus `more`.
struct Rise {
  std::optional<uint32_t> scalar;
  int64_t times = 0, more = 0;
};
using Rising = std::optional<Rise>;  // no value: unknown

bool is_too_large(int64_t number) { return number > kFarthest || number < -kFarthest; }

// a + times * b
Rising sum(const Rising& a, const Rising& b, int64_t times = 1) {
  if (!a || !b || (a->scalar && b->scalar && a->scalar != b->scalar)) return std::nullopt;
  if (is_too_large(b->times) || is_too_large(b->more) || is_too_large(times)) return std::nullopt;
  return Rise{a->scalar ? a->scalar : b->scalar, a->times + times * b->times,
              a->more + times * b->more};
}

bool is_integer(const Step& step) {
  const Number type = step.meaning.type;
  return type != Number::F32 && type != Number::F64 && bytes_of(type) >= 4;
}

class RiseOf {
 public:
  RiseOf(const Plan& plan, Warp& warp)
      : plan_(plan), warp_(warp), made_by_(plan.variables.size(), nullptr) {
    for (const Step& step : plan.steps) {
      if (step.d) made_by_[*step.d] = &step;
    }
  }

  // 0: it does not pay to ask for the memory at this address.
  int64_t iterations_ahead(uint32_t address, Rising* rise) {
    looked_ = 0;
    pointer_ = 0;
    *rise = of(address);
    if (!*rise || !pointer_) return 0;
    const Rise& by = **rise;
    const int64_t scalar = by.scalar ? value_now(*by.scalar).value_or(0) : 0;
    if (is_too_large(scalar) || is_too_large(by.times)) return 0;
    const int64_t bytes = std::abs(by.times * scalar + by.more);
    // Tests have small arrays, and compile at once.
    if (warp_.block->grid->settings.compile_after == 0) return bytes != 0 && bytes <= kFarthest;
    if (bytes < kFar || bytes > kFarthest) return 0;
    const auto region =
        warp_.block->grid->memory.find(static_cast<uint64_t>(pointer_), 1, /*write=*/false);
    const auto size = region ? static_cast<int64_t>(region->end - region->begin) : 0;
    return size <= kCache ? 0 : std::min(size / bytes / kPerAhead, kMostAhead);
  }

 private:
  const Variable& at(uint32_t index) const { return plan_.variables[index]; }

  std::optional<int64_t> constant(const std::optional<uint32_t>& index) const {
    if (!index || !at(*index).is_constant) return std::nullopt;
    const auto bits = static_cast<int64_t>(at(*index).constant);
    return at(*index).bytes == 8 ? bits : static_cast<int32_t>(bits);
  }

  // The value of an input, in the first lane.
  std::optional<int64_t> value_now(uint32_t index) const {
    const Variable& v = at(index);
    if (!v.home || !v.input || v.in == Slot::Predicate || v.bytes < 4) return std::nullopt;
    if (v.in == Slot::Header) {
      const Affine& header = affine_at(warp_, v.slot);
      if (header.state == AffineState::Lanes) return std::nullopt;
      return static_cast<int64_t>(header.base);
    }
    const auto lane = v.in == Slot::Lanes ? static_cast<size_t>(std::countr_zero(warp_.mask)) : 0;
    const std::byte* const from = warp_.registers + v.slot + lane * v.bytes;
    int64_t wide = 0;
    int32_t narrow = 0;
    if (v.bytes == 8) return std::memcpy(&wide, from, sizeof wide), wide;
    return std::memcpy(&narrow, from, sizeof narrow), narrow;
  }

  // In a variable of the loop: the step that writes it reads it too, or computes it from another
  // one.
  Rising in_variable(uint32_t index) {
    if (const auto known = in_variables_.find(index); known != in_variables_.end())
      return known->second;
    in_variables_.emplace(index, std::nullopt);  // while it is being looked for
    Rising rise;
    for (const Step& step : plan_.steps) {
      if (step.d == index && !rise) rise = above(step, index);
      if (step.d == index && !rise) rise = result_of(step);
    }
    in_variables_.find(index)->second = rise;
    return rise;
  }

  // How far is the result of a step above what the variable was before the iteration?
  Rising above(const Step& step, uint32_t variable) {
    if (++looked_ > kMostLooked || !is_integer(step)) return std::nullopt;
    const auto value = [&](const std::optional<uint32_t>& from) -> Rising {
      if (from == variable) return Rise{};
      if (!from || at(*from).home || !made_by_[*from]) return std::nullopt;
      return above(*made_by_[*from], variable);
    };
    const auto scalar = [&](const std::optional<uint32_t>& from) -> Rising {
      if (const auto number = constant(from)) return Rise{std::nullopt, 0, *number};
      if (!from || !at(*from).home || at(*from).written || at(*from).in != Slot::Scalar ||
          at(*from).bytes < 4)
        return std::nullopt;
      return Rise{from, 1, 0};
    };
    switch (step.meaning.does) {
      case Does::Copy:
        return value(step.a);
      case Does::Add:
        if (const Rising a = value(step.a)) return sum(a, scalar(step.b));
        return sum(value(step.b), scalar(step.a));
      case Does::Sub:
        return sum(value(step.a), scalar(step.b), -1);
      default:
        return std::nullopt;
    }
  }

  // Also notes the pointer that the value is computed from.
  Rising of(const std::optional<uint32_t>& index) {
    if (!index) return std::nullopt;
    const Variable& v = at(*index);
    if (v.home) {
      const int64_t now = v.bytes == 8 ? value_now(*index).value_or(0) : 0;
      if (is_far_value(now)) pointer_ = now;
      return v.written ? in_variable(*index) : Rise{};
    }
    return made_by_[*index] ? result_of(*made_by_[*index]) : std::nullopt;
  }

  Rising result_of(const Step& step) {
    if (++looked_ > kMostLooked || !is_integer(step)) return std::nullopt;
    const auto times = [&](const std::optional<uint32_t>& from,
                           const std::optional<int64_t>& by) -> Rising {
      return by ? sum(Rise{}, of(from), *by) : std::nullopt;
    };
    const auto product = [&] {
      const auto by = constant(step.b);
      return by ? times(step.a, by) : times(step.b, constant(step.a));
    };
    switch (step.meaning.does) {
      case Does::Copy:
      case Does::Spread:
      case Does::Convert:
      case Does::Cast:
        return of(step.a);
      case Does::Add:
        return sum(of(step.a), of(step.b));
      case Does::Sub:
        return sum(of(step.a), of(step.b), -1);
      case Does::ShiftLeft:
        if (const auto by = constant(step.b); by && *by >= 0 && *by < 32)
          return times(step.a, int64_t{1} << *by);
        return std::nullopt;
      case Does::Mul:
      case Does::MulWide:
        return product();
      case Does::Mad:
      case Does::MadWide:
        return sum(product(), of(step.c));
      default:
        return std::nullopt;
    }
  }

  const Plan& plan_;
  Warp& warp_;
  List<const Step*> made_by_;                 // by variable
  ListedMap<uint32_t, Rising> in_variables_;  // by variable
  uint32_t looked_ = 0;
  int64_t pointer_ = 0;
};

}  // namespace

void find_ahead(Plan& plan, Warp& warp) {
  std::optional<RiseOf> rises;  // few loops load from addresses that change
  for (const Step& step : plan.steps) {
    const bool loads = step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar;
    if (!loads || !step.a || is_own(static_cast<ptx::Space>(step.op.z))) continue;
    const uint32_t address = *step.a;
    const Variable& v = plan.variables[address];
    const auto is_it = [&](const Ahead& other) { return other.variable == address; };
    if (v.bytes != 8 || (v.kept != Kept::Word && v.kept != Kept::Steps) ||
        std::any_of(plan.ahead.begin(), plan.ahead.end(), is_it))
      continue;
    if (!rises) rises.emplace(plan, warp);
    Rising rise;
    if (const int64_t count = rises->iterations_ahead(address, &rise))
      plan.ahead.push_back({address, rise->scalar, rise->times * count, rise->more * count});
  }
}

}  // namespace kiln::engine
