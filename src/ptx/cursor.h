// SPDX-License-Identifier: Apache-2.0
// Which steps do the readers of a module and of a body share? A window of two tokens, and an error
// that is kept once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"
#include "ptx/lexer.h"
#include "ptx/module.h"

namespace kiln::ptx {

// A place in the source, as .loc names it.
struct SourcePoint {
  uint32_t file = 0, line = 0, column = 0;
  bool operator<(const SourcePoint& other) const {
    return std::tie(file, line, column) < std::tie(other.file, other.line, other.column);
  }
};

class Cursor {
 public:
  Cursor(std::string_view text, uint32_t first_line) : lexer_(text, first_line) {
    current_ = lexer_.next();
    after_ = current_.kind == TokenKind::End ? current_ : lexer_.next();
  }

  const Token& peek() const { return current_; }
  const Token& peek_second() const { return after_; }
  Token take();
  bool accept(char symbol);
  bool accept_dotted(std::string_view word);
  bool expect(char symbol);
  bool expect_word(std::string_view* text);
  bool expect_unsigned(uint64_t* value);
  bool skip_to_semicolon();

  bool fail(std::string why) { return fail_at(current_, std::move(why)); }
  bool fail_at(const Token& token, std::string why);
  bool failed() const { return failed_; }
  Error error() const { return error_; }

  // Integers with an optional sign, floats (0f..., 0d..., 1.5).
  bool number(Operand* out);

  // `.align 8 .b8 name[3][4]`, after the state space; `vector`, `count` and `name` are filled in.
  bool declarator(Variable* variable);
  bool initializer(Variable* variable);
  // `caller`: where the function that the line belongs to was called; file 0 when it was not
  // inlined.
  bool location(const Token& at, SourcePoint* point, SourcePoint* caller);
  bool parameters(std::vector<Variable>* out);

 private:
  bool initial_value(Variable* variable, uint32_t depth);
  bool point_at(SourcePoint* point);  // file, line and column

  Lexer lexer_;
  Token current_;
  Token after_;
  bool failed_ = false;
  Error error_;
};

std::optional<Space> space_named(std::string_view name);

}  // namespace kiln::ptx
