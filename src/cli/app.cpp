// SPDX-License-Identifier: Apache-2.0
// How does a command line become one command's run, its output and an exit code?
#include "cli/app.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/as_written.h"
#include "cli/command.h"
#include "cli/globals.h"
#include "cli/help.h"
#include "cli/progress.h"
#include "cli/step.h"
#include "cli/usage.h"
#include "cli/watch.h"
#include "cli/words.h"
#include "sys/printable.h"

namespace kiln::cli {

namespace fs = std::filesystem;

std::span<const Command* const> commands() {
  static constexpr const Command* kCommands[] = {
#define KILN_COMMAND(name) &name##_command,
#include "cli/commands.def"
#undef KILN_COMMAND
  };
  return kCommands;
}

void Context::print(std::string_view text) const {
  if (progress) progress->clear();
  sys::write_out(sys::printable(text));
}
void Context::print_json(const Json& value) const {
  if (progress) progress->clear();
  sys::write_out(sys::printable_json(dump(value, 2)) + "\n");
}
void Context::note(std::string_view text) const {
  if (!quiet) warn(text);
}
void Context::warn(std::string_view text) const {
  if (progress) progress->clear();
  sys::write_err(sys::printable(text) + "\n");
}
void Context::doing(std::string what) const {
  if (progress) progress->doing(std::move(what));
}
void Context::end_progress() const {
  if (progress) progress->end();
}

namespace {

constexpr size_t kPipeColumns = 100;  // of a help text that goes to no terminal

// A compiler's text goes first and unchanged, so that editors find file and line; kiln's form with
// its first line follows. An op's own message and its place are short: they stay where they are.
std::string for_people(Error error, bool color) {
  std::string text;
  size_t first_line = error.why.find('\n');
  if (first_line != std::string::npos &&
      !std::string_view(error.why).substr(first_line + 1).starts_with("  at: ")) {
    text = error.why + (error.why.ends_with('\n') ? "" : "\n");
    error.why.resize(first_line);
  }
  std::string form = format(error) + "\n";
  if (color) form.replace(0, 6, "\x1b[1;31merror:\x1b[0m");
  return text + form;
}

size_t help_columns(const sys::Environment& env) {
  const sys::Terminal terminal = sys::look_at_terminal(env, sys::ColorChoice::Auto);
  return terminal.out_is_terminal ? static_cast<size_t>(terminal.columns) : kPipeColumns;
}

// What `kiln` does when no command is named: help, the version, or what is wrong.
Result<int> run_without_command(const std::vector<std::string>& words,
                                const sys::Environment& env) {
  CLI::App app("From a .cu file to a PyTorch operator, and everything around it.", "kiln");
  Globals globals;
  add_global_options(app, globals);
  bool version = false;
  app.add_flag("--version", version, "Print the version and exit")->group(kGlobalGroup);
  const Command none{"", "", nullptr};
  TRY(Prepared prepared, prepare_words(none, app, words));
  std::reverse(prepared.words.begin(), prepared.words.end());
  try {
    app.parse(prepared.words);
  } catch (const CLI::Success&) {  // --help is what it does anyway
  } catch (const CLI::ParseError& e) {
    return parse_error(e, app);
  }
  sys::write_out(version ? "kiln " KILN_VERSION_STRING "\n" : main_help(app, help_columns(env)));
  return 0;
}

const Command* find_command(const std::string& name) {
  for (const Command* row : commands())
    if (name == row->name) return row;
  return nullptr;
}

// `kiln help bench` is `kiln bench --help`.
std::vector<std::string> without_help_word(std::vector<std::string> words) {
  const size_t at = command_at(words);
  if (at == words.size() || words[at] != "help") return words;
  words.erase(words.begin() + static_cast<ptrdiff_t>(at));
  words.emplace_back("--help");
  return words;
}

const CLI::App& asked_for_help(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

// Nobody looks at a pipe; a terminal that cannot move its cursor would show every line.
std::shared_ptr<Progress> progress_for(const Globals& globals, const sys::Terminal& terminal,
                                       const sys::Environment& env) {
  if (globals.quiet || env.get("TERM").value_or("") == "dumb") return nullptr;
  if (auto fd = env.get(kProgressVariable))
    if (auto number = text::to_int(*fd);
        number && *number > 2 && ::isatty(static_cast<int>(*number)))
      return std::make_shared<Progress>(static_cast<int>(*number), terminal.columns);
  if (!terminal.err_is_terminal || globals.json) return nullptr;
  return std::make_shared<Progress>(STDERR_FILENO, terminal.columns);
}

struct Parsed {
  Run run;
  Globals globals;
  Prepared prepared;
};

Result<int> run_parsed(const Command& command, Parsed parsed,
                       const std::vector<std::string>& all_words, sys::Environment env) {
  const std::vector<std::string>& words = parsed.prepared.words;
  if (!parsed.globals.quiet)
    for (const std::string& note : parsed.prepared.notes) sys::write_err(note + "\n");
  if (std::find(words.begin(), words.end(), "--watch") != words.end()) return watch(all_words, env);
  std::error_code no_folder;
  fs::path directory = fs::current_path(no_folder);
  if (no_folder)
    return Error{Fault::Environment, "cannot determine the working folder", no_folder.message(),
                 "cd to one that exists"};
  const sys::Terminal terminal = sys::look_at_terminal(env, parsed.globals.color);
  Context context{.json = parsed.globals.json,
                  .verbose = parsed.globals.verbose,
                  .quiet = parsed.globals.quiet,
                  .terminal = terminal,
                  .directory = std::move(directory),
                  .env = std::move(env),
                  .rest = std::move(parsed.prepared.rest),
                  .progress = nullptr};
  context.progress = progress_for(parsed.globals, terminal, context.env);
  // A child would write to a terminal that is this process's to write to.
  context.env.unset(kProgressVariable);
  context.doing(fmt::format("kiln {}", command.name));
  Result<int> code = parsed.run(context);
  context.end_progress();
  return code;
}

// Only the command that runs is set up: all of them would cost more than most commands do.
Result<int> run_named_command(std::vector<std::string> words, const sys::Environment& env,
                              Globals& globals) {
  const std::vector<std::string> all_words = words;
  const size_t at = command_at(words);
  const Command* command = find_command(words[at]);
  if (!command) return unknown_command(words[at]);
  words.erase(words.begin() + static_cast<ptrdiff_t>(at));
  CLI::App app(command->summary, std::string("kiln ") + command->name);
  Parsed parsed{command->setup(app), {}, {}};
  add_global_options(app, globals);
  TRY(parsed.prepared, prepare_words(*command, app, words));
  std::vector<std::string> reversed(parsed.prepared.words.rbegin(), parsed.prepared.words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    sys::write_out(help_text(asked_for_help(app), help_columns(env)));
    return 0;
  } catch (const CLI::ParseError& e) {
    return parse_error(e, app);
  }
  parsed.globals = globals;
  return run_parsed(*command, std::move(parsed), all_words, env);
}

}  // namespace

int report_error(Error error, bool json, bool color) {
  if (error.fault == Fault::Bug && error.fix.empty())
    error.fix = "please report it with the command line";
  if (json) sys::write_out(sys::printable_json(dump(to_json(error), 2)) + "\n");
  sys::write_err(sys::printable(for_people(error, color)));
  return static_cast<int>(error.fault);
}

int run_command_line(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  sys::Environment env = sys::Environment::of_this_process();
  Globals globals;
  // Known before parsing, for the errors of parsing itself.
  auto end_of_options = std::find(words.begin(), words.end(), "--");
  const bool json = std::find(words.begin(), end_of_options, "--json") != end_of_options;
  try {
    if (words.size() == 2 && words[0] == "step") return run_build_step(words[1], env);
    words = without_help_word(std::move(words));
    Result<int> code = command_at(words) == words.size() ? run_without_command(words, env)
                                                         : run_named_command(words, env, globals);
    if (code) return *code;
    std::error_code no_folder;
    Error error = as_written(std::move(code.error()), words, fs::current_path(no_folder));
    return report_error(std::move(error), json,
                        sys::look_at_terminal(env, globals.color).color_err);
  } catch (const std::exception& e) {
    return report_error({Fault::Bug, "kiln reached an unexpected state", e.what(), ""}, json,
                        false);
  }
}

}  // namespace kiln::cli
