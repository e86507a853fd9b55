// SPDX-License-Identifier: Apache-2.0
// What is a command of kiln? A row of this shape. A new one = one file in cli/commands that defines
// `const Command NAME_command` and one line in cli/commands.def.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "sys/env.h"
#include "sys/terminal.h"

namespace CLI {
class App;
}

namespace kiln::cli {

// What every command knows about how and where it was started.
struct Context {
  bool json = false;     // --json: exactly one JSON value goes to stdout
  bool verbose = false;  // -v
  sys::Terminal terminal;
  std::filesystem::path directory;  // the working directory
  sys::Environment env;

  // Data for stdout: text in the human form, one JSON value with --json.
  void print(std::string_view text) const;
  void print_json(const Json& value) const;
  // A message for people on stderr; a newline is added.
  void note(std::string_view text) const;
};

// The exit code, or why the command failed (then the code is the error's fault).
using Run = std::function<Result<int>(Context&)>;

struct Command {
  const char* name;
  const char* summary;  // one line for `kiln --help`
  // Adds the options to `app` and returns what runs after they were parsed. The options live in
  // what it returns:
  //   auto options = std::make_shared<Options>();
  //   app.add_option("--name", options->name, "...");
  //   return [options](Context& context) { return run(*options, context); };
  Run (*setup)(CLI::App& app);
};

#define KILN_COMMAND(name) extern const Command name##_command;
#include "cli/commands.def"
#undef KILN_COMMAND

// All commands, in the order of `kiln --help`.
std::span<const Command* const> commands();

}  // namespace kiln::cli
