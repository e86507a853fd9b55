// SPDX-License-Identifier: Apache-2.0
// How is PTX text cut into tokens?
#include "ptx/lexer.h"

#include <cstring>

namespace kiln::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

}  // namespace

bool Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && text_.substr(at_, 2) == "//") {
      size_t end = text_.find('\n', at_);
      at_ = end == text_.npos ? text_.size() : end;
    } else if (c == '/' && text_.substr(at_, 2) == "/*") {
      size_t end = text_.find("*/", at_ + 2);
      if (end == text_.npos) return false;
      for (size_t i = at_; i < end; ++i) {
        if (text_[i] == '\n') {
          ++line_;
          line_start_ = i + 1;
        }
      }
      at_ = end + 2;
    } else {
      break;
    }
  }
  return true;
}

Token Lexer::make(TokenKind kind, size_t begin, size_t skip_front, size_t skip_back) {
  return {kind, text_.substr(begin + skip_front, at_ - begin - skip_front - skip_back), line_,
          static_cast<uint32_t>(begin - line_start_ + 1)};
}

Token Lexer::next() {
  if (!skip_blanks()) {
    size_t begin = at_;
    at_ = text_.size();
    return {TokenKind::Malformed, text_.substr(begin, 2), line_,
            static_cast<uint32_t>(begin - line_start_ + 1)};
  }
  size_t begin = at_;
  // PTX inside a fat binary ends in a NUL.
  if (at_ >= text_.size() || text_[at_] == '\0') {
    at_ = text_.size();
    return make(TokenKind::End, at_, 0, 0);
  }
  char c = text_[at_];
  if (is_name_start(c)) {
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    return make(TokenKind::Word, begin, 0, 0);
  }
  if (c == '.' && at_ + 1 < text_.size() && is_name_part(text_[at_ + 1])) {
    ++at_;
    while (at_ < text_.size()) {
      if (is_name_part(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_, 2) == "::") {
        at_ += 2;
      } else {
        break;
      }
    }
    return make(TokenKind::Dotted, begin, 1, 0);
  }
  if (is_digit(c)) {
    bool hex = text_.substr(at_, 2) == "0x" || text_.substr(at_, 2) == "0X";
    while (at_ < text_.size()) {
      char d = text_[at_];
      bool exponent_sign = !hex && (d == '+' || d == '-') &&
                           (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
                           text_.substr(begin, at_ - begin).find('.') != std::string_view::npos;
      // "20." is a number too, and stands in inline assembly.
      bool fraction = d == '.' && !hex && at_ + 1 < text_.size() &&
                      (is_digit(text_[at_ + 1]) || !is_name_part(text_[at_ + 1])) &&
                      text_.substr(begin, at_ - begin).find('.') == std::string_view::npos;
      if (!is_digit(d) && !is_name_start(d) && !exponent_sign && !fraction) break;
      ++at_;
    }
    return make(TokenKind::Number, begin, 0, 0);
  }
  if (c == '"') {
    size_t end = text_.find('"', at_ + 1);
    if (end == text_.npos || text_.substr(at_, end - at_).find('\n') != text_.npos) {
      at_ = text_.size();
      return {TokenKind::Malformed, text_.substr(begin, 1), line_,
              static_cast<uint32_t>(begin - line_start_ + 1)};
    }
    at_ = end + 1;
    return make(TokenKind::String, begin, 1, 1);
  }
  ++at_;
  bool known = std::strchr("{}[](),;:|!+-<>=@&?~*", c) != nullptr;
  return make(known ? TokenKind::Symbol : TokenKind::Malformed, begin, 0, 0);
}

}  // namespace kiln::ptx
