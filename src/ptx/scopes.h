// SPDX-License-Identifier: Apache-2.0
// What does a name mean inside braces? Registers, variables and labels share one set of names
// per scope; an inner scope hides the names of the outer ones, and its own end with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/module.h"

namespace kiln::ptx {

// Registers declared together: `.reg .b32 %r<10>` (count 10) or `.reg .pred p` (count 0).
struct RegisterRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

enum class NameKind : uint8_t { Variable, Label, BranchTargets, Prototype };

// Where a body names a label. What it means is known at the end of the scope: a label may follow
// its use.
struct LabelUse {
  NameKind wanted = NameKind::Label;
  std::string_view name;
  uint32_t line = 0, column = 0;
  uint32_t instruction = 0;
  uint32_t operand = 0;   // of the instruction, or of the list below
  std::string_view list;  // a .branchtargets list, by its name in the body
};

class Scopes {
 public:
  explicit Scopes(Body& body) : body_(body) { open(); }

  size_t depth() const { return scopes_.size(); }
  void open() { scopes_.emplace_back(); }
  // Gives each use of a label its name in the body. False: `unknown()` says which one names
  // nothing.
  bool close();
  const LabelUse& unknown() const { return unknown_; }

  // False: this scope already has the name.
  bool declare_registers(std::string_view name, const RegisterRange& range);
  // The name in the body, which no other scope of the function has; nothing: this scope already has
  // it.
  std::optional<std::string_view> declare(std::string_view name, NameKind kind);
  void use(LabelUse label) { scopes_.back().uses.push_back(label); }

  bool find_register(std::string_view name, uint32_t* out) const;
  // Of a variable; a name that no scope has is one of the module.
  std::string_view variable(std::string_view name) const;

 private:
  struct Meaning {
    NameKind kind;
    std::string_view name;
  };
  struct Scope {
    std::unordered_map<std::string_view, RegisterRange> registers;  // by name
    std::unordered_map<std::string_view, RegisterRange> ranges;     // by what precedes the number
    std::unordered_map<std::string_view, uint32_t>
        lowest_numbered;  // 3 of %r3 declared alone, by stem
    std::unordered_map<std::string_view, Meaning> names;
    std::vector<LabelUse> uses;
  };

  const Meaning* meaning(std::string_view name) const;
  void resolve(const LabelUse& use, std::string_view name);

  Body& body_;
  std::vector<Scope> scopes_;
  LabelUse unknown_;
};

}  // namespace kiln::ptx
