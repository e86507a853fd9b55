// SPDX-License-Identifier: Apache-2.0
// `kiln run`: how is a CUDA program built and run in one step, with no torch and no Python?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "build/plan/source_scan.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/programs.h"

namespace kiln::cli {
namespace run_cli {
namespace {

struct Options {
  build::Request request;
  std::string program;
  std::vector<std::string> more_sources;
  std::vector<std::string> arguments;
};

Status check_kind(const Options& options, const Context& context) {
  std::filesystem::path path = context.directory / options.program;
  if (!sys::real_files().state(path).is_file()) return {};  // the build says it better
  build::SourceFacts facts = build::scan_source(sys::real_files(), path, {});
  if (facts.defines_main || !facts.defines_op) return {};
  return Error{Fault::Usage, fmt::format("cannot run {}", options.program),
               "this file defines ops, not main",
               fmt::format("kiln call {} OP ARGUMENTS", options.program)};
}

Result<int> run(Options& options, Context& context) {
  CHECK_OK(check_kind(options, context));
  options.request.targets = {options.program};
  options.request.targets.insert(options.request.targets.end(), options.more_sources.begin(),
                                 options.more_sources.end());
  options.request.program = true;
  TRY(build::Outcome outcome, build_for(context, options.request));
  TRY(sys::Environment env, program_environment(context.env));
  std::vector<std::string> words = {outcome.file.string()};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  // The program takes this process's place: its exit code, signals and debugger need no go-between.
  return sys::replace_process(words, env);
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("PROGRAM", options->program, "A .cu or .cpp that defines main")
      ->required()
      ->type_name("");
  app.add_option("--source", options->more_sources, "Another source of the program (repeatable)")
      ->type_name("FILE")
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
  add_build_options(app, options->request);
  app.add_option("ARGUMENTS", options->arguments, "Arguments for the program, after --")
      ->type_name("");
  app.footer("With a kiln.toml next to the program, its flags, defines and folders apply too.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace run_cli

const Command run_command = {"run", "Build a program (main) and run it, without torch",
                             run_cli::setup};

}  // namespace kiln::cli
