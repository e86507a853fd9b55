// SPDX-License-Identifier: Apache-2.0
// Which ASCII characters are digits, letters and blanks? <cctype> asks the locale of the process.
#pragma once

namespace kiln {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_letter_or_digit(char c) { return is_letter(c) || is_digit(c); }
// Letters, digits and '_': what names consist of.
constexpr bool is_name_part(char c) { return is_letter_or_digit(c) || c == '_'; }
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

}  // namespace kiln
