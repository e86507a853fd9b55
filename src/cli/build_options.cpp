// SPDX-License-Identifier: Apache-2.0
// Which options do all commands share that build something first?
#include "cli/build_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "build/build.h"
#include "build/explain.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/watch.h"
#include "report/build.h"

namespace kiln::cli {

namespace {

constexpr const char* kHeading = "Build options";

// What the compilers and the linker are given.
void add_compiler_options(CLI::App& app, build::Request& request) {
  add_list(app, "-D,--define", request.defines, "NAME=VALUE",
           "Define a macro; the value may contain commas (repeatable)");
  add_list(app, "-I,--include", request.includes, "DIR",
           "Search this folder for headers (repeatable)");
  add_list(app, "--cuda-flag", request.cuda_flags, "FLAG",
           "A flag for nvcc: --cuda-flag -Xptxas=-v (repeatable)");
  add_list(app, "--cflag", request.cflags, "FLAG",
           "A flag for the host compiler on C++ sources (repeatable)");
  app.add_flag("--fast-math", request.fast_math, "Trade exactness for speed: nvcc --use_fast_math");
}

// What becomes of the whole library.
void add_library_options(CLI::App& app, build::Request& request) {
  add_list(app, "--ldflag", request.ldflags, "FLAG",
           "A flag for the linker: --ldflag -lcublas (repeatable)");
  app.add_option("--compat", request.compat,
                 "For sources that include torch's headers: kiln's faster ones, with torch's own "
                 "as a fallback (auto), only kiln's (require) or only torch's (never)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "require", "never"}));
  app.add_option_function<std::string>(
         "--findings", [&request](const std::string& as) { request.findings_fail = as == "error"; },
         "Report what ptxas finds (spills, serialised wgmma) as a warning or an error")
      ->type_name("AS")
      ->check(one_of({"warning", "error"}));
  app.add_flag("--fresh", request.fresh,
               "Start from scratch: ignore what earlier runs left, and the cache");
}

// What add_build_options adds, and the choice that leaves it out. A test compares the two.
struct Listed {
  std::string_view name;
  bool BuildChoice::*chosen = nullptr;
};
constexpr Listed kListed[] = {
    {"--name", &BuildChoice::name},
    {"--arch"},
    {"-D"},
    {"--define"},
    {"-I"},
    {"--include"},
    {"--cuda-flag"},
    {"--cflag"},
    {"--fast-math"},
    {"--ldflag", &BuildChoice::library},
    {"--compat", &BuildChoice::library},
    {"--findings", &BuildChoice::library},
    {"--fresh", &BuildChoice::library},
    {"--explain", &BuildChoice::explain},
    {"--watch", &BuildChoice::watch},
    {"--build-dir"},
};

// A disabled App is only asked whether it has the option that it is named after: an error lists the
// commands that have it. CLI11 compares each new name with all that an App has; with all of these
// in every command that message would take twice as long.
void add_one_asked_for(CLI::App& app, const BuildChoice& choice) {
  for (const Listed& row : kListed)
    if (row.name == app.get_name() && (!row.chosen || choice.*row.chosen))
      app.add_flag(std::string(row.name))->group(kHeading);
}

}  // namespace

void add_build_options(CLI::App& app, build::Request& request, const BuildChoice& choice) {
  if (app.get_disabled()) return add_one_asked_for(app, choice);
  const size_t before = app.get_options().size();
  if (choice.name)
    app.add_option("--name", request.name,
                   "Namespace of the ops, torch.ops.NAME (default: kiln.toml, or the file's stem)")
        ->type_name("NAME");
  app.add_option("--arch", request.arch, choice.arch_text)->type_name("LIST");
  add_compiler_options(app, request);
  if (choice.library) add_library_options(app, request);
  if (choice.explain)
    app.add_flag("--explain", request.explain,
                 "Print what was rebuilt and why, the lane, hits and misses, jobs, memory");
  // Taken by run_command_line: the command itself runs without it.
  if (choice.watch)
    app.add_flag_function(
        "--watch", [](int64_t) {}, "Run again whenever a file it was built from is saved");
  app.add_option("--build-dir", request.build_dir,
                 "Folder of objects and results (default: build/kiln of a project, the cache "
                 "folder for a single file)")
      ->type_name("DIR");
  const auto options = app.get_options();
  for (size_t i = before; i < options.size(); ++i) options[i]->group(kHeading);
}

Result<build::Outcome> build_for(Context& context, build::Request request) {
  request.directory = context.directory;
  build::World world{sys::real_files(), sys::real_processes(), context.env, {}, {}, {}};
  if (context.progress)
    world.on_progress = [&](const std::string& line) { context.progress->show(line); };
  // Compilers' warnings come this way: -q keeps them.
  world.on_note = [&](const std::string& line) { context.warn(line); };
  if (context.verbose)
    world.on_command = [&](const std::string& line) { context.note("+ " + line); };
  auto outcome = build::build(request, world);
  tell_watcher(context.env, request, outcome ? outcome->build_dir : std::filesystem::path());
  if (outcome && request.explain && !context.json)
    context.note(text::trim(report::build_text(build::report_of(*outcome))));
  context.doing("running");
  return outcome;
}

}  // namespace kiln::cli
