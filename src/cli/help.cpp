// SPDX-License-Identifier: Apache-2.0
// What does --help print?
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/usage.h"

namespace kiln::cli {
namespace {

constexpr size_t kNames = 28;  // what stands before a description
constexpr size_t kNarrowest = 60, kWidest = 110;

// `names` in its column, the description next to it and kept in its own.
std::string row(const std::string& names, std::string_view description, size_t columns) {
  std::string line = "  " + names, out;
  const auto end_line = [&] {
    out += line + "\n";
    line.clear();
  };
  if (line.size() + 1 > kNames) end_line();
  for (std::string_view word : text::split(description, ' ')) {
    if (line.size() > kNames && line.size() + 1 + word.size() > columns) end_line();
    if (line.size() < kNames)
      line.resize(kNames, ' ');
    else
      line += ' ';
    line += word;
  }
  end_line();
  return out;
}

// "-o, --output FILE".
std::string names_of(const CLI::Option& option) {
  if (option.get_positional())
    return option.get_name(true) + (option.get_items_expected_max() > 1 ? "..." : "");
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = text::join(names, ", ");
  if (option.get_items_expected_max() > 0) text += " " + option.get_type_name();
  return text;
}

std::string group(const CLI::App& app, const std::string& name, size_t columns) {
  std::string rows;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && option->get_group() == name &&
        (option != app.get_help_ptr() || name == kGlobalGroup))
      rows += row(names_of(*option), option->get_description(), columns);
  return rows.empty() ? "" : fmt::format("\n{}:\n{}", name, rows);
}

std::string arguments(const CLI::App& app, size_t columns) {
  std::string rows;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && is_shown(*option))
      rows += row(names_of(*option), option->get_description(), columns);
  return rows.empty() ? "" : "\nArguments:\n" + rows;
}

// In the order in which the command added them; its own and the global ones have their places.
std::vector<std::string> shared_groups(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& name = option->get_group();
    if (name.empty() || name == "Options" || name == kGlobalGroup) continue;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

size_t fitting(size_t columns) { return std::clamp(columns, kNarrowest, kWidest); }

}  // namespace

std::string help_text(const CLI::App& app, size_t columns) {
  columns = fitting(columns);
  std::string out = fmt::format("{}\n\nUsage: {}\n", app.get_description(), usage_line(app));
  std::string below;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    below += row(sub->get_name(), sub->get_description(), columns);
  if (!below.empty()) out += "\nCommands:\n" + below;
  out += arguments(app, columns) + group(app, "Options", columns);
  for (const std::string& name : shared_groups(app)) out += group(app, name, columns);
  const CLI::App* root = &app;
  while (root->get_parent()) root = root->get_parent();
  out += group(*root, kGlobalGroup, columns);
  if (!app.get_footer().empty()) out += "\n" + app.get_footer() + "\n";
  return out;
}

std::string main_help(const CLI::App& app, size_t columns) {
  columns = fitting(columns);
  std::string out =
      fmt::format("{}\n\nUsage: kiln COMMAND [OPTIONS]\n\nCommands:\n", app.get_description());
  for (const Command* command : commands()) out += row(command->name, command->summary, columns);
  return out + group(app, kGlobalGroup, columns) +
         "\nRun kiln COMMAND --help for details. Exit codes: 0 done, 1 the work failed, 2 usage,\n"
         "missing file or kiln.toml, 3 environment, 4 a bug in kiln, 130 interrupted.\n";
}

}  // namespace kiln::cli
