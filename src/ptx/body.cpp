// SPDX-License-Identifier: Apache-2.0
// How is the body of a function read: registers with their scopes, variables, labels and
// instructions?
#include <fmt/format.h>

#include <map>

#include "ptx/cursor.h"
#include "ptx/parser.h"
#include "ptx/scopes.h"
#include "ptx/view_check.h"

namespace kiln::ptx {
namespace {

class BodyReader {
 public:
  BodyReader(const Function& function)
      : function_(function), cursor_(function.body_text, function.body_line) {}

  Result<Body> read() {
    for (const auto* list : {&function_.results, &function_.parameters}) {
      for (const Variable& variable : *list) {
        const bool good = variable.space == Space::Register
                              ? declare_register(variable.name, 0, variable.type, {})
                              : declare_parameter(variable);
        if (!good) return cursor_.error();
      }
    }
    while (!cursor_.failed() && cursor_.peek().kind != TokenKind::End) statement();
    if (!cursor_.failed() && scopes_.depth() != 1) cursor_.fail("expected '}'");
    if (!cursor_.failed()) close_scope();
    if (cursor_.failed()) return cursor_.error();
    return std::move(body_);
  }

 private:
  struct ViewScope {
    ScopeStart start;
    bool has_check = false;
  };

  bool statement() {
    const Token& token = cursor_.peek();
    if (token.kind == TokenKind::Dotted) return directive();
    if (token.is('{')) {
      if (scopes_.depth() >= kMaxNesting) return cursor_.fail("braces nest too deeply");
      cursor_.take();
      scopes_.open();
      view_scopes_.push_back({{body_.instructions.size(), body_.registers.size(),
                               body_.variables.size(), body_.labels.size()}});
      return true;
    }
    if (token.is('}')) {
      if (scopes_.depth() == 1) return cursor_.fail("a '}' without a '{'");
      cursor_.take();
      if (view_scopes_.back().has_check) {
        const uint32_t call = body_.inlined_calls[source_.call].outer;
        const SourceLine caller{caller_.file, caller_.line, 0, 0, call};
        fold_view_checks(view_scopes_.back().start, caller, &body_);
      }
      view_scopes_.pop_back();
      return close_scope();
    }
    if (cursor_.accept(';')) return true;
    if (token.kind == TokenKind::Word && cursor_.peek_second().is(':')) return label();
    return instruction();
  }

  bool close_scope() {
    if (scopes_.close()) return true;
    const LabelUse& use = scopes_.unknown();
    return cursor_.fail_at(
        {TokenKind::Word, use.name, use.line, use.column},
        use.wanted == NameKind::Label           ? "a branch to a label that is not in this function"
        : use.wanted == NameKind::BranchTargets ? "a list of targets that is not in this function"
                                                : "a prototype that is not in this function");
  }

  // The name in the body; empty: an error was noted.
  std::string_view declare(const Token& at, std::string_view name, NameKind kind) {
    auto declared = scopes_.declare(name, kind);
    if (declared) return *declared;
    cursor_.fail_at(at, kind == NameKind::Variable ? "this name is declared twice"
                                                   : "this label is defined twice");
    return {};
  }

  bool label() {
    Token name = cursor_.take();
    cursor_.take();
    if (cursor_.accept_dotted("callprototype")) return prototype(name);
    if (cursor_.accept_dotted("branchtargets")) return branch_targets(name);
    if (cursor_.accept_dotted("calltargets")) {
      return !declare(name, name.text, NameKind::Prototype).empty() && cursor_.skip_to_semicolon();
    }
    const std::string_view declared = declare(name, name.text, NameKind::Label);
    if (declared.empty()) return false;
    body_.labels.emplace(declared, static_cast<uint32_t>(body_.instructions.size()));
    return true;
  }

  bool prototype(const Token& name) {
    Prototype prototype;
    if (cursor_.peek().is('(') && !cursor_.parameters(&prototype.results)) return false;
    std::string_view ignored;
    if (!cursor_.expect_word(&ignored)) return false;
    if (cursor_.peek().is('(') && !cursor_.parameters(&prototype.parameters)) return false;
    const std::string_view declared = declare(name, name.text, NameKind::Prototype);
    if (declared.empty()) return false;
    body_.prototypes.emplace(declared, std::move(prototype));
    return cursor_.skip_to_semicolon();
  }

  bool branch_targets(const Token& name) {
    const std::string_view declared = declare(name, name.text, NameKind::BranchTargets);
    if (declared.empty()) return false;
    auto& targets = body_.branch_targets[declared];
    do {
      LabelUse use = label_use(NameKind::Label);
      if (!cursor_.expect_word(&use.name)) return false;
      use.operand = static_cast<uint32_t>(targets.size());
      use.list = declared;
      targets.push_back(use.name);
      scopes_.use(use);
    } while (cursor_.accept(','));
    return cursor_.expect(';');
  }

  // Of the instruction that is read next; its place is the cursor's.
  LabelUse label_use(NameKind wanted) const {
    LabelUse use;
    use.wanted = wanted;
    use.line = cursor_.peek().line;
    use.column = cursor_.peek().column;
    use.instruction = static_cast<uint32_t>(body_.instructions.size());
    return use;
  }

