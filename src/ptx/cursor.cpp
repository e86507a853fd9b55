// SPDX-License-Identifier: Apache-2.0
// How are numbers, declarations and lines read, at the level of a module and inside a body alike?
#include "ptx/cursor.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "base/number.h"
#include "ptx/parser.h"

namespace kiln::ptx {

std::optional<Space> space_named(std::string_view name) {
  if (name == "global") return Space::Global;
  if (name == "shared" || name == "shared::cta" || name == "shared::cluster") return Space::Shared;
  if (name == "local") return Space::Local;
  if (name == "param" || name == "param::entry" || name == "param::func") return Space::Param;
  if (name == "const") return Space::Const;
  return std::nullopt;
}

Token Cursor::take() {
  Token taken = current_;
  current_ = after_;
  after_ = current_.kind == TokenKind::End ? current_ : lexer_.next();
  return taken;
}

bool Cursor::accept(char symbol) {
  if (!current_.is(symbol)) return false;
  take();
  return true;
}

bool Cursor::accept_dotted(std::string_view word) {
  if (!current_.is_dotted(word)) return false;
  take();
  return true;
}

bool Cursor::fail_at(const Token& token, std::string why) {
  if (!failed_) {
    failed_ = true;
    std::string seen = token.kind == TokenKind::End ? "the end of the text"
                                                    : fmt::format("'{}'", token.text.substr(0, 40));
    error_ =
        Error{Fault::Work, "cannot read PTX",
              fmt::format("line {}, column {}: {}; got: {}", token.line, token.column, why, seen),
              "compile it again with nvcc"};
  }
  return false;
}

bool Cursor::expect(char symbol) {
  return accept(symbol) || fail(fmt::format("expected '{}'", symbol));
}

bool Cursor::expect_word(std::string_view* text) {
  if (current_.kind != TokenKind::Word) return fail("expected a name");
  *text = take().text;
  return true;
}

bool Cursor::expect_unsigned(uint64_t* value) {
  Operand operand;
  Token at = current_;
  if (!number(&operand)) return false;
  if (operand.kind != OperandKind::Integer) return fail_at(at, "expected an integer");
  *value = operand.bits;
  return true;
}

bool Cursor::skip_to_semicolon() {
  while (!current_.is(';')) {
    if (current_.kind == TokenKind::End || current_.kind == TokenKind::Malformed)
      return fail("expected ';'");
    take();
  }
  take();
  return true;
}

// By from_chars: strtod asks the locale what a decimal point is. The type of an integer decides
// what its sign and its width mean, so the bits are kept as they were written.
bool Cursor::number(Operand* out) {
  bool negative = false;
  while (current_.is('-') || current_.is('+')) negative ^= take().text[0] == '-';
  bool inverted = accept('~');
  if (current_.is_word("WARP_SZ")) {
    take();
    *out = Operand{};
    out->kind = OperandKind::Integer;
    out->bits = 32;
    return true;
  }
  if (current_.kind != TokenKind::Number) return fail("expected a number");
  Token token = current_;
  std::string_view text = token.text;
  auto parse = [&](std::string_view digits, int base, uint64_t* value) {
    auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), *value, base);
    return code == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  };
  out->kind = OperandKind::Integer;
  bool good = false;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
    good = text.size() == 10 && parse(text.substr(2), 16, &out->bits);
    out->kind = OperandKind::Float;
    out->wide = false;
    if (negative) out->bits ^= 0x80000000u;
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
    good = text.size() == 18 && parse(text.substr(2), 16, &out->bits);
    out->kind = OperandKind::Float;
    out->wide = true;
    if (negative) out->bits ^= uint64_t{1} << 63;
  } else if (text.find('.') != text.npos) {
    const std::optional<double> read = to_number(text);
    good = read.has_value();
    const double value = negative ? -read.value_or(0) : read.value_or(0);
    std::memcpy(&out->bits, &value, 8);
    out->kind = OperandKind::Float;
    out->wide = true;
  } else {
    if (text.back() == 'U' || text.back() == 'u') text.remove_suffix(1);
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
      good = parse(text.substr(2), 16, &out->bits);
    } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
      good = parse(text.substr(2), 2, &out->bits);
    } else if (text.size() > 1 && text[0] == '0') {
      good = parse(text.substr(1), 8, &out->bits);
    } else {
      good = parse(text, 10, &out->bits);
    }
    if (negative) out->bits = 0 - out->bits;
    if (inverted) out->bits = ~out->bits;
  }
  if (!good) return fail("invalid PTX number");
  take();
  return true;
}

