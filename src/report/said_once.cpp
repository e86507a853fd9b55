// SPDX-License-Identifier: Apache-2.0
// Which of many texts say the same but for their numbers?
#include <algorithm>

#include "base/number.h"
#include "report/tune.h"

namespace kiln::report {
namespace {

// "1.2.3" counts as 1.2.
double value_of(const std::string& number) {
  size_t used = 0;
  return leading_number(number, &used);
}

}  // namespace

// Why: each finalist warns of the same with other numbers, and eight lines that say one thing hide
// the ninth.
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

}  // namespace kiln::report
