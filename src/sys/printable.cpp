// SPDX-License-Identifier: Apache-2.0
// How does a text from outside reach a terminal?
#include "sys/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::sys {

namespace {

// The length of one of kiln's own styles at the beginning of the text, else 0. Of the numbers that
// a style can have, 8 would hide what follows and 7 turn it over.
size_t style_length(std::string_view text) {
  for (std::string_view style : {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m",
                                 "\x1b[33m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m"})
    if (text.starts_with(style)) return style.size();
  return 0;
}

// The length of the UTF-8 character at the beginning, 0 where there is none (RFC 3629).
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

// U+009b begins a sequence as ESC [ does.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 2)
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return character.size() == 1 && (first < 0x20 || first == 0x7f) && first != '\n' && first != '\t';
}

}  // namespace

std::string printable(std::string_view text) {
  const auto is_plain = [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'; };
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto run =
        static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    size_t length = text[0] == '\x1b' ? style_length(text) : character_length(text);
    const bool kept = length > 0 && !is_control(text.substr(0, length));
    length = std::max<size_t>(length, 1);
    if (kept)
      out.append(text.substr(0, length));
    else if (!text.starts_with("\r\n"))  // a compiler quotes sources as they are
      for (char c : text.substr(0, length))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(length);
  }
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (; !json.empty(); json.remove_prefix(1)) {
    const size_t length = character_length(json);
    const auto last = static_cast<unsigned char>(json[length > 1 ? 1 : 0]);
    const bool control = json[0] == 0x7f || (length == 2 && is_control(json.substr(0, 2)));
    if (!control) {
      out += json[0];
      continue;
    }
    out += fmt::format("\\u{:04x}", last);
    json.remove_prefix(length - 1);
  }
  return out;
}

}  // namespace kiln::sys
