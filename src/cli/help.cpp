// SPDX-License-Identifier: Apache-2.0
// How does --help fit the reader's window?
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace kiln::cli {

namespace {

constexpr size_t kNames = 28;  // what stands before a description
constexpr size_t kNarrowest = 60, kWidest = 110;

}  // namespace

HelpForm::HelpForm(size_t columns) : columns_(std::clamp(columns, kNarrowest, kWidest)) {
  column_width(kNames);
}

// CLI11 puts an empty line before a group and another between two.
std::string HelpForm::make_group(std::string group, bool is_positional,
                                 std::vector<const CLI::Option*> options) const {
  const bool first = is_positional || group == "Options";
  std::string made =
      CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  if (!first && made.starts_with('\n')) made.erase(0, 1);
  return made;
}

std::string HelpForm::make_option(const CLI::Option* option, bool is_positional) const {
  std::string line = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  std::string out;
  const auto end_line = [&] {
    out += line + "\n";
    line.clear();
  };
  if (line.size() + 1 > kNames) end_line();
  const std::string description = make_option_desc(option);
  for (std::string_view word : text::split(description, ' ')) {
    if (line.size() > kNames && line.size() + 1 + word.size() > columns_) end_line();
    if (line.size() < kNames)
      line.resize(kNames, ' ');
    else
      line += ' ';
    line += word;
  }
  end_line();
  return out;
}

}  // namespace kiln::cli
