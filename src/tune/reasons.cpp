// SPDX-License-Identifier: Apache-2.0
#include "tune/reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
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

namespace {

// "1.2.3" counts as 1.2.
double value_of(const std::string& number) {
  size_t used = 0;
  return leading_number(number, &used);
}

}  // namespace

std::vector<std::string> said_once(const std::vector<std::string>& texts) {
  struct Numbers {
    std::vector<std::string> least, most;
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::vector<std::pair<std::vector<std::string>, Numbers>>
      groups;  // the words between the numbers
  for (const std::string& text : texts) {
    std::vector<std::string> words{""}, numbers;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() &&
             (is_digit(text[end]) ||
              (end > at && text[end] == '.' && end + 1 < text.size() && is_digit(text[end + 1]))))
        end++;
      if (end == at) {
        words.back() += text[at++];
      } else {
        numbers.push_back(text.substr(at, end - at));
        words.emplace_back();
        at = end;
      }
    }
    const auto found =
        std::ranges::find(groups, words, [](const auto& group) { return group.first; });
    if (found == groups.end()) {
      groups.emplace_back(std::move(words), Numbers{numbers, numbers});
      continue;
    }
    auto& [least, most] = found->second;
    for (size_t i = 0; i < numbers.size(); i++) {
      if (value_of(numbers[i]) < value_of(least[i])) least[i] = numbers[i];
      if (value_of(numbers[i]) > value_of(most[i])) most[i] = numbers[i];
    }
  }
  std::vector<std::string> once;
  for (const auto& [words, numbers] : groups) {
    std::string text = words[0];
    for (size_t i = 0; i < numbers.least.size(); i++) {
      text += numbers.least[i];
      if (numbers.most[i] != numbers.least[i]) text += "-" + numbers.most[i];
      text += words[i + 1];
    }
    once.push_back(std::move(text));
  }
  return once;
}

}  // namespace kiln::tune
