// SPDX-License-Identifier: Apache-2.0
// `kiln doctor`: what on this machine, in this library or in this project keeps kernels from being
// built or run, and what fixes it?
#include "report/doctor.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/setup_run.h"
#include "doctor/gather.h"
#include "doctor/report.h"
#include "doctor/setup.h"

namespace kiln::cli {
namespace doctor_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> targets;
  std::vector<std::string> libraries;  // of the targets
  std::string project;
  int process = 0;
  bool no_compile = false, page = false, fix = false, dry_run = false;
};

Result<doctor::Facts> gather(const Options& options, const Context& context) {
  doctor::Outside outside{sys::real_files(), sys::real_processes(), context.env};
  doctor::Facts facts = doctor::gather_machine(outside, options.process);
  for (const std::string& library : options.libraries)
    CHECK_OK(doctor::gather_library(outside, context.directory / library, library, facts));
  if (!options.project.empty())
    CHECK_OK(doctor::gather_project(outside, context.directory / options.project, options.project,
                                    facts));
  bool whole_machine = options.libraries.empty() && options.project.empty() && !options.process;
  if (whole_machine && !options.no_compile && facts.toolkit.nvcc.found() && facts.ninja.found())
    doctor::time_compile(outside, facts);
  return facts;
}

// Whoever asks about a library wants to hear of it, not of ninja.
std::vector<doctor::CheckResult> asked_for(const Options& options,
                                           std::vector<doctor::CheckResult> results) {
  using doctor::Area;
  if (options.libraries.empty() && options.project.empty()) return results;
  std::erase_if(results, [&](const doctor::CheckResult& result) {
    Area area = result.check->area;
    if (area == Area::Library) return options.libraries.empty();
    if (!options.project.empty()) return false;
    return area != Area::Gpu || result.check->name != "driver";
  });
  return results;
}

// What setup can do about the findings by itself.
std::set<doctor::Cure> cures_of(const std::vector<doctor::CheckResult>& results) {
  std::set<doctor::Cure> cures;
  for (const doctor::CheckResult& result : results)
    if (result.finding.verdict >= doctor::Verdict::Warn &&
        result.finding.cure != doctor::Cure::None)
      cures.insert(result.finding.cure);
  return cures;
}

// What setup would do was done before: only this shell has not read the file that it wrote.
bool is_already_set_up(const doctor::Facts& facts, const std::set<doctor::Cure>& cures,
                       const Context& context) {
  if (facts.setup_folder.empty() || cures != std::set{doctor::Cure::Environment}) return false;
  doctor::SetupOptions setup;
  setup.folder = facts.setup_folder;
  setup.only = cures;
  const doctor::Outside outside{sys::real_files(), sys::real_processes(), context.env};
  const auto plan = doctor::plan_setup(facts, setup, outside);
  return plan && plan->actions.empty();
}

void name_env_file(std::vector<doctor::CheckResult>& results, const doctor::Facts& facts) {
  for (doctor::CheckResult& result : results) {
    if (result.finding.cure != doctor::Cure::Environment) continue;
    result.finding.cure = doctor::Cure::None;
    if (result.finding.verdict >= doctor::Verdict::Warn)
      result.finding.fix =
          fmt::format("source {}, which kiln setup wrote; or {}",
                      text::shell_quote((fs::path(facts.setup_folder) / "env.sh").string()),
                      result.finding.fix);
  }
}

Status mend(const doctor::Facts& facts, std::set<doctor::Cure> cures, bool dry_run,
            const Context& context) {
  doctor::SetupOptions setup;
  setup.folder = facts.setup_folder;
  setup.only = std::move(cures);
  if (setup.folder.empty())
    return Error{Fault::Environment, "cannot determine where to install",
                 "neither HOME nor XDG_DATA_HOME is set", "kiln setup --prefix FOLDER"};
  auto done = run_setup(facts, setup, dry_run, context);
  return done ? Status() : Status(std::move(done.error()));
}

// A folder is a project; anything else a library.
Status take_targets(Options& options, const Context& context) {
  for (const std::string& target : options.targets) {
    if (!sys::real_files().state(context.directory / target).is_directory) {
      options.libraries.push_back(target);
      continue;
    }
    if (!options.project.empty())
      return Error{Fault::Usage,
                   fmt::format("cannot check both {} and {}", options.project, target),
                   "kiln doctor checks one project at a time", "kiln doctor " + options.project};
    options.project = target;
  }
  return {};
}

Result<int> run(Options& options, Context& context) {
  CHECK_OK(take_targets(options, context));
  if (options.process && !sys::real_files().state(fmt::format("/proc/{}", options.process)).exists)
    return Error{Fault::Usage, fmt::format("cannot examine process {}", options.process),
                 "there is no process of this number", "kiln doctor --pid PID; ps lists them"};
  if (options.page) {
    context.print(doctor::troubleshooting_page());
    return 0;
  }
  TRY(doctor::Facts facts, gather(options, context));
  std::vector<doctor::CheckResult> found = asked_for(options, doctor::run_checks(facts));
  std::set<doctor::Cure> cures = cures_of(found);
  if (!cures.empty() && is_already_set_up(facts, cures, context)) {
    name_env_file(found, facts);
    cures.clear();
  }
  bool fix = options.fix && !cures.empty();
  const results::DoctorReport shown = doctor::report_of(facts, found);
  // One JSON value: that of the fix, where there is something to fix.
  if (!context.json)
    context.print(report::doctor_text(shown, {context.terminal.color_out, context.verbose}));
  else if (!fix)
    context.print_json(results::to_json(shown));
  if (fix) CHECK_OK(mend(facts, std::move(cures), options.dry_run, context));
  return doctor::worst(found) == doctor::Verdict::Fail ? 1 : 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->targets,
                 "A .so or .whl: why would it not load or not run here? Or a project folder: why "
                 "does its build fail or take long? (default: this machine)")
      ->type_name("");
  app.add_option("--pid", options->process, "Which CUDA runtimes has this process mapped?")
      ->type_name("PID")
      ->check(whole_number(1, INT32_MAX));
  app.add_flag("--no-compile", options->no_compile, "Skip the timed compile of a small kernel");
  app.add_flag("--fix", options->fix, "Fix what is safe to fix, as kiln setup does");
  app.add_flag("--dry-run", options->dry_run,
               "With --fix: print what would be done, and change nothing");
  app.add_flag("--page", options->page, "Print the troubleshooting page of the docs");
  app.footer(
      "Exit code: 0: no faults (there may be warnings), 1: a fault. -v shows every check and the "
      "facts.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace doctor_cli

const Command doctor_command = {
    "doctor", "Find out what is wrong with a machine, a library or a build", doctor_cli::setup};

}  // namespace kiln::cli
