// SPDX-License-Identifier: Apache-2.0
// `kiln build`: how does a .cu file or a project become a library that PyTorch loads?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"

namespace kiln::cli {

namespace {

Result<int> run(const build::Request& request, Context& context) {
  TRY(build::Outcome outcome, build_for(context, request));
  if (context.json) {
    context.print_json(to_json(outcome));
    return 0;
  }
  context.note(outcome.rebuilt
                   ? fmt::format("{}: built in {} for {}", outcome.name, text::duration(outcome.seconds),
                                 project::describe(outcome.arch))
                   : fmt::format("{}: nothing changed ({})", outcome.name, project::describe(outcome.arch)));
  context.print((outcome.program ? outcome.file : outcome.link).string() + "\n");
  return 0;
}

Run setup(CLI::App& app) {
  auto request = std::make_shared<build::Request>();
  app.add_option("TARGET", request->targets,
                 "Sources (.cu, .cpp; the first names the library) or a folder with kiln.toml "
                 "(default: the project in this folder)")
      ->type_name("");
  add_build_options(app, *request);
  app.add_flag("--program", request->program, "Make an executable: the sources define main");
  app.add_option("-o,--output", request->output, "Also copy the result there")->type_name("FILE");
  app.footer(
      "The path of the result goes to stdout. Environment: NVCC, CUDA_HOME, CXX, MAX_JOBS, TORCH_CUDA_ARCH_LIST,\n"
      "XDG_CACHE_HOME, KILN_HOME.");
  return [request](Context& context) { return run(*request, context); };
}

}  // namespace

const Command build_command = {"build", "Build a .cu file or a project", setup};

}  // namespace kiln::cli
