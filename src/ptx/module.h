// SPDX-License-Identifier: Apache-2.0
// What does a PTX module say? Plain structs; all names are views into the module's text, which must
// outlive them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/types.h"

namespace kiln::ptx {

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const, Register };

// A line of the source, from .loc. `outer_*` is where the function that this code was inlined into
// stands: the last .loc without inlined_at. File 0: unknown.
struct SourceLine {
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t outer_file = 0;
  uint32_t outer_line = 0;
  uint32_t call = 0;  // the call that this code was inlined for, in Body::inlined_calls; 0: none

  bool operator==(const SourceLine&) const = default;
};

// A call in whose place code stands, and the call that its own function was inlined for.
struct InlinedCall {
  uint32_t file = 0, line = 0, outer = 0;
  auto operator<=>(const InlinedCall&) const = default;
};

// One element of an initializer: a number, or the address of a symbol (plus an offset).
struct InitialValue {
  uint64_t bits = 0;
  std::string_view symbol;
  bool generic = false;  // generic(symbol): its address in the generic space
};

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  Type type = Type::b8;
  uint32_t vector = 1;
  uint32_t align = 1;
  uint64_t count = 1;  // elements, all dimensions together
  bool is_extern = false;
  bool unsized = false;  // `x[]`: dynamic shared memory
  bool managed = false;
  uint32_t line = 0;
  std::vector<InitialValue> init;

  uint64_t bytes() const { return count * vector * bytes_of(type); }
};

struct Register {
  std::string_view stem;  // "%r" of `.reg .b32 %r<10>`, or the whole name
  int32_t index = -1;     // 3 of %r3; -1: the stem is the whole name
  Type type = Type::b32;

  std::string name() const {
    return std::string(stem) + (index < 0 ? std::string() : std::to_string(index));
  }
};

enum class OperandKind : uint8_t {
  Register,
  Predicate,  // a register of type .pred, perhaps negated
  Integer,    // bits
  Float,      // bits of an f64 (0d) when wide, else of an f32 (0f)
  Special,    // %tid.x
  Symbol,     // variable, function or label, plus offset
  Address,    // [base + offset]
  Vector,     // {a, b}
  Sink        // _
};

struct Operand {
  OperandKind kind = OperandKind::Sink;
  bool negated = false;
  bool wide = false;  // Float: the bits are those of an f64
  uint8_t part =
      0;  // Register of a video instruction: 1 to 4 for .b0 to .b3, 5 and 6 for .h0 and .h1
  uint32_t reg = 0;  // Register, Predicate; Address with a register base
  bool base_is_register = false;
  uint64_t bits = 0;              // Integer, Float
  int64_t offset = 0;             // Symbol, Address
  std::string_view name;          // Special ("tid.x"), Symbol, Address with a symbol base
  std::vector<Operand> elements;  // Vector; coordinates of an Address such as [tex, {x, y}]
};

constexpr uint32_t kNoRegister = ~0u;

struct Instruction {
  std::string_view mnemonic;
  std::vector<std::string_view> modifiers;
  std::vector<Operand> operands;
  uint32_t guard = kNoRegister;
  bool guard_negated = false;
  SourceLine source;
  uint32_t line = 0;  // in the PTX text
  uint32_t column = 0;
  // call: operands are the results, then the target, then the arguments.
  uint32_t call_results = 0;
  std::string_view prototype;

  bool has(std::string_view modifier) const;
  std::string text() const;  // "add.rn.f32"
};

struct Prototype {
  std::vector<Variable> results;
  std::vector<Variable> parameters;
};

struct Body {
  std::vector<std::unique_ptr<std::string>> names;  // of variables that had to be renamed
  std::vector<Register> registers;
  std::vector<Variable> variables;  // .shared, .local, .param, .global, .const declared inside
  std::vector<Instruction> instructions;
  std::vector<InlinedCall> inlined_calls = {{}};          // each behind its `outer`; 0: none
  std::unordered_map<std::string_view, uint32_t> labels;  // index of the instruction that follows
  std::unordered_map<std::string_view, std::vector<std::string_view>> branch_targets;
  std::unordered_map<std::string_view, Prototype> prototypes;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool is_extern = false;
  bool is_weak = false;
  bool noreturn = false;
  std::vector<Variable> results;
  std::vector<Variable> parameters;
  uint32_t max_threads = 0;                  // .maxntid, product
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster
  std::string_view body_text;                // between the braces; empty for a declaration
  uint32_t body_line = 0;
  uint32_t line = 0;
};

struct Module {
  uint32_t version_major = 0, version_minor = 0;
  std::string_view target;
  std::map<uint32_t, std::string_view> files;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::unordered_map<std::string_view, uint32_t>
      function_index;  // a definition wins over a declaration
  std::unordered_map<std::string_view, std::string_view> aliases;

  const Function* find(std::string_view name) const;
  std::string file_name(uint32_t file) const;  // "?" when unknown
};

}  // namespace kiln::ptx
