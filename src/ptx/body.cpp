// SPDX-License-Identifier: Apache-2.0
// How is the body of a function read: registers with their scopes, variables, labels and instructions?
#include <fmt/format.h>

#include <charconv>
#include <unordered_set>

#include "ptx/cursor.h"
#include "ptx/parser.h"
#include "ptx/view_check.h"

namespace kiln::ptx {
namespace {

// Registers declared together: `.reg .b32 %r<10>` (count 10) or `.reg .pred p` (count 0).
struct RegisterRange {
  uint32_t first = 0;
  uint32_t count = 0;
  Type type = Type::b32;
};

class BodyReader {
 public:
  BodyReader(const Function& function) : function_(function), cursor_(function.body_text, function.body_line) {}

  Result<Body> read() {
    scopes_.emplace_back();
    for (const auto* list : {&function_.results, &function_.parameters}) {
      for (const Variable& variable : *list) {
        if (variable.space == Space::Register && !declare_register(variable.name, 0, variable.type, {})) {
          return cursor_.error();
        }
      }
    }
    while (!cursor_.failed() && cursor_.peek().kind != TokenKind::End) statement();
    if (!cursor_.failed() && scopes_.size() != 1) cursor_.fail("wanted '}'");
    if (!cursor_.failed()) resolve_branches();
    if (cursor_.failed()) return cursor_.error();
    return std::move(body_);
  }

 private:
  struct Scope {
    std::unordered_map<std::string_view, RegisterRange> registers;
    std::unordered_map<std::string_view, std::string_view> renamed;  // variables whose name an earlier scope has taken
    ScopeStart start;
    bool has_view_check = false;
  };

  bool statement() {
    const Token& token = cursor_.peek();
    if (token.kind == TokenKind::Dotted) return directive();
    if (token.is('{')) {
      if (scopes_.size() >= kMaxNesting) return cursor_.fail("braces nest too deeply");
      cursor_.take();
      scopes_.emplace_back().start = {body_.instructions.size(), body_.registers.size(), body_.variables.size(),
                                      body_.labels.size()};
      return true;
    }
    if (token.is('}')) {
      if (scopes_.size() == 1) return cursor_.fail("a '}' without its '{'");
      cursor_.take();
      if (scopes_.back().has_view_check) fold_view_checks(scopes_.back().start, caller_, &body_);
      scopes_.pop_back();
      return true;
    }
    if (cursor_.accept(';')) return true;
    if (token.kind == TokenKind::Word && cursor_.peek_second().is(':')) return label();
    return instruction();
  }

  bool label() {
    Token name = cursor_.take();
    cursor_.take();
    if (cursor_.accept_dotted("callprototype")) {
      Prototype prototype;
      if (cursor_.peek().is('(') && !cursor_.parameters(&prototype.results)) return false;
      std::string_view ignored;
      if (!cursor_.expect_word(&ignored)) return false;
      if (cursor_.peek().is('(') && !cursor_.parameters(&prototype.parameters)) return false;
      body_.prototypes[name.text] = std::move(prototype);
      return cursor_.skip_to_semicolon();
    }
    if (cursor_.accept_dotted("branchtargets")) {
      auto& targets = body_.branch_targets[name.text];
      do {
        std::string_view target;
        if (!cursor_.expect_word(&target)) return false;
        targets.push_back(target);
      } while (cursor_.accept(','));
      return cursor_.expect(';');
    }
    if (cursor_.accept_dotted("calltargets")) return cursor_.skip_to_semicolon();
    uint32_t next = static_cast<uint32_t>(body_.instructions.size());
    if (!body_.labels.emplace(name.text, next).second) return cursor_.fail_at(name, "this label stands twice");
    return true;
  }

  bool directive() {
    Token token = cursor_.take();
    if (token.text == "reg") return registers();
    if (token.text == "loc") return cursor_.location(token, &source_, &caller_);
    if (token.text == "pragma") return cursor_.skip_to_semicolon();
    if (auto space = space_named(token.text)) {
      do {
        Variable variable;
        variable.space = *space;
        if (!cursor_.declarator(&variable) || !cursor_.initializer(&variable)) return false;
        declare_variable(&variable);
        body_.variables.push_back(std::move(variable));
      } while (cursor_.accept(','));
      return cursor_.expect(';');
    }
    return cursor_.fail_at(token, "this directive is not known inside a function");
  }

  bool registers() {
    uint32_t vector = 1;
    if (cursor_.peek().is_dotted("v2") || cursor_.peek().is_dotted("v4")) {
      vector = static_cast<uint32_t>(cursor_.take().text[1] - '0');
    }
    auto type = cursor_.peek().kind == TokenKind::Dotted ? type_named(cursor_.peek().text) : std::nullopt;
    if (!type) return cursor_.fail("wanted the type of a register");
    cursor_.take();
    if (vector != 1) return cursor_.fail("vector registers are not supported");
    do {
      Token at = cursor_.peek();
      std::string_view name;
      if (!cursor_.expect_word(&name)) return false;
      uint64_t count = 0;
      if (cursor_.accept('<')) {
        if (!cursor_.expect_unsigned(&count) || !cursor_.expect('>')) return false;
        if (count == 0) return cursor_.fail_at(at, "a range of no registers");
      }
      if (!declare_register(name, count, *type, at)) return false;
    } while (cursor_.accept(','));
    return cursor_.expect(';');
  }

