// SPDX-License-Identifier: Apache-2.0
// How are names declared and found, scope by scope? ptxas 13.0 was asked wherever the manual is
// silent.
#include "ptx/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace kiln::ptx {
namespace {

// "%r12" as "%r" and 12; nothing: no number, or one that no register can have.
std::optional<uint32_t> split_number(std::string_view name, std::string_view* stem) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  uint32_t index = 0;
  if (digits == 0 || digits == name.size() || (name[digits] == '0' && digits + 1 < name.size()))
    return std::nullopt;
  if (std::from_chars(name.data() + digits, name.data() + name.size(), index).ec != std::errc())
    return std::nullopt;
  *stem = name.substr(0, digits);
  return index;
}

}  // namespace

bool Scopes::declare_registers(std::string_view name, const RegisterRange& range) {
  Scope& scope = scopes_.back();
  if (range.count > 0) {
    auto numbered = scope.lowest_numbered.find(name);
    if (numbered != scope.lowest_numbered.end() && numbered->second < range.count) return false;
    return scope.ranges.emplace(name, range).second;
  }
  std::string_view stem;
  if (auto index = split_number(name, &stem)) {
    auto wide = scope.ranges.find(stem);
    if (wide != scope.ranges.end() && *index < wide->second.count) return false;
    auto [lowest, added] = scope.lowest_numbered.emplace(stem, *index);
    if (!added) lowest->second = std::min(lowest->second, *index);
  }
  return !scope.names.count(name) && scope.registers.emplace(name, range).second;
}

std::optional<std::string_view> Scopes::declare(std::string_view name, NameKind kind) {
  Scope& scope = scopes_.back();
  if (scope.registers.count(name)) return std::nullopt;
  auto [place, added] = scope.names.emplace(name, Meaning{kind, name});
  if (!added) return std::nullopt;
  if (scopes_.size() > 1) {
    // Every call has its own `param0` in braces of its own, and every inlined copy of an asm its
    // own labels.
    body_.names.push_back(
        std::make_unique<std::string>(fmt::format("{}@{}", name, body_.names.size())));
    place->second.name = *body_.names.back();
  }
  return place->second.name;
}

bool Scopes::find_register(std::string_view name, uint32_t* out) const {
  std::string_view stem;
  const std::optional<uint32_t> index = split_number(name, &stem);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto whole = scope->registers.find(name); whole != scope->registers.end()) {
      *out = whole->second.first;
      return true;
    }
    if (scope->names.count(name)) return false;
    if (!index) continue;
    if (auto range = scope->ranges.find(stem);
        range != scope->ranges.end() && *index < range->second.count) {
      *out = range->second.first + *index;
      return true;
    }
  }
  return false;
}

const Scopes::Meaning* Scopes::meaning(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->names.find(name);
    if (found != scope->names.end()) return &found->second;
  }
  return nullptr;
}

std::string_view Scopes::variable(std::string_view name) const {
  const Meaning* found = meaning(name);
  return found && found->kind == NameKind::Variable ? found->name : name;
}

void Scopes::resolve(const LabelUse& use, std::string_view name) {
  if (!use.list.empty()) {
    body_.branch_targets[use.list][use.operand] = name;
  } else if (use.wanted == NameKind::Prototype) {
    // A .calltargets list is not a prototype: it says nothing that is kept.
    body_.instructions[use.instruction].prototype =
        body_.prototypes.count(name) ? name : std::string_view();
  } else {
    body_.instructions[use.instruction].operands[use.operand].name = name;
  }
}

bool Scopes::close() {
  std::vector<LabelUse> later;
  for (const LabelUse& use : scopes_.back().uses) {
    // As ptxas does: a label of the use's own scope counts wherever it stands; of the scopes around
    // it, the innermost that has the label when the use's scope ends; else one that follows.
    const Meaning* found = meaning(use.name);
    if (found && found->kind == use.wanted) {
      resolve(use, found->name);
    } else if (found || scopes_.size() == 1) {
      unknown_ = use;
      return false;
    } else {
      later.push_back(use);
    }
  }
  scopes_.pop_back();
  if (!scopes_.empty())
    scopes_.back().uses.insert(scopes_.back().uses.end(), later.begin(), later.end());
  return true;
}

}  // namespace kiln::ptx
