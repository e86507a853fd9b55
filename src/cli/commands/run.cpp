// SPDX-License-Identifier: Apache-2.0
// `kiln run`: how is a CUDA program built and run in one step, with no torch and no Python?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "base/text.h"
#include "build/plan/source_scan.h"
#include "cli/build_options.h"
#include "cli/call_limit.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/programs.h"

namespace kiln::cli {
namespace run_cli {
namespace {

struct Options {
  build::Request request;
  std::vector<std::string> words;  // sources; up to the release before arguments, too
  double limit_s = 0;
};

bool is_source(const std::string& word) {
  static const std::set<std::string> kEndings = {".cu", ".cpp", ".cc", ".cxx", ".c++", ".c", ".o"};
  return kEndings.contains(text::lower(std::filesystem::path(word).extension().string()));
}

// The first word that is not a source begins the program's arguments, as it did before they had
// their place after "--".
Status take_sources(Options& options, Context& context) {
  auto first = options.words.begin();
  while (first != options.words.end() && is_source(*first)) ++first;
  if (first == options.words.begin() || first == options.words.end()) {
    options.request.targets = options.words;
    return {};
  }
  options.request.targets.assign(options.words.begin(), first);
  if (!context.rest.empty())
    return Error{Fault::Usage, fmt::format("'{}' is not a source", *first),
                 "sources end in .cu or .cpp; arguments of the program go after --",
                 fmt::format("kiln run {} -- {}", options.words.front(), *first)};
  context.rest.assign(first, options.words.end());
  context.note("note: the program's arguments now go after --: kiln run " + options.words.front() +
               " -- " + text::join(context.rest, " "));
  return {};
}

Status check_kind(const Options& options, const Context& context) {
  const std::string& program = options.request.targets.front();
  std::filesystem::path path = context.directory / program;
  if (!sys::real_files().state(path).is_file()) return {};  // the build says it better
  build::SourceFacts facts = build::scan_source(sys::real_files(), path, {});
  if (facts.defines_main || !facts.defines_op) return {};
  return Error{Fault::Usage, fmt::format("cannot run {}", program),
               "this file defines ops, not main", fmt::format("kiln call {} OP ARGS", program)};
}

// Killed with all that it started when its time is up; else its exit code is kiln's.
Result<int> run_limited(const std::vector<std::string>& words, const sys::Environment& env,
                        const Options& options) {
  sys::ProcessSpec spec;
  spec.arguments = words;
  spec.env = env;
  spec.capture = false;
  spec.limit_s = options.limit_s;
  TRY(const sys::ProcessResult done, sys::real_processes().run(spec));
  if (!done.timed_out) return done.exit_code;
  return Error{Fault::Work, fmt::format("{} was stopped", options.request.targets.front()),
               past_limit(options.limit_s), kPastLimitFix};
}

Result<int> run(Options& options, Context& context) {
  CHECK_OK(take_sources(options, context));
  CHECK_OK(check_kind(options, context));
  options.request.program = true;
  TRY(build::Outcome outcome, build_for(context, options.request));
  TRY(sys::Environment env, program_environment(context.env));
  if (context.verbose && !env.get("KILN_ENGINE_FIDELITY")) env.set("KILN_ENGINE_FIDELITY", "1");
  std::vector<std::string> words = {outcome.file.string()};
  words.insert(words.end(), context.rest.begin(), context.rest.end());
  context.end_progress();
  if (options.limit_s > 0) return run_limited(words, env, options);
  // The program takes this process's place: its exit code, signals and debugger need no go-between.
  return sys::replace_process(words, env);
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->words,
                 "Sources of the program (.cu, .cpp); its arguments follow after --")
      ->required()
      ->type_name("");
  add_limit(app, options->limit_s, "a program");
  add_build_options(app, options->request);
  app.footer(
      "kiln run main.cu helper.cu -- ARGS\n"
      "With a kiln.toml next to the program, its flags, defines and folders apply too. The exit\n"
      "code is the program's.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace run_cli

const Command run_command = {"run", "Build a program (main) and run it, without torch",
                             run_cli::setup, Passes::ToProgram};

}  // namespace kiln::cli