  // Of the calls that a line was inlined through, the innermost in the file of the kernel is shown
  // as the outer one: of atomicAdd() in a function of the user it is the line of that call.
  bool location(const Token& token) {
    SourcePoint point;
    if (!cursor_.location(token, &point, &caller_)) return false;
    // nvcc gives line 0 to loops of its own making, such as that of memcpy().
    if (point.line == 0) return true;
    source_.file = point.file;
    source_.line = point.line;
    inlined_from_[point] = caller_;
    SourcePoint outermost = caller_.file ? caller_ : point;
    for (uint32_t depth = 0; depth < kMostInlined; ++depth) {
      const auto found = inlined_from_.find(outermost);
      if (found == inlined_from_.end() || !found->second.file) break;
      outermost = found->second;
    }
    SourcePoint outer = outermost;
    if (point.file != outermost.file) {
      outer = caller_;
      while (outer.file != outermost.file) outer = inlined_from_[outer];
    }
    source_.outer_file = outer.file;
    source_.outer_line = outer.line;
    source_.call = caller_.file ? inlined_call(caller_) : 0;
    call_of_[point] = source_.call;
    return true;
  }

  // nvcc names the line of a call before what was inlined for it.
  uint32_t inlined_call(const SourcePoint& at) {
    const auto outer = call_of_.find(at);
    const InlinedCall call{at.file, at.line, outer == call_of_.end() ? 0 : outer->second};
    const auto next = static_cast<uint32_t>(body_.inlined_calls.size());
    const auto [found, is_new] = calls_.try_emplace(call, next);
    if (is_new) body_.inlined_calls.push_back(call);
    return found->second;
  }

  bool directive() {
    Token token = cursor_.take();
    if (token.text == "reg") return registers();
    if (token.text == "loc") return location(token);
    if (token.text == "pragma") return cursor_.skip_to_semicolon();
    if (auto space = space_named(token.text)) {
      do {
        Variable variable;
        variable.space = *space;
        if (!cursor_.declarator(&variable)) return false;
        Token at = cursor_.peek();
        if (!cursor_.initializer(&variable) || !declare_variable(at, &variable)) return false;
        body_.variables.push_back(std::move(variable));
      } while (cursor_.accept(','));
      return cursor_.expect(';');
    }
    return cursor_.fail_at(token, "unknown directive inside a function");
  }

  bool registers() {
    uint32_t vector = 1;
    if (cursor_.peek().is_dotted("v2") || cursor_.peek().is_dotted("v4")) {
      vector = static_cast<uint32_t>(cursor_.take().text[1] - '0');
    }
    auto type =
        cursor_.peek().kind == TokenKind::Dotted ? type_named(cursor_.peek().text) : std::nullopt;
    if (!type) return cursor_.fail("expected the type of a register");
    cursor_.take();
    if (vector != 1) return cursor_.fail("vector registers are not supported");
    do {
      Token at = cursor_.peek();
      std::string_view name;
      if (!cursor_.expect_word(&name)) return false;
      uint64_t count = 0;
      if (cursor_.accept('<')) {
        if (!cursor_.expect_unsigned(&count) || !cursor_.expect('>')) return false;
        if (count == 0) return cursor_.fail_at(at, "an empty range of registers");
      }
      if (!declare_register(name, count, *type, at)) return false;
    } while (cursor_.accept(','));
    return cursor_.expect(';');
  }

  bool declare_parameter(const Variable& parameter) {
    return !declare({TokenKind::Word, parameter.name, parameter.line, 1}, parameter.name,
                    NameKind::Variable)
                .empty();
  }

  bool declare_variable(const Token& at, Variable* variable) {
    for (InitialValue& value : variable->init) {
      if (!value.symbol.empty()) value.symbol = scopes_.variable(value.symbol);
    }
    variable->name = declare(at, variable->name, NameKind::Variable);
    return !variable->name.empty();
  }

  bool declare_register(std::string_view name, uint64_t count, Type type, const Token& at) {
    if (count > kMaxRegisters || body_.registers.size() + count > kMaxRegisters) {
      return cursor_.fail_at(at, fmt::format("more than {} registers", kMaxRegisters));
    }
    const RegisterRange range{static_cast<uint32_t>(body_.registers.size()),
                              static_cast<uint32_t>(count)};
    if (!scopes_.declare_registers(name, range))
      return cursor_.fail_at(at, "this register is declared twice");
    view_scopes_.back().has_check |= is_view_check(name);
    for (uint32_t i = 0; i < std::max<uint64_t>(count, 1); ++i) {
      body_.registers.push_back({name, count ? static_cast<int32_t>(i) : -1, type});
    }
    return true;
  }