  // Every call has its own `param0` in braces of its own: the second and later ones get a name of their own.
  void declare_variable(Variable* variable) {
    if (variable_names_.insert(variable->name).second) return;
    std::string name = fmt::format("{}@{}", variable->name, body_.names.size());
    body_.names.push_back(std::make_unique<std::string>(std::move(name)));
    scopes_.back().renamed[variable->name] = *body_.names.back();
    variable->name = *body_.names.back();
  }

  std::string_view variable_name(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      auto found = scope->renamed.find(name);
      if (found != scope->renamed.end()) return found->second;
    }
    return name;
  }

  bool declare_register(std::string_view name, uint64_t count, Type type, const Token& at) {
    if (count > kMaxRegisters || body_.registers.size() + count > kMaxRegisters) {
      return cursor_.fail_at(at, fmt::format("more than {} registers", kMaxRegisters));
    }
    RegisterRange range{static_cast<uint32_t>(body_.registers.size()), static_cast<uint32_t>(count), type};
    scopes_.back().registers[name] = range;
    scopes_.back().has_view_check |= is_view_check(name);
    for (uint32_t i = 0; i < std::max<uint64_t>(count, 1); ++i) {
      body_.registers.push_back({name, count ? static_cast<int32_t>(i) : -1, type});
    }
    return true;
  }

  bool find_register(std::string_view name, uint32_t* out) const {
    size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    std::string_view stem = name.substr(0, digits);
    uint32_t index = 0;
    bool numbered = digits < name.size() && digits > 0 &&
                    std::from_chars(name.data() + digits, name.data() + name.size(), index).ec == std::errc();
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto& registers = scope->registers;
      if (auto whole = registers.find(name); whole != registers.end() && whole->second.count == 0) {
        *out = whole->second.first;
        return true;
      }
      if (!numbered) continue;
      if (auto range = registers.find(stem); range != registers.end() && index < range->second.count) {
        *out = range->second.first + index;
        return true;
      }
    }
    return false;
  }

  bool instruction() {
    Instruction ins;
    if (cursor_.accept('@')) {
      ins.guard_negated = cursor_.accept('!');
      Token at = cursor_.peek();
      std::string_view name;
      if (!cursor_.expect_word(&name)) return false;
      if (!find_register(name, &ins.guard)) return cursor_.fail_at(at, "this predicate is not declared");
      if (body_.registers[ins.guard].type != Type::pred) return cursor_.fail_at(at, "a guard must be a predicate");
    }
    ins.line = cursor_.peek().line;
    ins.column = cursor_.peek().column;
    ins.source = source_;
    if (!cursor_.expect_word(&ins.mnemonic)) return false;
    while (cursor_.peek().kind == TokenKind::Dotted) ins.modifiers.push_back(cursor_.take().text);
    if (ins.mnemonic == "call") {
      if (!call_operands(&ins)) return false;
    } else if (!cursor_.peek().is(';')) {
      do {
        Operand operand;
        if (!parse_operand(&operand)) return false;
        ins.operands.push_back(std::move(operand));
      } while (cursor_.accept(',') || cursor_.accept('|'));
    }
    if (!cursor_.expect(';')) return false;
    body_.instructions.push_back(std::move(ins));
    return true;
  }

  bool operand_list(std::vector<Operand>* out) {
    if (!cursor_.expect('(')) return false;
    if (cursor_.accept(')')) return true;
    do {
      Operand operand;
      if (!parse_operand(&operand)) return false;
      out->push_back(std::move(operand));
    } while (cursor_.accept(','));
    return cursor_.expect(')');
  }

  bool call_operands(Instruction* ins) {
    if (cursor_.peek().is('(')) {
      if (!operand_list(&ins->operands) || !cursor_.expect(',')) return false;
      ins->call_results = static_cast<uint32_t>(ins->operands.size());
    }
    Operand target;
    if (!parse_operand(&target)) return false;
    ins->operands.push_back(std::move(target));
    if (cursor_.accept(',')) {
      if (cursor_.peek().is('(')) {
        if (!operand_list(&ins->operands)) return false;
        if (cursor_.accept(',') && !cursor_.expect_word(&ins->prototype)) return false;
      } else if (!cursor_.expect_word(&ins->prototype)) {
        return false;
      }
    }
    return true;
  }

