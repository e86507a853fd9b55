// SPDX-License-Identifier: Apache-2.0
// `kiln profile`: which ops ran, each under its caller, down to the kernels, and where did the time
// go?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/options.h"
#include "measure/render.h"
#include "sys/files.h"

namespace kiln::cli {
namespace profile_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  build::Request request;
  std::string target, device, html, trace, output;
  std::vector<std::string> words;  // an op and its arguments
  double limit_s = 600;
};

// A script, something to build or load, or the name of a function.
Result<std::string> kind_of(const Options& options, const fs::path& path) {
  const sys::FileState state = sys::real_files().state(path);
  if (options.target.ends_with(".py")) {
    if (state.is_file()) return std::string("script");
    return Error{Fault::Usage, "cannot profile " + options.target, "there is no such file",
                 "give the path of a script (.py), a .cu file, project or library, or "
                 "package.module.function"};
  }
  const std::string extension = path.extension().string();
  if (state.exists || extension == ".cu" || extension == ".so") {
    if (!options.words.empty()) return std::string("op");
    return Error{Fault::Usage, "cannot profile " + options.target, "no op was named",
                 "kiln profile " + options.target + " OP ARGS"};
  }
  if (options.target.find('.') != std::string::npos) return std::string("function");
  return Error{Fault::Usage, "cannot profile " + options.target,
               "it is not a script (.py), a source, a project, a library or a function "
               "(package.module.function)",
               "give the path of a script (.py), a .cu file, project or library, or "
               "package.module.function"};
}

Result<int> run(Options& options, Context& context) {
  TRY(const bool out_taken,
      check_outputs({{"--html", options.html}, {"--trace", options.trace}, {"-o", options.output}},
                    context));
  const fs::path path = context.directory / options.target;
  TRY(const std::string kind, kind_of(options, path));
  Json request{{"kind", kind},
               {"target", kind == "script" ? path.string() : options.target},
               {"op", ""},
               {"arguments", kind == "script" ? context.rest : options.words},
               {"trace", ""}};
  if (!options.trace.empty()) request["trace"] = (context.directory / options.trace).string();
  if (kind == "op") {
    request["op"] = options.words.front();
    request["arguments"] = std::vector<std::string>(options.words.begin() + 1, options.words.end());
    fs::path library = path;
    if (path.extension() != ".so") {
      build::Request build = options.request;
      build.targets = {options.target};
      TRY(const build::Outcome outcome, build_for(context, build));
      library = outcome.file;
    }
    request["target"] = library.string();
  }
  TRY(Python python, python_with_torch(context, "cannot profile " + options.target));
  if (!options.device.empty()) python.env.set("KILN_DEVICE", options.device);
  context.doing("profiling " + options.target);
  TRY(const Json profile,
      ask_python(python, "kiln._processes.profile", request, options.limit_s,
                 options.target + " cannot be profiled", kind == "script", context));
  if (!options.html.empty()) {
    TRY(const std::string page, measure::render("profile-html", profile));
    CHECK_OK(write_output(options.html, page, context));
  }
  CHECK_OK(write_output(options.output, dump(profile, 1) + "\n", context));
  if (!options.trace.empty())
    context.note(fmt::format("wrote {}: open it in https://ui.perfetto.dev", options.trace));
  if (context.json) return context.print_json(profile), 0;
  if (out_taken) return 0;
  TRY(const std::string text, measure::render("profile-text", profile));
  context.print(text);
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target,
                 "A script (.py), a .cu file, project or library, or package.module.function")
      ->required()
      ->type_name("");
  add_op_arguments(app, options->words,
                   "The op and its arguments, as for kiln call; everything after a script is for "
                   "the script");
  app.add_option("--html", options->html,
                 "Write one self-contained page to this file: flame graph, timeline, tree")
      ->type_name("FILE");
  app.add_option("--trace", options->trace, "Write a Chrome trace to this file")
      ->type_name("FILE.json");
  app.add_option("-o,--output", options->output, "Write everything as JSON; - for stdout")
      ->type_name("FILE");
  add_limit(app, options->limit_s, "a run");
  add_device(app, options->device);
  add_build_options(app, options->request, {.watch = false});
  app.footer(
      "kiln profile --html page.html train.py --steps 3\n"
      "Needs torch. Without a GPU the tree shows CPU time, with the kernels that the engine ran.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace profile_cli

const Command profile_command = {"profile",
                                 "Show which ops and kernels ran, and where the time went",
                                 profile_cli::setup, Passes::ToScript};

}  // namespace kiln::cli
