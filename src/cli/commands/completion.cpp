// SPDX-License-Identifier: Apache-2.0
// `kiln completion`: how does a shell learn kiln's commands and options?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "cli/globals.h"
#include "cli/options.h"
#include "cli/usage.h"

namespace kiln::cli {
namespace completion_cli {
namespace {

struct Choice {
  std::string long_name, short_name, text;
  bool takes_value = false;
};

struct Row {
  std::string name, summary;
  std::vector<Choice> options;
  std::vector<Row> subcommands;  // of kiln cache

  std::vector<std::string> words() const {
    std::vector<std::string> out;
    for (const Choice& one : options) {
      if (!one.long_name.empty()) out.push_back("--" + one.long_name);
      if (!one.short_name.empty()) out.push_back("-" + one.short_name);
    }
    return out;
  }
};

std::string names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return text::join(names, " ");
}

void add_choices(const CLI::App& app, std::vector<Choice>& to) {
  for (const CLI::Option* option : app.get_options()) {
    if (!is_shown(*option) || option->get_positional()) continue;
    if (app.get_parent() && option == app.get_help_ptr()) continue;  // the command has it
    Choice one;
    if (!option->get_lnames().empty()) one.long_name = option->get_lnames().front();
    if (!option->get_snames().empty()) one.short_name = option->get_snames().front();
    one.text = option->get_description();
    one.takes_value = option->get_items_expected_max() > 0;
    to.push_back(std::move(one));
  }
}

// From the options themselves, so that a new one needs no second list.
std::vector<Row> rows() {
  std::vector<Row> out;
  for (const Command* command : commands()) {
    CLI::App app;
    command->setup(app);
    Globals unused;
    add_global_options(app, unused);
    Row row{command->name, command->summary, {}, {}};
    add_choices(app, row.options);
    for (const CLI::App* sub : app.get_subcommands({})) {
      row.subcommands.push_back({sub->get_name(), sub->get_description(), {}, {}});
      add_choices(*sub, row.subcommands.back().options);
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::string bash_script() {
  const std::vector<Row> all = rows();
  std::string cases;
  for (const Row& row : all) {
    for (const Row& sub : row.subcommands)
      cases += fmt::format("    {}/{}) options=\"{} {}\" ;;\n", row.name, sub.name,
                           text::join(sub.words(), " "), text::join(row.words(), " "));
    cases += fmt::format("    {}/*) options=\"{}\"", row.name, text::join(row.words(), " "));
    if (!row.subcommands.empty()) cases += fmt::format(" names=\"{}\"", names_of(row.subcommands));
    cases += " ;;\n";
  }
  return fmt::format(R"(# bash completion of kiln: source <(kiln completion bash)
_kiln() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options="" names=""
  local commands="{}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$commands help --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}/${{COMP_WORDS[2]}}" in
{}    help/*) names="$commands" ;;
  esac
  [ "$COMP_CWORD" -eq 2 ] || names=""
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *)
      if [ -n "$names" ]; then
        COMPREPLY=($(compgen -W "$names" -- "$word"))
      else
        COMPREPLY=($(compgen -f -- "$word"))
      fi
      ;;
  esac
}}
complete -o filenames -F _kiln kiln
)",
                     names_of(all), cases);
}

// 'name:summary', a line each: what zsh's _describe takes.
std::string zsh_names(const std::vector<Row>& rows, const char* indent) {
  std::string out;
  for (const Row& row : rows)
    out +=
        fmt::format("{}'{}:{}'\n", indent, row.name, text::replace_all(row.summary, "'", "'\\''"));
  return out;
}

std::string zsh_script() {
  const std::vector<Row> all = rows();
  std::string cases, named;
  for (const Row& row : all) {
    for (const Row& sub : row.subcommands)
      cases += fmt::format("    {}/{}) compadd -- {} {} ;;\n", row.name, sub.name,
                           text::join(sub.words(), " "), text::join(row.words(), " "));
    cases += fmt::format("    {}/*) compadd -- {} ;;\n", row.name, text::join(row.words(), " "));
    if (!row.subcommands.empty())
      named += fmt::format("      {})\n        names=(\n{}        )\n        ;;\n", row.name,
                           zsh_names(row.subcommands, "          "));
  }
  return fmt::format(R"(#compdef kiln
# zsh completion of kiln: source <(kiln completion zsh)
_kiln() {{
  local -a commands names
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  if [[ "$words[CURRENT]" != -* ]]; then
    case "$words[2]" in
{}      help) names=($commands) ;;
    esac
    if (( CURRENT == 3 && $#names )); then
      _describe 'command' names
    else
      _files
    fi
    return
  fi
  case "$words[2]/$words[3]" in
{}  esac
}}
compdef _kiln kiln
)",
                     zsh_names(all, "    "), named, cases);
}

// Within single quotes of fish.
std::string fish_quoted(const std::string& text) {
  return "'" + text::replace_all(text::replace_all(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_options(const Row& row, const std::string& condition) {
  std::string out;
  for (const Choice& one : row.options) {
    out += fmt::format("complete -c kiln -n '{}'", condition);
    if (!one.long_name.empty()) out += " -l " + one.long_name;
    if (!one.short_name.empty()) out += " -s " + one.short_name;
    out += fmt::format("{} -d {}\n", one.takes_value ? " -r" : "", fish_quoted(one.text));
  }
  return out;
}

std::string fish_script() {
  const std::vector<Row> all = rows();
  std::string out =
      "# fish completion of kiln: kiln completion fish | source\n"
      "complete -c kiln -n __fish_use_subcommand -f\n";
  for (const Row& row : all)
    out += fmt::format("complete -c kiln -n __fish_use_subcommand -a {} -d {}\n", row.name,
                       fish_quoted(row.summary));
  out += fmt::format("complete -c kiln -n '__fish_seen_subcommand_from help' -f -a '{}'\n",
                     names_of(all));
  for (const Row& row : all) {
    const std::string seen = "__fish_seen_subcommand_from " + row.name;
    out += fish_options(row, seen);
    const std::string none =
        fmt::format("{}; and not __fish_seen_subcommand_from {}", seen, names_of(row.subcommands));
    for (const Row& sub : row.subcommands)
      out += fmt::format("complete -c kiln -n '{}' -f -a {} -d {}\n", none, sub.name,
                         fish_quoted(sub.summary)) +
             fish_options(sub, seen + "; and __fish_seen_subcommand_from " + sub.name);
  }
  return out;
}

Run setup(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(one_of({"bash", "zsh", "fish"}));
  app.footer(
      "bash: source <(kiln completion bash)   zsh: source <(kiln completion zsh)\n"
      "fish: kiln completion fish | source");
  return [shell](Context& context) -> Result<int> {
    std::string script = *shell == "bash"  ? bash_script()
                         : *shell == "zsh" ? zsh_script()
                                           : fish_script();
    if (context.json)
      context.print_json(Json{{"shell", *shell}, {"script", script}});
    else
      context.print(script);
    return 0;
  };
}

}  // namespace
}  // namespace completion_cli

const Command completion_command = {"completion", "Print the completion script for a shell",
                                    completion_cli::setup};

}  // namespace kiln::cli
