// SPDX-License-Identifier: Apache-2.0
// How does f64 arithmetic become instructions? A strip has two vectors of it. NaNs from elsewhere
// would keep bits that depend on the CPU: where there are any, the interpreter goes on (Variable::
// clean).
#include <algorithm>

#include "engine/compile/emitter.h"

namespace kiln::engine {
namespace {

bool is_wide_nan(uint64_t bits) { return bits << 1 > uint64_t{0x7ff0} << 49; }

}  // namespace

// Goes to `otherwise` if a lane that runs has a NaN in one of these.
void Emitter::expect_numbers(const std::vector<uint32_t>& all, const Label& otherwise) {
  const Target::Mark mark = t_.mark();
  Reg some = t_.vector();
  t_.constant(some, 0, 8);
  for (size_t i = 0; i < all.size(); i += 2) {
    const uint32_t a = all[i], b = all[std::min(i + 1, all.size() - 1)];
    const uint32_t strips = std::max(strip_count(a), strip_count(b));
    for (uint32_t s = 0; s < strips; ++s) {
      for (uint32_t h = 0; h < 2; ++h) {
        const Target::Mark inner = t_.mark();
        Reg is_nan = t_.vector();
        t_.compare(Comparison::Nan, Number::F64, is_nan, vector_of(a, s, h), vector_of(b, s, h));
        if (plan_.masked) t_.binary(Does::And, Number::U64, is_nan, is_nan, active(s, h, 8));
        t_.binary(Does::Or, Number::U64, some, some, is_nan);
        t_.release(inner);
      }
    }
  }
  Reg any = t_.word(), differ = t_.word();
  t_.any_and_differ(any, differ, {some});
  t_.jump_if(any, true, otherwise);
  t_.release(mark);
}

// An input that is read now; nothing has been stored before the first Op.
void Emitter::expect_number(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (!v.clean || !v.counted || v.bytes != 8) return;
  if (v.is_constant && !is_wide_nan(v.constant)) return;
  if (!now_) bails_ = true;
  expect_numbers({index}, now_ ? bail() : bail_);
}

// The operands of f64 arithmetic that may have NaNs of their own.
void Emitter::expect_operands(const Step& step) {
  std::vector<uint32_t> unknown;
  for (const auto& from : {step.a, step.b, step.c}) {
    if (!from || plan_.variables[*from].clean || values_[*from].checked) continue;
    if (std::find(unknown.begin(), unknown.end(), *from) == unknown.end()) unknown.push_back(*from);
  }
  if (unknown.empty()) return;
  expect_numbers(unknown, bail());
  // What ends with its block is written once.
  for (uint32_t index : unknown) values_[index].checked = !plan_.variables[index].home;
}

// Between f64 and what has 32 bits.
bool Emitter::convert_wide(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const Kept kept = plan_.variables[*step.d].kept;
  const bool is_one = kept != Kept::Vector, to_word = kept == Kept::Word;
  const Reg first = to_word ? t_.vector() : result(*step.d, s, 0);
  bool done = true;
  if (m.from == Number::F64) {
    const Reg low = vector_of(*step.a, s, 0), high = is_one ? low : vector_of(*step.a, s, 1);
    done = t_.from_double(m.type, first, low, high);
  } else {
    Reg from = bits_of(*step.a, s, 0);
    if (!is_one && first.id() == from.id()) return false;
    done = t_.to_double(m.from, false, first, from);
    if (!is_one) done &= t_.to_double(m.from, true, result(*step.d, s, 1), from);
  }
  if (to_word) t_.lane_word(result(*step.d, 0, 0), first, 0, bytes_of(m.type));
  return done;
}

// A value of 64 bits, or its parts, in one strip.
bool Emitter::wide_float(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const Variable& d = plan_.variables[*step.d];
  const bool to_word = d.kept == Kept::Word;
  if (m.does == Does::Convert) return convert_wide(step, s);
  for (uint32_t h = 0; h < (d.kept == Kept::Vector ? 2 : 1); ++h) {
    const Reg to = to_word ? t_.vector() : result(*step.d, s, h);
    const Reg a = vector_of(*step.a, s, h);
    const bool done =
        m.operands == 1 ? t_.unary(m.does, m.type, to, a)
        : m.operands == 2
            ? t_.binary(m.does, m.type, to, a, vector_of(*step.b, s, h))
            : t_.ternary(m.does, m.type, to, a, vector_of(*step.b, s, h), vector_of(*step.c, s, h));
    if (!done) return false;
    t_.canonicalize_wide(to);
    if (to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 8);
  }
  return true;
}

}  // namespace kiln::engine
