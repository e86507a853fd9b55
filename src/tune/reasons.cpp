// SPDX-License-Identifier: Apache-2.0
#include "tune/reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace kiln::tune {

namespace {

constexpr size_t kLongestReason = 300;

}  // namespace

std::string text_in(const Json& answer, const char* key, std::string fallback) {
  const auto found = answer.is_object() ? answer.find(key) : answer.end();
  return found != answer.end() && found->is_string() ? found->get<std::string>()
                                                     : std::move(fallback);
}

std::optional<double> number_in(const Json& answer, const char* key) {
  const auto found = answer.is_object() ? answer.find(key) : answer.end();
  if (found == answer.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

Json error_in(const Json& answer) {
  return answer.contains("error") && answer["error"].is_object() ? answer["error"] : Json::object();
}

std::string excerpt(std::string_view answer) {
  constexpr size_t kShown = 120;
  return fmt::format("'{}'{}", answer.substr(0, kShown), answer.size() > kShown ? "..." : "");
}

std::string first_line(const std::string& text) {
  const size_t end = text.find('\n');
  return text.substr(0, std::min({end, text.size(), kLongestReason}));
}

std::string reason_of(const Json& answer) {
  const Json error = error_in(answer);
  const std::string why = text_in(error, "why"), what = text_in(error, "what", "it failed");
  for (std::string_view line : text::lines(why)) {
    const size_t at = line.find("error");
    if (at != std::string_view::npos) return first_line(std::string(text::trim(line)));
  }
  return first_line(why.empty() ? what : what + ": " + why);
}

std::string line_with(const Json& answer, std::string_view part) {
  const Json error = error_in(answer);
  const std::string why = text_in(error, "why");
  for (std::string_view line : text::lines(why))
    if (line.find(part) != std::string_view::npos) return first_line(std::string(text::trim(line)));
  return "";
}

}  // namespace kiln::tune