  bool parse_operand(Operand* out) {
    const Token& token = cursor_.peek();
    if (token.is('{')) return vector(out);
    if (token.is('[')) return address(out);
    if (token.is('!')) {
      cursor_.take();
      if (cursor_.peek().kind != TokenKind::Word) return cursor_.fail("'!' stands before a predicate alone");
      if (!parse_operand(out)) return false;
      if (out->kind != OperandKind::Predicate) return cursor_.fail("'!' stands before a predicate alone");
      out->negated = true;
      return true;
    }
    if (token.kind == TokenKind::Number || token.is('-') || token.is('+') || token.is('~') ||
        token.is_word("WARP_SZ")) {
      return cursor_.number(out);
    }
    Token name;
    if (token.kind == TokenKind::Word) name = token;
    if (name.text.empty()) return cursor_.fail("wanted an operand");
    cursor_.take();
    if (name.text == "_") {
      out->kind = OperandKind::Sink;
      return true;
    }
    if (find_register(name.text, &out->reg)) {
      bool predicate = body_.registers[out->reg].type == Type::pred;
      out->kind = predicate ? OperandKind::Predicate : OperandKind::Register;
      return !predicate && cursor_.peek().kind == TokenKind::Dotted ? part(&out->part) : true;
    }
    if (name.text[0] == '%') {
      out->kind = OperandKind::Special;
      out->name = name.text.substr(1);
      if (cursor_.peek().kind == TokenKind::Dotted) {
        // "%tid" and ".x" lie side by side in the text.
        Token part = cursor_.take();
        const char* begin = name.text.data() + 1;
        out->name = {begin, static_cast<size_t>(part.text.data() + part.text.size() - begin)};
      }
      return true;
    }
    out->kind = OperandKind::Symbol;
    out->name = variable_name(name.text);
    return offset(&out->offset);
  }

  // `.b2` and `.h0` behind a register.
  bool part(uint8_t* out) {
    constexpr std::string_view kParts[] = {"b0", "b1", "b2", "b3", "h0", "h1"};
    for (uint8_t i = 0; i < std::size(kParts); ++i) {
      if (cursor_.accept_dotted(kParts[i])) *out = i + 1;
    }
    return *out != 0 || cursor_.fail("wanted .b0 to .b3, .h0 or .h1 behind a register");
  }

  bool offset(int64_t* out) {
    *out = 0;
    while (cursor_.peek().is('+') || cursor_.peek().is('-')) {
      Operand value;
      Token at = cursor_.peek();
      if (!cursor_.number(&value)) return false;
      if (value.kind != OperandKind::Integer) return cursor_.fail_at(at, "an offset is an integer");
      *out = static_cast<int64_t>(static_cast<uint64_t>(*out) + value.bits);
    }
    return true;
  }

  bool vector(Operand* out) {
    out->kind = OperandKind::Vector;
    cursor_.take();
    do {
      Operand element;
      if (cursor_.peek().is('{')) return cursor_.fail("a vector has no vectors inside");
      if (!parse_operand(&element)) return false;
      out->elements.push_back(std::move(element));
    } while (cursor_.accept(','));
    return cursor_.expect('}');
  }

  bool address(Operand* out) {
    out->kind = OperandKind::Address;
    cursor_.take();
    const Token& token = cursor_.peek();
    if (token.kind == TokenKind::Number || token.is('-')) {
      Operand value;
      if (!cursor_.number(&value)) return false;
      out->bits = value.bits;
      out->offset = static_cast<int64_t>(value.bits);
    } else {
      Token at = token;
      std::string_view name;
      if (!cursor_.expect_word(&name)) return false;
      if (find_register(name, &out->reg)) {
        out->base_is_register = true;
      } else {
        if (name[0] == '%') return cursor_.fail_at(at, "this register is not declared");
        out->name = variable_name(name);
      }
      if (!offset(&out->offset)) return false;
    }
    while (cursor_.accept(',')) {
      Operand coordinate;
      if (!parse_operand(&coordinate)) return false;
      out->elements.push_back(std::move(coordinate));
    }
    return cursor_.expect(']');
  }

  void resolve_branches() {
    for (const Instruction& ins : body_.instructions) {
      if (ins.mnemonic != "bra" || ins.operands.size() != 1) continue;
      const Operand& target = ins.operands[0];
      if (target.kind != OperandKind::Symbol || !body_.labels.count(target.name)) {
        cursor_.fail_at({TokenKind::Word, target.name.empty() ? "bra" : target.name, ins.line, ins.column},
                        "a branch to a label that is not in this function");
        return;
      }
    }
  }

  const Function& function_;
  Cursor cursor_;
  Body body_;
  std::vector<Scope> scopes_;
  std::unordered_set<std::string_view> variable_names_;
  SourceLine source_;
  SourceLine caller_;  // of the function that source_ was inlined from; file 0: it is not inlined
};

}  // namespace

Result<Body> parse_body(const Module&, const Function& function) {
  if (function.body_text.empty()) {
    return Error{Fault::Work, fmt::format("cannot read the function {}", function.name),
                 "it is declared but has no body", ""};
  }
  return BodyReader(function).read();
}

}  // namespace kiln::ptx
