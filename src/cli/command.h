// SPDX-License-Identifier: Apache-2.0
// What is a command of kiln? A row of this shape. A new one = one file in cli/commands that defines
// `const Command NAME_command` and one line in cli/commands.def.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sys/env.h"
#include "sys/terminal.h"

namespace CLI {
class App;
}

namespace kiln::cli {

class Progress;

// What every command knows about how and where it was started.
struct Context {
  bool json = false;     // --json: exactly one JSON value goes to stdout
  bool verbose = false;  // -v
  bool quiet = false;    // -q
  sys::Terminal terminal;
  std::filesystem::path directory;  // the working directory
  sys::Environment env;
  // What is left for the program or the script that the command runs (Command::passes).
  std::vector<std::string> rest;
  // The line on a terminal that says what is going on; null: nobody is looking.
  std::shared_ptr<Progress> progress;

  // Data for stdout: text in the human form, one JSON value with --json.
  void print(std::string_view text) const;
  void print_json(const Json& value) const;
  // A message for people on stderr, which -q leaves out; a newline is added.
  void note(std::string_view text) const;
  // The same for what -q must not hide.
  void warn(std::string_view text) const;
  // Says what takes long, once that is more than a second: "timing my_add".
  void doing(std::string what) const;
  // No line from here on: something else writes to the terminal.
  void end_progress() const;
};

// The exit code, or why the command failed (then the code is the error's fault).
using Run = std::function<Result<int>(Context&)>;

// Whose words are not kiln's? Nobody's; after "--" those of a program; after FILE.py those of a
// script.
enum class Passes { Nothing, ToProgram, ToScript };

struct Command {
  const char* name;
  const char* summary;  // one line for `kiln --help`
  // Adds the options to `app` and returns what runs after they were parsed. The options live in
  // what it returns:
  //   auto options = std::make_shared<Options>();
  //   app.add_option("--name", options->name, "...");
  //   return [options](Context& context) { return run(*options, context); };
  Run (*setup)(CLI::App& app);
  Passes passes = Passes::Nothing;
};

#define KILN_COMMAND(name) extern const Command name##_command;
#include "cli/commands.def"
#undef KILN_COMMAND

// All commands, in the order of `kiln --help`.
std::span<const Command* const> commands();

}  // namespace kiln::cli
