// SPDX-License-Identifier: Apache-2.0
// Which part of a key is not what it was?
#include "build/cache/key_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace kiln::build {

namespace {

using Words = std::vector<std::string>;

// A line for people: what differs beyond that is seldom a surprise, and `kiln cache compare` tells
// all of it.
constexpr size_t kMostTold = 4;

Words sorted_words(const Json& commands) {
  Words words;
  if (!commands.is_array()) return words;
  for (const Json& command : commands)
    if (command.is_object() && command.contains("words") && command["words"].is_array())
      for (const Json& word : command["words"])
        if (word.is_string()) words.push_back(word);
  std::sort(words.begin(), words.end());
  return words;
}

void compare_commands(const Json& former, const Json& now, Words& told) {
  const Words before = sorted_words(former), after = sorted_words(now);
  Words gone, come;
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(gone));
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(come));
  // The same word of several commands is one difference.
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  come.erase(std::unique(come.begin(), come.end()), come.end());
  for (size_t i = 0; i < std::max(gone.size(), come.size()); ++i) {
    if (gone.size() == come.size())
      told.push_back(fmt::format("{} is now {}", gone[i], come[i]));
    else if (i < come.size())
      told.push_back(come[i] + " is new");
    if (gone.size() != come.size() && i < gone.size()) told.push_back(gone[i] + " is gone");
  }
  if (gone.empty() && come.empty() && former != now)
    told.emplace_back("the order of the flags changed");
}

void compare_names(const Json& former, const Json& now, Words& told) {
  if (!former.is_object() || !now.is_object()) return;
  for (const auto& [name, value] : now.items())
    if (!former.contains(name))
      told.push_back(name + " is new");
    else if (former[name] != value)
      told.push_back(name + " changed");
  for (const auto& [name, value] : former.items())
    if (!now.contains(name)) told.push_back(name + " is gone");
}

}  // namespace

std::string what_differs(const Json& former, const Json& now) {
  if (!former.is_object() || !now.is_object() || former == now) return "";
  Words told;
  for (const auto& [part, value] : now.items()) {
    const Json before = former.contains(part) ? former[part] : Json();
    if (before == value) continue;
    const size_t told_before = told.size();
    if (part == "commands")
      compare_commands(before, value, told);
    else
      compare_names(before, value, told);
    if (told.size() == told_before)
      told.push_back(before.is_string() && value.is_string() && part == "kiln"
                         ? fmt::format("kiln {} is now {}", before.get<std::string>(),
                                       value.get<std::string>())
                         : fmt::format("{} changed", part));
  }
  if (told.size() > kMostTold) {
    std::string more = fmt::format("{} more", told.size() - kMostTold);
    told.resize(kMostTold);
    told.push_back(std::move(more));
  }
  return text::join(told, ", ");
}

}  // namespace kiln::build
