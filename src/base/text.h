// SPDX-License-Identifier: Apache-2.0
// Which small operations on text does kiln need that std lacks?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::text {

std::string_view trim(std::string_view text);
// "a;b" at ';' gives {"a", "b"}; "" gives {""}.
std::vector<std::string_view> split(std::string_view text, char separator);
// The runs between any of the separators; empty ones are left out.
std::vector<std::string_view> split_any(std::string_view text, std::string_view separators);
std::vector<std::string_view> lines(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
std::string lower(std::string_view text);

// The whole text as a number, or nothing.
std::optional<int64_t> to_int(std::string_view text);

// [A-Za-z_][A-Za-z0-9_]*, and no C++ or Python keyword.
bool is_identifier(std::string_view text);
// "my-add 2" gives "my_add_2", "3d" gives "_3d".
std::string to_identifier(std::string_view text);

// The candidate that a mistyped word most likely meant, if one is near enough.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

// Quoted for /bin/sh where it has to be.
std::string shell_quote(std::string_view word);
// Splits as a shell would: blanks separate, quotes and backslashes protect. An open quote ends with
// the text.
std::vector<std::string> shell_split(std::string_view text);

// "820 ms", "1.42 s", "12.3 s", "3 min 5 s": three digits, as time_text has them.
std::string duration(double seconds);

}  // namespace kiln::text
