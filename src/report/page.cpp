// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/look.h"

namespace kiln::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// How many bytes the character at the beginning has; 0 when it is not one of UTF-8. Overlong forms,
// surrogates and what is above U+10FFFF are none (RFC 3629).
size_t length_of_character(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  size_t length = 0;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool too_large = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string_view escaped_ascii(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = length_of_character(text.substr(i));
    const char c = text[i];
    if (length == 0)
      out += kReplacement;
    else if (const std::string_view name = escaped_ascii(c); !name.empty())
      out += name;
    else if (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && c != '\n' &&
             c != '\t')
      out += ' ';
    else
      out += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

std::string embedded(const Json& value) {
  std::string out;
  for (const char c : dump(value))
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

std::string shortened(std::string_view text, size_t characters) {
  size_t count = 0, cut = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_continuation(text[i])) continue;
    if (++count == characters) cut = i;
  }
  if (count <= characters) return std::string(text);
  return std::string(text.substr(0, cut)) + "…";
}

std::string page(const PageParts& parts) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n{}<main>\n",
      escape(parts.title), kLook_page_css, parts.style, parts.header);
  out += parts.body;
  out += "\n</main>\n";
  if (!parts.data.is_null())
    out += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                       embedded(parts.data));
  if (!parts.script.empty() || parts.body.find("class=\"sortable\"") != std::string::npos)
    out += fmt::format("<script>\n{}</script>\n", kLook_page_js);
  if (!parts.script.empty()) out += fmt::format("<script>\n{}</script>\n", parts.script);
  return out + "</body>\n</html>\n";
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view columns,
                  std::string_view kind) {
  if (rows.empty()) return "";
  std::string out = fmt::format("<div class=\"wide\"><table{}>\n<thead>",
                                kind.empty() ? "" : fmt::format(" class=\"{}\"", kind));
  for (size_t i = 0; i < rows.size(); ++i) {
    out += "<tr>";
    for (size_t k = 0; k < rows[i].size(); ++k) {
      const bool number = k < columns.size() ? columns[k] == 'n' : k > 0;
      out += fmt::format("<{0}{3}{2}>{1}</{0}>", i == 0 ? "th" : "td", rows[i][k],
                         number ? " class=\"num\"" : "", i == 0 ? " scope=\"col\"" : "");
    }
    out += i == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace kiln::report
