// SPDX-License-Identifier: Apache-2.0
// `kiln build`: how does a .cu file or a project become a library that PyTorch loads?
#include "report/build.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "build/cache/cache.h"
#include "build/explain.h"
#include "build/run/editor_files.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/tuned.h"
#include "ship/release.h"

namespace kiln::cli {
namespace build_cli {
namespace {

struct Options {
  build::Request request;
  bool compile_commands = false;
  std::string html, trace, tuned_for;
  bool tuned = false;

  bool draws() const { return !html.empty() || !trace.empty(); }
};

// A page for a browser, a trace for chrome://tracing and Perfetto.
Status write_pictures(const Options& options, const build::Outcome& outcome,
                      const Context& context) {
  if (!options.draws()) return {};
  const results::BuildReport report = build::report_of(outcome);
  CHECK_OK(write_output(options.html, report::build_page(report), context));
  return write_output(options.trace, dump(report::build_trace(report), 1), context);
}

// Next to the sources, where clangd looks for it.
Status write_compile_commands(const build::Outcome& outcome, Context& context) {
  sys::Files& files = sys::real_files();
  const std::filesystem::path file =
      (outcome.project_dir.empty() ? context.directory : outcome.project_dir) /
      "compile_commands.json";
  TRY(const std::string now, files.read(outcome.build_dir / "compile_commands.json"));
  const auto former = files.read(file);
  TRY(const std::string merged, build::merged_commands(former ? *former : "", now, file.string()));
  CHECK_OK(files.write(file, merged));
  context.note("wrote " + file.lexically_proximate(context.directory).string());
  return {};
}

std::string floor_text(const ship::LibraryNeeds& needs) {
  std::string text = needs.system.tag;
  if (needs.driver.sass) text += fmt::format(", driver {} or newer", needs.driver.sass);
  return text;
}

Result<int> run_release(Options options, Context& context) {
  if (options.request.program)
    return Error{Fault::Usage, "cannot release a program",
                 "a release is an op library with its header",
                 "kiln build --program without --release"};
  std::string output = std::exchange(options.request.output, "");
  TRY(build::Outcome outcome, build_for(context, options.request));
  std::filesystem::path root =
      outcome.project_dir.empty() ? context.directory : outcome.project_dir;
  std::filesystem::path folder =
      output.empty() ? root / "build/release" : context.directory / output;
  build::World world{sys::real_files(), sys::real_processes(), context.env, {}, {}, {}};
  TRY(ship::Release release, ship::write_release(outcome, folder.lexically_normal(), world));
  if (std::string changes = ship::uncommitted(root, world); !changes.empty())
    context.note("note: " + changes + ": this release does not match any commit");
  if (context.json) {
    Json json = to_json(outcome);
    json["release"] = to_json(release);
    context.print_json(json);
    return 0;
  }
  context.note(fmt::format("{}: released in {} for {}\n  lib/lib{}.so: {} bytes, {} op{}; {}",
                           outcome.name, text::duration(outcome.seconds),
                           project::describe(outcome.arch), outcome.name, release.library_bytes,
                           release.library.ops.size(), release.library.ops.size() == 1 ? "" : "s",
                           floor_text(release.needs)));
  context.print(release.folder.string() + "\n");
  return 0;
}

Result<int> run(Options options, Context& context) {
  if (options.tuned || !options.tuned_for.empty())
    CHECK_OK(take_tuned(options.request, options.tuned_for, context));
  if (options.request.release) return run_release(std::move(options), context);
  TRY(const bool out_taken,
      check_outputs(
          {{"--html", options.html}, {"--trace", options.trace}, {"-o", options.request.output}},
          context));
  options.request.time_headers = options.draws();
  TRY(build::Outcome outcome, build_for(context, options.request));
  CHECK_OK(write_pictures(options, outcome, context));
  if (options.compile_commands) CHECK_OK(write_compile_commands(outcome, context));
  if (context.json) {
    Json json = to_json(outcome);
    if (options.request.explain) json["explain"] = to_json(build::report_of(outcome));
    context.print_json(json);
    return 0;
  }
  context.note(
      outcome.rebuilt
          ? fmt::format("{}: built in {} for {}", outcome.name, text::duration(outcome.seconds),
                        project::describe(outcome.arch))
          : fmt::format("{}: nothing changed ({})", outcome.name, project::describe(outcome.arch)));
  if (!options.request.output.empty())
    context.note(fmt::format("copied to {}", options.request.output));
  if (!out_taken) context.print((outcome.program ? outcome.file : outcome.link).string() + "\n");
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  build::Request* request = &options->request;
  app.add_option("TARGET", request->targets,
                 "Sources (.cu, .cpp; the first names the library) or a folder with kiln.toml "
                 "(default: the project in this folder)")
      ->type_name("");
  app.add_flag("--compile-commands", options->compile_commands,
               "Write compile_commands.json next to the sources, for clangd and editors");
  app.add_flag("--program", request->program, "Make an executable: the sources define main");
  app.add_option("--html", options->html, "Write a page with every step on a time axis")
      ->type_name("FILE");
  app.add_option("--trace", options->trace, "Write the same as a Chrome trace")
      ->type_name("FILE.json");
  app.add_flag(
      "--tuned", options->tuned,
      "Compile in the best configuration that kiln tune found: tuned.json next to the source");
  app.add_option("--tuned-for", options->tuned_for,
                 "The same, from the entry whose text contains this: 32x16x512x128")
      ->type_name("TEXT");
  app.add_flag("--release", request->release,
               "For other machines: no paths and line tables, every GPU generation; a folder with "
               "library, C header and "
               "CMake package (build/release)");
  app.add_option("-o,--output", request->output,
                 "Also copy the result to this path; with --release: the folder")
      ->type_name("FILE");
  add_limit(app, request->limit_s, "a compiler");
  app.add_option_function<std::string>(
         "--memory-limit",
         [request](const std::string& size) {
           const auto bytes = build::parse_bytes(size);
           if (!bytes || *bytes == 0)
             throw CLI::ValidationError("--memory-limit", "'" + size + "' is not a size");
           request->memory_bytes = *bytes;
         },
         "The most that each compiler may allocate, e.g. 8G (default: all that the machine has)")
      ->type_name("SIZE");
  add_build_options(app, *request);
  app.footer(
      "The path of the result goes to stdout. Environment: NVCC, CUDA_HOME, CXX, MAX_JOBS,\n"
      "TORCH_CUDA_ARCH_LIST, XDG_CACHE_HOME, KILN_HOME; for the cache see kiln cache --help.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace build_cli

const Command build_command = {"build", "Build a .cu file or a project", build_cli::setup};

}  // namespace kiln::cli
