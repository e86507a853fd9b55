// SPDX-License-Identifier: Apache-2.0
// Which registers hold a value of the plan, where the code reads or writes it?
#include "engine/compile/emitter.h"

namespace kiln::engine {

Reg Emitter::word_of(uint32_t index) {
  Value& value = values_[index];
  const Variable& v = plan_.variables[index];
  if (v.kept == Kept::Splat) {
    Reg word = t_.word();
    t_.lane_word(word, bits_of(index, 0, 0), 0, lane_bytes(v.bytes));
    return word;
  }
  return value.word;
}

Reg Emitter::vector_of(uint32_t index, uint32_t strip, uint32_t half) {
  Value& value = values_[index];
  const Variable& v = plan_.variables[index];
  switch (v.kept) {
    case Kept::Vector:
      return value.regs[v.bytes == 8 ? strip * 2 + half : strip];
    case Kept::Splat:
      return value.regs[0];
    case Kept::Word: {
      if (value.splat.isValid()) return value.splat;
      Reg splat = t_.vector();
      t_.splat(splat, value.word, lane_bytes(v.bytes));
      return splat;
    }
    default: {  // steps
      const uint32_t lane = strip * t_.vector_lanes() + half * t_.vector_lanes() / 2;
      if (value.splat.isValid()) {
        Reg sum = t_.vector();
        t_.add_steps(sum, value.splat, rise(v.steps, lane), v.steps.step, v.bytes);
        return sum;
      }
      Reg base = t_.word(), all = t_.vector();
      t_.word_add(base, value.word, rise(v.steps, lane));
      t_.splat(all, base, v.bytes);
      t_.binary(Does::Add, v.bytes == 8 ? Number::U64 : Number::U32, all, all,
                rises_.at({v.steps.step, v.bytes}));
      return all;
    }
  }
}

// The value with the bits that others may observe.
Reg Emitter::bits_of(uint32_t index, uint32_t strip, uint32_t half) {
  Reg reg = vector_of(index, strip, half);
  if (!plan_.variables[index].lazy) return reg;
  // In place: later arithmetic with it gives the same numbers.
  t_.canonicalize(reg, nan());
  return reg;
}

// Where a result goes: to the variable, or to separate registers until the running lanes are
// merged.
Reg Emitter::result(uint32_t index, uint32_t strip, uint32_t half) {
  const Variable& v = plan_.variables[index];
  if (!v.blended) return place_of(index, strip, half);
  List<Reg>& fresh = values_[index].fresh;
  while (fresh.size() < size_t{strips_} * halves_of(v.bytes)) fresh.push_back(t_.new_vector());
  return fresh[v.bytes == 8 ? strip * 2 + half : strip];
}

namespace {

template <class Make>
Reg taken(List<Reg>& from, const Make& make) {
  if (from.empty()) return make();
  const Reg reg = from.back();
  from.pop_back();
  return reg;
}

}  // namespace

// The values of a block whose last read is in each step.
void Emitter::find_last_reads() {
  List<size_t> last(plan_.variables.size(), plan_.steps.size());
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    for (const auto& at : {step.d, step.a, step.b, step.c, step.under}) {
      if (at) last[*at] = s;
    }
    if (step.a && values_[*step.a].indexed)
      last[values_[*step.a].indexed->pointer] = last[values_[*step.a].indexed->number] = s;
    for (uint32_t at : step.reads) last[at] = s;
    for (uint32_t at : step.writes) last[at] = s;
  }
  last_read_.resize(plan_.steps.size());
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    if (!plan_.variables[i].home && !common_.count(i) && last[i] < plan_.steps.size())
      last_read_[last[i]].push_back(i);
  }
}

// Frees their registers for the results of the next steps.
void Emitter::give_back(size_t step) {
  for (uint32_t index : last_read_[step]) {
    const Value& value = values_[index];
    free_vectors_.insert(free_vectors_.end(), value.regs.begin(), value.regs.end());
    if (value.word.isValid()) free_words_.push_back(value.word);
  }
}

// The registers of a variable: vectors for each strip, one splat, or one word. A slot that is live
// between blocks has its own registers, because a block that is emitted earlier may run later.
Reg Emitter::place_of(uint32_t index, uint32_t strip, uint32_t half) {
  const Variable& v = plan_.variables[index];
  Value& value = values_[index];
  if (v.kept == Kept::Word || v.kept == Kept::Steps) {
    if (!value.word.isValid())
      value.word = v.home ? t_.new_word() : taken(free_words_, [this] { return t_.new_word(); });
    return value.word;
  }
  const uint32_t count = v.kept == Kept::Splat ? 1 : strips_ * halves_of(v.bytes);
  if (value.regs.empty()) {
    value.regs.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      value.regs.push_back(v.home ? t_.new_vector()
                                  : taken(free_vectors_, [this] { return t_.new_vector(); }));
    }
  }
  return value.regs[v.kept == Kept::Splat ? 0 : v.bytes == 8 ? strip * 2 + half : strip];
}

}  // namespace kiln::engine
