// SPDX-License-Identifier: Apache-2.0
#include "tune/reasons.h"

#include <algorithm>

#include "base/text.h"

namespace kiln::tune {

namespace {

constexpr size_t kLongestReason = 300;

Json error_in(const Json& answer) {
  return answer.contains("error") && answer["error"].is_object() ? answer["error"] : Json::object();
}

}  // namespace

std::string first_line(const std::string& text) {
  const size_t end = text.find('\n');
  return text.substr(0, std::min({end, text.size(), kLongestReason}));
}

std::string reason_of(const Json& answer) {
  const Json error = error_in(answer);
  const std::string why = error.value("why", ""), what = error.value("what", "it failed");
  for (std::string_view line : text::lines(why)) {
    const size_t at = line.find("error");
    if (at != std::string_view::npos) return first_line(std::string(text::trim(line)));
  }
  return first_line(why.empty() ? what : what + ": " + why);
}

std::string line_with(const Json& answer, std::string_view part) {
  const Json error = error_in(answer);
  const std::string why = error.value("why", "");
  for (std::string_view line : text::lines(why))
    if (line.find(part) != std::string_view::npos) return first_line(std::string(text::trim(line)));
  return "";
}

}  // namespace kiln::tune
