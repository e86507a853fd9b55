// SPDX-License-Identifier: Apache-2.0
// How is an instruction matched to a row of instructions.def?
#include "ptx/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::ptx {
namespace {

// A word that is none ends the compilation.
consteval uint16_t traits(std::string_view text) {
  constexpr std::pair<std::string_view, Trait> kTraits[] = {
      {"straight", kStraight}, {"parks", kParks},
      {"guarded", kGuarded},   {"polls", kPolls},
      {"waits", kWaits},       {"polls_if_strong", kPollsIfStrong},
      {"variant", kVariant},   {"any_order", kAnyOrder},
      {"flop", kFlop},         {"fma", kFma}};
  uint16_t out = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    uint16_t found = 0;
    for (const auto& [name, trait] : kTraits) {
      if (name == word) found = trait;
    }
    if (!found) throw "not a trait";
    out |= found;
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return out;
}

constexpr Form kForms[] = {
#define PTX_FORM(lowering, mnemonic, modifiers, types, other_types, operands, words) \
  {#lowering, mnemonic, modifiers, types, other_types, operands, traits(words)},
#include "ptx/instructions.def"
#undef PTX_FORM
};

// One word of the modifiers' grammar: "rn", "ftz?", "lo|hi", "rn|rz?", "T", "U".
struct Part {
  std::vector<std::string_view> choices;
  bool optional = false;
  char type_slot = 0;
};

struct CompiledForm {
  std::vector<Part> parts;
  TypeSet types = 0;
  TypeSet other_types = 0;
  std::vector<std::string_view> operands;
};

std::vector<std::string_view> words(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t end = text.find(separator);
    if (end != 0) out.push_back(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + 1);
  }
  return out;
}

CompiledForm compile(const Form& form) {
  CompiledForm out;
  for (std::string_view word : words(form.modifiers, ' ')) {
    Part part;
    if (word.back() == '?') {
      part.optional = true;
      word.remove_suffix(1);
    }
    if (word == "T" || word == "U") {
      part.type_slot = word[0];
    } else {
      part.choices = words(word, '|');
    }
    out.parts.push_back(std::move(part));
  }
  out.types = parse_type_set(form.types);
  out.other_types = parse_type_set(form.other_types);
  out.operands = words(form.operands, ' ');
  return out;
}

const std::vector<CompiledForm>& compiled_forms() {
  static const std::vector<CompiledForm> compiled = [] {
    std::vector<CompiledForm> out;
    for (const Form& form : kForms) out.push_back(compile(form));
    return out;
  }();
  return compiled;
}

const std::unordered_map<std::string_view, std::vector<uint32_t>>& rows_of_mnemonic() {
  static const auto rows = [] {
    std::unordered_map<std::string_view, std::vector<uint32_t>> out;
    for (uint32_t i = 0; i < std::size(kForms); ++i) out[kForms[i].mnemonic].push_back(i);
    return out;
  }();
  return rows;
}

// `m64n*k16`: the star stands for digits.
bool is_choice(std::string_view choice, std::string_view seen) {
  const size_t star = choice.find('*');
  if (star == choice.npos) return choice == seen;
  const std::string_view front = choice.substr(0, star), back = choice.substr(star + 1);
  if (seen.size() <= front.size() + back.size() || !seen.starts_with(front) ||
      !seen.ends_with(back))
    return false;
  for (char c : seen.substr(front.size(), seen.size() - front.size() - back.size())) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

bool match_modifiers(const CompiledForm& form, const Instruction& ins, size_t part, size_t modifier,
                     FormMatch* match) {
  if (part == form.parts.size()) return modifier == ins.modifiers.size();
  const Part& p = form.parts[part];
  if (modifier < ins.modifiers.size()) {
    std::string_view seen = ins.modifiers[modifier];
    bool fits = false;
    if (p.type_slot) {
      auto type = type_named(seen);
      TypeSet allowed = p.type_slot == 'T' ? form.types : form.other_types;
      fits = type && (allowed & set_of(*type));
      if (fits) (p.type_slot == 'T' ? match->type : match->other_type) = type;
    } else {
      for (std::string_view choice : p.choices) fits |= is_choice(choice, seen);
    }
    if (fits && match_modifiers(form, ins, part + 1, modifier + 1, match)) return true;
  }
  return p.optional && match_modifiers(form, ins, part + 1, modifier, match);
}

bool match_any_order(const CompiledForm& form, const Instruction& ins, FormMatch* match) {
  std::vector<bool> used(ins.modifiers.size(), false);
  for (const Part& p : form.parts) {
    bool found = p.optional;
    for (size_t m = 0; m < ins.modifiers.size(); ++m) {
      if (used[m]) continue;
      bool fits = false;
      if (p.type_slot) {
        auto type = type_named(ins.modifiers[m]);
        fits = p.type_slot == 'T' && type && (form.types & set_of(*type));
        if (fits) match->type = type;
      } else {
        for (std::string_view choice : p.choices) fits |= is_choice(choice, ins.modifiers[m]);
      }
      if (!fits) continue;
      used[m] = found = true;
      break;
    }
    if (!found) return false;
  }
  for (bool one : used) {
    if (!one) return false;
  }
  return true;
}

bool is_value(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Register:
    case OperandKind::Integer:
    case OperandKind::Float:
    case OperandKind::Special:
    case OperandKind::Symbol:
      return true;
    default:
      return false;
  }
}

bool fits_operand(char wanted, const Operand& operand) {
  switch (wanted) {
    case 'd':  // a register written
      return operand.kind == OperandKind::Register;
    case 'D':  // a register written, or nothing
      return operand.kind == OperandKind::Register || operand.kind == OperandKind::Sink;
    case 'p':  // a predicate written
      return (operand.kind == OperandKind::Predicate && !operand.negated) ||
             operand.kind == OperandKind::Sink;
    case 'a':  // a value read
      return is_value(operand);
    case 'i':  // an integer known when the text is read
      return operand.kind == OperandKind::Integer;
    case 'c':  // a predicate read
      return operand.kind == OperandKind::Predicate || operand.kind == OperandKind::Integer;
    case 'm':  // memory
      return operand.kind == OperandKind::Address;
    case 'v':  // registers written
      if (operand.kind != OperandKind::Vector) return operand.kind == OperandKind::Register;
      for (const Operand& e : operand.elements) {
        if (e.kind != OperandKind::Register && e.kind != OperandKind::Sink) return false;
      }
      return true;
    case 'w':  // values read
      if (operand.kind != OperandKind::Vector) return is_value(operand);
      for (const Operand& e : operand.elements) {
        if (!is_value(e)) return false;
      }
      return true;
    case 'l':  // a label
      return operand.kind == OperandKind::Symbol;
    default:
      return false;
  }
}

bool match_operands(const CompiledForm& form, const Instruction& ins) {
  size_t at = 0;
  for (std::string_view wanted : form.operands) {
    if (wanted == "*") return true;
    bool optional = wanted.back() == '?';
    if (at < ins.operands.size() && fits_operand(wanted[0], ins.operands[at])) {
      ++at;
    } else if (!optional) {
      return false;
    }
  }
  return at == ins.operands.size();
}

}  // namespace

