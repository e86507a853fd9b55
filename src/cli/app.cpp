// SPDX-License-Identifier: Apache-2.0
// How does a command line become one command's run, its output and an exit code?
#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/step.h"
#include "cli/watch.h"
#include "sys/printable.h"

namespace kiln::cli {

std::span<const Command* const> commands() {
  static constexpr const Command* kCommands[] = {
#define KILN_COMMAND(name) &name##_command,
#include "cli/commands.def"
#undef KILN_COMMAND
  };
  return kCommands;
}

void Context::print(std::string_view text) const { sys::write_out(sys::printable(text)); }
void Context::print_json(const Json& value) const {
  sys::write_out(sys::printable_json(dump(value, 2)) + "\n");
}
void Context::note(std::string_view text) const { sys::write_err(sys::printable(text) + "\n"); }

namespace {

constexpr size_t kPipeColumns = 100;  // of a help text that goes to no terminal

struct Globals {
  bool json = false;
  bool verbose = false;
  sys::ColorChoice color = sys::ColorChoice::Auto;
};

sys::ColorChoice color_choice(const std::string& when) {
  if (when == "always") return sys::ColorChoice::Always;
  if (when == "never") return sys::ColorChoice::Never;
  if (when != "auto")
    throw CLI::ValidationError("--color", "'" + when + "' is not one of auto, always, never");
  return sys::ColorChoice::Auto;
}

void add_globals(CLI::App& app, Globals& globals) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", "kiln " KILN_VERSION_STRING, "Print the version and exit");
  app.add_flag("--json", globals.json, "Print the result as one JSON value on stdout");
  app.add_flag("-v,--verbose", globals.verbose, "Print more: command lines, what was found where");
  app.add_option_function<std::string>(
         "--color", [&globals](const std::string& when) { globals.color = color_choice(when); },
         "auto, always or never")
      ->type_name("WHEN");
}

// A compiler's text goes first and unchanged, so that editors find file and line; kiln's form with
// its first line follows.
std::string for_people(Error error, bool color) {
  std::string text;
  if (size_t first_line = error.why.find('\n'); first_line != std::string::npos) {
    text = error.why + (error.why.ends_with('\n') ? "" : "\n");
    error.why.resize(first_line);
  }
  std::string form = format(error) + "\n";
  if (color) form.replace(0, 6, "\x1b[1;31merror:\x1b[0m");
  return text + form;
}

int report(Error error, bool json, bool color) {
  if (error.fault == Fault::Bug && error.fix.empty())
    error.fix = "please report it with the command line";
  if (json) sys::write_out(sys::printable_json(dump(to_json(error), 2)) + "\n");
  sys::write_err(sys::printable(for_people(error, color)));
  return static_cast<int>(error.fault);
}

// CLI11 knows what is wrong, we know whom to ask.
Error usage_error(const CLI::ParseError& e, const CLI::App& app,
                  const std::vector<std::string>& words) {
  std::string command = "kiln";
  for (const CLI::App* used : app.get_subcommands()) command += " " + used->get_name();
  Error error{Fault::Usage, "cannot read the command line", e.what(), command + " --help"};
  std::replace(error.why.begin(), error.why.end(), '\n', ' ');
  auto word = std::find_if(words.begin(), words.end(),
                           [](const std::string& w) { return !w.starts_with('-'); });
  if (command != "kiln" || word == words.end()) return error;
  std::vector<std::string> names;
  for (const Command* row : commands()) names.emplace_back(row->name);
  error.what = fmt::format("kiln has no command '{}'", *word);
  error.why = "its commands are " + text::join(names, ", ");
  if (auto meant = text::closest(*word, names)) error.fix = "kiln " + *meant;
  return error;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  sys::Environment env = sys::Environment::of_this_process();
  Globals globals;
  // Known before parsing, for the errors of parsing itself.
  auto end_of_options = std::find(words.begin(), words.end(), "--");
  bool json_asked = std::find(words.begin(), end_of_options, "--json") != end_of_options;
  try {
    if (words.size() == 2 && words[0] == "step") return run_build_step(words[1], env);
    CLI::App app("From a .cu file to a PyTorch operator, and everything around it.", "kiln");
    add_globals(app, globals);
    app.require_subcommand(1);
    const sys::Terminal terminal = sys::look_at_terminal(env, globals.color);
    app.formatter(std::make_shared<HelpForm>(
        terminal.out_is_terminal ? static_cast<size_t>(terminal.columns) : kPipeColumns));
    app.footer(
        "Run kiln COMMAND --help for details. Exit codes: 0 done, 1 the work failed, 2 usage or "
        "kiln.toml,\n"
        "3 environment, 4 a bug in kiln, 130 interrupted.");
    std::map<const CLI::App*, Run> runs;
    for (const Command* row : commands()) {
      CLI::App* sub = app.add_subcommand(row->name, row->summary);
      sub->fallthrough();
      runs[sub] = row->setup(*sub);
    }
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& e) {
      return app.exit(e);
    } catch (const CLI::ParseError& e) {
      return report(usage_error(e, app, words), json_asked,
                    sys::look_at_terminal(env, globals.color).color_err);
    }
    if (std::find(words.begin(), end_of_options, "--watch") != end_of_options) {
      Result<int> code = watch(words, env);
      return code ? *code : report(code.error(), json_asked, false);
    }
    std::error_code no_folder;
    std::filesystem::path directory = std::filesystem::current_path(no_folder);
    if (no_folder)
      return report({Fault::Environment, "cannot determine the working folder", no_folder.message(),
                     "cd to one that exists"},
                    json_asked, false);
    // Again: --color is known now.
    const sys::Terminal chosen = sys::look_at_terminal(env, globals.color);
    Context context{.json = globals.json,
                    .verbose = globals.verbose,
                    .terminal = chosen,
                    .directory = std::move(directory),
                    .env = std::move(env)};
    Result<int> code = runs[app.get_subcommands().front()](context);
    return code ? *code : report(code.error(), context.json, context.terminal.color_err);
  } catch (const std::exception& e) {
    return report({Fault::Bug, "kiln reached an unexpected state", e.what(), ""}, json_asked,
                  false);
  }
}

}  // namespace kiln::cli
