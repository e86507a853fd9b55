// SPDX-License-Identifier: Apache-2.0
// `kiln setup`: what is missing on this machine is installed, an env file is written, and all of it
// can be undone.
#include "doctor/setup.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/setup_run.h"
#include "project/setup_folder.h"
#include "sys/access.h"

namespace kiln::cli {
namespace setup_cli {
namespace {

struct Options {
  doctor::SetupOptions setup;
  std::string prefix;
  bool dry_run = false, remove = false;
};

Result<int> remove(const Options& options, const doctor::Outside& outside, const Context& context) {
  TRY(auto lines, doctor::remove_setup(options.setup.folder, outside, options.dry_run));
  if (context.json) {
    context.print_json({{"folder", options.setup.folder.string()},
                        {"dry_run", options.dry_run},
                        {"removed", lines}});
    return 0;
  }
  if (lines.empty())
    context.print(
        fmt::format("nothing to remove: {} contains no setup\n", options.setup.folder.string()));
  for (const std::string& line : lines)
    context.print(fmt::format("{}{}\n", options.dry_run ? "would " : "", line));
  return 0;
}

// Before anything is installed, and in a dry run as well.
Status check_places(const doctor::SetupOptions& setup, const sys::Files& files) {
  if (Status status = sys::may_write(files, setup.folder); !status)
    return Error{Fault::Environment, fmt::format("cannot install into {}", setup.folder.string()),
                 status.error().why,
                 "kiln setup --prefix FOLDER, with a folder that you can write to"};
  if (Status status = sys::may_write(files, setup.cache); !setup.cache.empty() && !status)
    return Error{Fault::Environment, fmt::format("cannot keep the cache in {}", setup.cache),
                 status.error().why,
                 "kiln setup --cache-dir FOLDER, with a folder that you can write to"};
  if (!setup.find_links.empty() && !files.state(setup.find_links).is_directory)
    return Error{Fault::Usage, fmt::format("cannot take packages from {}", setup.find_links),
                 "there is no such folder",
                 "--find-links FOLDER, with the wheels in it: pip download -d FOLDER PACKAGE"};
  return {};
}

Result<int> run(Options& options, Context& context) {
  // Compilers are installed, by pip and by kiln: whoever else could write to them would have a part
  // in every build.
  ::umask(::umask(0022) | 0022);
  doctor::Outside outside{sys::real_files(), sys::real_processes(), context.env};
  options.setup.folder = options.prefix.empty() ? project::setup_folder(context.env)
                                                : context.directory / options.prefix;
  if (options.setup.folder.empty())
    return Error{Fault::Environment, "cannot determine where to install",
                 "neither HOME nor XDG_DATA_HOME is set", "kiln setup --prefix FOLDER"};
  options.setup.folder = options.setup.folder.lexically_normal();
  if (!options.setup.find_links.empty())
    options.setup.find_links = (context.directory / options.setup.find_links).string();
  if (!options.setup.cache.empty())
    options.setup.cache = (context.directory / options.setup.cache).string();
  if (options.remove) return remove(options, outside, context);
  CHECK_OK(check_places(options.setup, outside.files));
  doctor::Facts facts = doctor::gather_machine(outside);
  return run_setup(facts, options.setup, options.dry_run, context);
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_flag("--dry-run", options->dry_run, "Print what would be done, and change nothing");
  app.add_flag("--remove", options->remove, "Undo what kiln setup did");
  app.add_option("--prefix", options->prefix,
                 "Install to this folder (default: $XDG_DATA_HOME/kiln, ~/.local/share/kiln)")
      ->type_name("DIR");
  app.add_option("--arch", options->setup.arch,
                 "GPU architectures that later builds are for (default: the GPU here, or 8.0)")
      ->type_name("LIST");
  app.add_option("--jobs", options->setup.jobs, "MAX_JOBS (default: what cores and memory allow)")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  app.add_option("--cache-dir", options->setup.cache, "Keep kiln's cache in this folder")
      ->type_name("DIR");
  app.add_option("--torch", options->setup.torch,
                 "Install torch too: cpu, cuda or a version such as 2.7.1")
      ->type_name("KIND");
  app.add_option("--find-links", options->setup.find_links,
                 "Take packages from this folder of wheels, not from PyPI")
      ->type_name("DIR");
  app.add_flag("--conda", options->setup.conda,
               "Write activation snippets into the active conda environment");
  app.add_flag("--rc", options->setup.shells, "Source the env file from ~/.bashrc and ~/.zshrc");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace setup_cli

const Command setup_command = {"setup", "Prepare a machine: install what is missing",
                               setup_cli::setup};

}  // namespace kiln::cli
