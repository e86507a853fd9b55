// SPDX-License-Identifier: Apache-2.0
// Why did a build or a measurement fail, in one line for a table?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace kiln::tune {

// The first line, cut where it is very long.
std::string first_line(const std::string& text);
// "error: static assertion failed" of a compiler's log in answer["error"]["why"], else the first
// line.
std::string reason_of(const Json& answer);
// The line of that log with this part; "" if there is none.
std::string line_with(const Json& answer, std::string_view part);

// Of what a worker answered, which may be anything: the text or the number under a key, or what
// stands for none.
std::string text_in(const Json& answer, const char* key, std::string fallback = "");
std::optional<double> number_in(const Json& answer, const char* key);
// {"error": {...}} of an answer, or {}.
Json error_in(const Json& answer);
// The answer as it came, cut: for a message.
std::string excerpt(std::string_view answer);

}  // namespace kiln::tune