  bool instruction() {
    Instruction ins;
    if (cursor_.accept('@')) {
      ins.guard_negated = cursor_.accept('!');
      Token at = cursor_.peek();
      std::string_view name;
      if (!cursor_.expect_word(&name)) return false;
      if (!scopes_.find_register(name, &ins.guard))
        return cursor_.fail_at(at, "this predicate is not declared");
      if (body_.registers[ins.guard].type != Type::pred)
        return cursor_.fail_at(at, "a guard must be a predicate");
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
        const bool names_label =
            ins.mnemonic == "bra" || (ins.mnemonic == "brx" && ins.operands.size() == 1);
        if (!(names_label ? label_operand(ins, &operand) : parse_operand(&operand))) return false;
        ins.operands.push_back(std::move(operand));
      } while (cursor_.accept(',') || cursor_.accept('|'));
    }
    if (!cursor_.expect(';')) return false;
    body_.instructions.push_back(std::move(ins));
    return true;
  }

  bool label_operand(const Instruction& ins, Operand* out) {
    LabelUse use = label_use(ins.mnemonic == "bra" ? NameKind::Label : NameKind::BranchTargets);
    if (!cursor_.expect_word(&use.name)) return false;
    use.operand = static_cast<uint32_t>(ins.operands.size());
    out->kind = OperandKind::Symbol;
    out->name = use.name;
    scopes_.use(use);
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
        return !cursor_.accept(',') || call_prototype(ins);
      }
      return call_prototype(ins);
    }
    return true;
  }

  bool call_prototype(Instruction* ins) {
    LabelUse use = label_use(NameKind::Prototype);
    if (!cursor_.expect_word(&use.name)) return false;
    ins->prototype = use.name;
    scopes_.use(use);
    return true;
  }

  bool parse_operand(Operand* out) {
    const Token& token = cursor_.peek();
    if (token.is('{')) return vector(out);
    if (token.is('[')) return address(out);
    if (token.is('!')) {
      cursor_.take();
      if (cursor_.peek().kind != TokenKind::Word)
        return cursor_.fail("'!' is only allowed before a predicate");
      if (!parse_operand(out)) return false;
      if (out->kind != OperandKind::Predicate)
        return cursor_.fail("'!' is only allowed before a predicate");
      out->negated = true;
      return true;
    }
    if (token.kind == TokenKind::Number || token.is('-') || token.is('+') || token.is('~') ||
        token.is_word("WARP_SZ")) {
      return cursor_.number(out);
    }
    Token name;
    if (token.kind == TokenKind::Word) name = token;
    if (name.text.empty()) return cursor_.fail("expected an operand");
    cursor_.take();
    if (name.text == "_") {
      out->kind = OperandKind::Sink;
      return true;
    }
    if (scopes_.find_register(name.text, &out->reg)) {
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
    out->name = scopes_.variable(name.text);
    return offset(&out->offset);
  }

  // `.b2` and `.h0` behind a register.
  bool part(uint8_t* out) {
    constexpr std::string_view kParts[] = {"b0", "b1", "b2", "b3", "h0", "h1"};
    for (size_t i = 0; i < std::size(kParts); ++i) {
      if (cursor_.accept_dotted(kParts[i])) *out = static_cast<uint8_t>(i + 1);
    }
    return *out != 0 || cursor_.fail("expected .b0 to .b3, .h0 or .h1 after a register");
  }

  bool offset(int64_t* out) {
    *out = 0;
    while (cursor_.peek().is('+') || cursor_.peek().is('-')) {
      Operand value;
      Token at = cursor_.peek();
      if (!cursor_.number(&value)) return false;
      if (value.kind != OperandKind::Integer)
        return cursor_.fail_at(at, "an offset must be an integer");
      *out = static_cast<int64_t>(static_cast<uint64_t>(*out) + value.bits);
    }
    return true;
  }

  // Elements of a vector and coordinates of an address: PTX nests no deeper than [texture, {x, y}].
  bool vector(Operand* out) {
    out->kind = OperandKind::Vector;
    cursor_.take();
    do {
      Operand element;
      if (cursor_.peek().is('{')) return cursor_.fail("a vector cannot contain vectors");
      if (cursor_.peek().is('[')) return cursor_.fail("a vector cannot contain addresses");
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
      if (scopes_.find_register(name, &out->reg)) {
        out->base_is_register = true;
      } else {
        if (name[0] == '%') return cursor_.fail_at(at, "this register is not declared");
        out->name = scopes_.variable(name);
      }
      if (!offset(&out->offset)) return false;
    }
    while (cursor_.accept(',')) {
      Operand coordinate;
      if (cursor_.peek().is('[')) return cursor_.fail("an address cannot contain addresses");
      if (!parse_operand(&coordinate)) return false;
      out->elements.push_back(std::move(coordinate));
    }
    return cursor_.expect(']');
  }

  const Function& function_;
  Cursor cursor_;
  Body body_;
  Scopes scopes_{body_};
  std::vector<ViewScope> view_scopes_ = std::vector<ViewScope>(1);  // as deep as scopes_
  SourceLine source_;
  SourcePoint caller_;  // of the function that source_ was inlined from; file 0: it is not inlined
  static constexpr uint32_t kMostInlined = 64;  // broken input may go in circles
  std::map<SourcePoint, SourcePoint> inlined_from_;
  std::map<SourcePoint, uint32_t> call_of_;  // SourceLine::call, the latest
  std::map<InlinedCall, uint32_t> calls_;    // where they are in the body
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
