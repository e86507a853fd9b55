// SPDX-License-Identifier: Apache-2.0
// `kiln learn`: which exercises are there, and is one solved? Python runs them: their checks are
// commands of kiln.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/options.h"
#include "sys/process.h"

namespace kiln::cli {
namespace learn_cli {
namespace {

struct Options {
  std::string action = "list", exercise, folder = "kiln-exercises";
  double limit_s = 120;
};

Result<int> run(const Options& options, Context& context) {
  TRY(Python python, find_python(context, "cannot run the exercises"));
  TRY(const std::filesystem::path own, sys::own_executable());
  sys::ProcessSpec spec;
  spec.arguments = {python.program, "-m", "kiln._learn.main", options.action};
  if (!options.exercise.empty()) spec.arguments.push_back(options.exercise);
  spec.arguments.insert(spec.arguments.end(), {"--folder", options.folder, "--limit",
                                               fmt::format("{}", options.limit_s)});
  if (context.quiet) spec.arguments.emplace_back("--quiet");
  if (context.json) spec.arguments.emplace_back("--json");
  python.env.set("KILN_BIN", own.string());
  spec.env = python.env;
  spec.directory = context.directory;
  spec.capture = false;  // it talks to the learner as it goes
  context.end_progress();
  TRY(const sys::ProcessResult done, sys::real_processes().run(spec));
  return done.exit_code;
}

// An unset variable of a shell: --folder "$WHERE".
std::string folder_name(const std::string& given) {
  return given.empty() ? "'' is not a folder" : "";
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("ACTION", options->action,
                 "list, start, check, hint, watch or notebooks (default: list)")
      ->check(one_of({"list", "start", "check", "hint", "watch", "notebooks"}))
      ->type_name("");
  app.add_option("EXERCISE", options->exercise,
                 "One exercise (default: all in order, up to the first that is not done)")
      ->type_name("");
  app.add_option("--folder", options->folder, "Where the exercises are (default: kiln-exercises)")
      ->check(folder_name)
      ->type_name("DIR");
  add_limit(app, options->limit_s, "a command of a check");
  app.footer(
      "kiln learn start, then edit a file with kiln learn watch in another terminal.\n"
      "The lessons: kiln docs learn; kiln learn notebooks writes them as notebooks.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace learn_cli

const Command learn_command = {"learn", "Learn by exercises that check themselves",
                               learn_cli::setup};

}  // namespace kiln::cli
