// SPDX-License-Identifier: Apache-2.0
// Which words does PTX text consist of? A pull lexer over untrusted text; tokens are views into it.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::ptx {

enum class TokenKind : uint8_t {
  End,
  Word,      // add, %r1, $L__BB0_2, _Z3addPf, WARP_SZ
  Dotted,    // .global, .s32, .shared::cta; the text is without the dot
  Number,    // 12, -0x1f (the sign is a Symbol), 0f3F800000, 1.5
  String,    // "file.cu"; the text is without the quotes
  Symbol,    // one of { } [ ] ( ) , ; : | ! + - < > = @ & ? ~ *
  Malformed  // an unclosed string or comment, or a byte that PTX does not know
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;
  uint32_t line = 0;    // from 1
  uint32_t column = 0;  // from 1

  bool is(char symbol) const { return kind == TokenKind::Symbol && text[0] == symbol; }
  bool is_word(std::string_view word) const { return kind == TokenKind::Word && text == word; }
  bool is_dotted(std::string_view word) const { return kind == TokenKind::Dotted && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text, uint32_t first_line = 1) : text_(text), line_(first_line) {}
  Token next();
  // Where the next token starts, and its line, so that a function body can be read later.
  size_t offset() const { return at_; }
  uint32_t line() const { return line_; }

 private:
  bool skip_blanks();  // false: an unclosed comment
  Token make(TokenKind kind, size_t begin, size_t skip_front, size_t skip_back);

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

}  // namespace kiln::ptx
