// SPDX-License-Identifier: Apache-2.0
// Which options do all commands share that build something first?
#include "cli/build_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "build/build.h"
#include "cli/watch.h"
#include "sys/printable.h"

namespace kiln::cli {

namespace {

// A list that takes one value each time it is named, so that a target may follow.
void add_list(CLI::App& app, const char* names, std::vector<std::string>& to, const char* type,
              const char* text) {
  app.add_option(names, to, text)
      ->type_name(type)
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
}

}  // namespace

void add_build_options(CLI::App& app, build::Request& request, const char* heading) {
  const size_t before = app.get_options().size();
  app.add_option("--name", request.name,
                 "Namespace of the ops, torch.ops.NAME (default: kiln.toml, or the file's stem)")
      ->type_name("NAME");
  app.add_option("--arch", request.arch,
                 "GPU architectures: 9.0, 9.0a, '8.0;9.0+PTX', sm_90, native (default: kiln.toml, "
                 "TORCH_CUDA_ARCH_LIST, "
                 "the GPU present, 8.0)")
      ->type_name("LIST");
  add_list(app, "-D,--define", request.defines, "K=V", "Define a macro (repeatable)");
  add_list(app, "-I,--include", request.includes, "DIR",
           "Search this folder for headers (repeatable)");
  add_list(app, "--cuda-flag", request.cuda_flags, "FLAG",
           "A flag for nvcc, as --cuda-flag=-Xptxas=-v (repeatable)");
  add_list(app, "--cflag", request.cflags, "FLAG",
           "A flag for the host compiler on C++ sources (repeatable)");
  add_list(app, "--ldflag", request.ldflags, "FLAG",
           "A flag for the linker, as --ldflag=-lcublas (repeatable)");
  app.add_option("--compat", request.compat,
                 "For sources that include torch's headers: kiln's faster ones, with torch's own "
                 "as a fallback (auto), only kiln's (require) or only torch's (never)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "require", "never"}).description(""));
  app.add_flag("--fast-math", request.fast_math, "Trade exactness for speed: nvcc --use_fast_math");
  app.add_option_function<std::string>(
         "--findings", [&request](const std::string& as) { request.findings_fail = as == "error"; },
         "Report what ptxas finds (spills, serialised wgmma) as a warning or an error")
      ->type_name("AS")
      ->check(CLI::IsMember({"warning", "error"}).description(""));
  app.add_option_function<std::string>(
         "--lane", [&request](const std::string& lane) { request.full_lane = lane == "full"; },
         "auto: rebuild only device code where nothing else changed (default); full: everything")
      ->type_name("LANE")
      ->check(CLI::IsMember({"auto", "full"}).description(""));
  // Taken by run_command_line: the command itself runs without it.
  app.add_flag_function(
      "--watch", [](int64_t) {}, "Run again whenever a file it was built from is saved");
  app.add_option("--build-dir", request.build_dir,
                 "Folder of objects and results (default: build/kiln of a project, the cache "
                 "folder for a single file)")
      ->type_name("DIR");
  const auto options = app.get_options();
  for (size_t i = before; i < options.size(); ++i) options[i]->group(heading);
}

Result<build::Outcome> build_for(Context& context, build::Request request) {
  request.directory = context.directory;
  bool progress_shown = false;
  auto clear_line = [&] {
    if (std::exchange(progress_shown, false)) sys::write_err("\r\x1b[K");
  };
  build::World world{sys::real_files(), sys::real_processes(), context.env, {}, {}, {}};
  if (context.terminal.err_is_terminal && !context.json)
    world.on_progress = [&](const std::string& line) {
      clear_line();
      if (line.empty()) return;
      sys::write_err(
          sys::printable(line).substr(0, static_cast<size_t>(context.terminal.columns) - 1));
      progress_shown = true;
    };
  world.on_note = [&](const std::string& line) {
    clear_line();
    context.note(line);
  };
  if (context.verbose)
    world.on_command = [&](const std::string& line) {
      clear_line();
      context.note("+ " + line);
    };
  auto outcome = build::build(request, world);
  tell_watcher(context.env, request, outcome ? outcome->build_dir : std::filesystem::path());
  clear_line();
  return outcome;
}

}  // namespace kiln::cli
