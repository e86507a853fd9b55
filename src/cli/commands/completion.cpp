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

  std::vector<std::string> words() const {
    std::vector<std::string> out;
    for (const Choice& one : options) {
      if (!one.long_name.empty()) out.push_back("--" + one.long_name);
      if (!one.short_name.empty()) out.push_back("-" + one.short_name);
    }
    return out;
  }
};

void add_choices(const CLI::App& app, std::vector<Choice>& to) {
  for (const CLI::Option* option : app.get_options()) {
    if (!is_shown(*option) || option->get_positional()) continue;
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
    Row row{command->name, command->summary, {}};
    add_choices(app, row.options);
    out.push_back(std::move(row));
  }
  return out;
}

std::string bash_script() {
  std::string names, cases;
  for (const Row& row : rows()) {
    names += (names.empty() ? "" : " ") + row.name;
    cases += fmt::format("    {}) options=\"{}\" ;;\n", row.name, text::join(row.words(), " "));
  }
  return fmt::format(R"(# bash completion of kiln: source <(kiln completion bash)
_kiln() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _kiln kiln
)",
                     names, cases);
}

std::string zsh_script() {
  std::string names, cases;
  for (const Row& row : rows()) {
    names += fmt::format("    '{}:{}'\n", row.name, text::replace_all(row.summary, "'", "'\\''"));
    cases += fmt::format("    {}) compadd -- {} ;;\n", row.name, text::join(row.words(), " "));
  }
  return fmt::format(R"(#compdef kiln
# zsh completion of kiln: source <(kiln completion zsh)
_kiln() {{
  local -a names
  names=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'command' names
    return
  fi
  if [[ "$words[CURRENT]" != -* ]]; then
    _files
    return
  fi
  case "$words[2]" in
{}  esac
}}
compdef _kiln kiln
)",
                     names, cases);
}

// Within single quotes of fish.
std::string fish_quoted(const std::string& text) {
  return "'" + text::replace_all(text::replace_all(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_script() {
  std::string out =
      "# fish completion of kiln: kiln completion fish | source\n"
      "complete -c kiln -n __fish_use_subcommand -f\n";
  for (const Row& row : rows())
    out += fmt::format("complete -c kiln -n __fish_use_subcommand -a {} -d {}\n", row.name,
                       fish_quoted(row.summary));
  for (const Row& row : rows())
    for (const Choice& one : row.options) {
      out += fmt::format("complete -c kiln -n '__fish_seen_subcommand_from {}'", row.name);
      if (!one.long_name.empty()) out += " -l " + one.long_name;
      if (!one.short_name.empty()) out += " -s " + one.short_name;
      out += fmt::format("{} -d {}\n", one.takes_value ? " -r" : "", fish_quoted(one.text));
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