bool Cursor::declarator(Variable* variable) {
  bool typed = false;
  while (current_.kind == TokenKind::Dotted) {
    Token token = take();
    if (token.text == "align") {
      uint64_t align = 0;
      if (!expect_unsigned(&align)) return false;
      if (align == 0 || align > 4096 || (align & (align - 1)))
        return fail_at(token, "an alignment must be a power of two");
      variable->align = static_cast<uint32_t>(align);
    } else if (token.text == "v2" || token.text == "v4" || token.text == "v8") {
      if (typed) return fail_at(token, "the length of a vector comes before its type");
      variable->vector = static_cast<uint32_t>(token.text[1] - '0');
    } else if (token.text == "ptr") {
      // `.ptr .global .align 16`: what a pointer parameter points to; nothing here depends on it.
      if (current_.kind == TokenKind::Dotted && space_named(current_.text)) take();
      if (accept_dotted("align")) {
        uint64_t ignored = 0;
        if (!expect_unsigned(&ignored)) return false;
      }
    } else if (token.text == "attribute") {
      if (!expect('(')) return false;
      while (!accept(')')) {
        if (current_.is_dotted("managed")) variable->managed = true;
        if (current_.kind == TokenKind::End || current_.is(';')) return fail("expected ')'");
        take();
      }
    } else if (token.text == "texref" || token.text == "surfref" || token.text == "samplerref") {
      variable->type = Type::b64;
      typed = true;
    } else if (auto type = type_named(token.text)) {
      variable->type = *type;
      typed = true;
    } else {
      return fail_at(token, "not a type or attribute of a variable");
    }
  }
  if (!typed) return fail("expected a type");
  variable->align = std::max(variable->align, bytes_of(variable->type) * variable->vector);
  variable->line = current_.line;
  if (!expect_word(&variable->name)) return false;
  while (accept('[')) {
    if (accept(']')) {
      variable->unsized = true;
      variable->count = 0;
      continue;
    }
    uint64_t extent = 0;
    if (!expect_unsigned(&extent) || !expect(']')) return false;
    if (extent > kMaxVariableBytes || variable->count * extent > kMaxVariableBytes) {
      return fail("the variable is too large");
    }
    variable->count *= extent;
  }
  return true;
}

bool Cursor::initial_value(Variable* variable, uint32_t depth) {
  if (depth > 8) return fail("braces nest too deeply");
  if (accept('{')) {
    if (accept('}')) return true;
    do {
      if (!initial_value(variable, depth + 1)) return false;
    } while (accept(','));
    return expect('}');
  }
  InitialValue value;
  if (current_.kind == TokenKind::Word && !current_.is_word("WARP_SZ")) {
    std::string_view word = take().text;
    if (word == "generic" && accept('(')) {
      value.generic = true;
      if (!expect_word(&value.symbol) || !expect(')')) return false;
    } else {
      value.symbol = word;
    }
    if (current_.is('+') || current_.is('-')) {
      Operand offset;
      if (!number(&offset)) return false;
      value.bits = offset.bits;
    }
  } else {
    Operand operand;
    if (!number(&operand)) return false;
    value.bits = operand.bits;
    if (operand.kind == OperandKind::Float && operand.wide && bytes_of(variable->type) == 4) {
      double wide;
      std::memcpy(&wide, &operand.bits, 8);
      float narrow = static_cast<float>(wide);
      value.bits = 0;
      std::memcpy(&value.bits, &narrow, 4);
    }
    if (current_.is('(')) return fail("a mask on an initial value is not supported");
  }
  variable->init.push_back(value);
  return true;
}

bool Cursor::initializer(Variable* variable) {
  if (!accept('=')) return true;
  if (!initial_value(variable, 0)) return false;
  if (variable->unsized) {
    variable->count = variable->init.size() / variable->vector;
    variable->unsized = false;
  }
  if (variable->init.size() > variable->count * variable->vector)
    return fail("more initial values than elements");
  return true;
}

bool Cursor::point_at(SourcePoint* point) {
  uint64_t file = 0, line = 0, column = 0;
  if (!expect_unsigned(&file) || !expect_unsigned(&line) || !expect_unsigned(&column)) return false;
  *point = {static_cast<uint32_t>(file), static_cast<uint32_t>(line),
            static_cast<uint32_t>(column)};
  return true;
}

bool Cursor::location(const Token& at, SourcePoint* point, SourcePoint* caller) {
  *caller = {};
  if (!point_at(point)) return false;
  while (accept(',')) {
    std::string_view word;
    if (!expect_word(&word)) return false;
    if (word == "function_name") {
      if (!expect_word(&word)) return false;
      if (current_.is('+')) {
        Operand offset;
        if (!number(&offset)) return false;
      }
    } else if (word == "inlined_at") {
      if (!point_at(caller)) return false;
    } else {
      return fail_at(at, "unknown attribute of .loc");
    }
    // `function_name X, inlined_at 1 2 3` and `function_name X inlined_at ...` both occur.
    if (current_.is_word("inlined_at")) {
      take();
      if (!point_at(caller)) return false;
    }
  }
  return true;
}

bool Cursor::parameters(std::vector<Variable>* out) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    Token at = current_;
    if (current_.kind != TokenKind::Dotted) return fail("expected .param or .reg");
    Token space = take();
    Variable variable;
    if (space.text == "param") {
      variable.space = Space::Param;
    } else if (space.text == "reg") {
      variable.space = Space::Register;
    } else {
      return fail_at(at, "expected .param or .reg");
    }
    if (!declarator(&variable)) return false;
    out->push_back(std::move(variable));
  } while (accept(','));
  return expect(')');
}

}  // namespace kiln::ptx
