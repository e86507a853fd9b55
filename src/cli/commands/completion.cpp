// SPDX-License-Identifier: Apache-2.0
// `kiln completion`: how does a shell learn kiln's commands and options?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/command.h"

namespace kiln::cli {
namespace completion_cli {
namespace {

struct Row {
  std::string name, summary;
  std::vector<std::string> options;
};

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// From the options themselves, so that a new one needs no second list.
std::vector<Row> rows() {
  std::vector<Row> out;
  for (const Command* command : commands()) {
    CLI::App app;
    command->setup(app);
    Row row{command->name, command->summary, option_names(app)};
    for (const char* global : {"--json", "--verbose", "-v", "--color"})
      row.options.emplace_back(global);
    out.push_back(std::move(row));
  }
  return out;
}

std::string bash_script() {
  std::string names, cases;
  for (const Row& row : rows()) {
    names += (names.empty() ? "" : " ") + row.name;
    cases += fmt::format("    {}) options=\"{}\" ;;\n", row.name, text::join(row.options, " "));
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
    cases += fmt::format("    {}) compadd -- {} ;;\n", row.name, text::join(row.options, " "));
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

Run setup(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh"}).description(""));
  return [shell](Context& context) -> Result<int> {
    std::string script = *shell == "bash" ? bash_script() : zsh_script();
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