std::span<const Form> forms() { return kForms; }

std::optional<FormMatch> match_form(const Instruction& ins) {
  auto rows = rows_of_mnemonic().find(ins.mnemonic);
  if (rows == rows_of_mnemonic().end()) return std::nullopt;
  for (uint32_t row : rows->second) {
    FormMatch match;
    match.form = row;
    const CompiledForm& form = compiled_forms()[row];
    if (match_operands(form, ins) && match_modifiers(form, ins, 0, 0, &match)) return match;
  }
  for (uint32_t row : rows->second) {
    if (!kForms[row].has(kAnyOrder)) continue;
    FormMatch match;
    match.form = row;
    const CompiledForm& form = compiled_forms()[row];
    if (match_operands(form, ins) && match_any_order(form, ins, &match)) return match;
  }
  return std::nullopt;
}

bool polls(const Form& form, const Instruction& ins) {
  if (form.has(kPolls)) return true;
  return form.has(kPollsIfStrong) &&
         (ins.has("volatile") || ins.has("acquire") || ins.has("relaxed") || ins.has("mmio"));
}

std::string why_unknown(const Instruction& ins) {
  auto rows = rows_of_mnemonic().find(ins.mnemonic);
  if (rows == rows_of_mnemonic().end()) return fmt::format("unknown instruction '{}'", ins.text());
  for (uint32_t row : rows->second) {
    FormMatch match;
    if (match_modifiers(compiled_forms()[row], ins, 0, 0, &match)) {
      return fmt::format("unknown instruction '{}' with these operands", ins.text());
    }
  }
  return fmt::format("unknown instruction '{}': no form of '{}' has these modifiers", ins.text(),
                     ins.mnemonic);
}

}  // namespace kiln::ptx
