// SPDX-License-Identifier: Apache-2.0
// `kiln wheel`: how does a project get to other people's machines? As one wheel, audited and tried
// before its upload.
#include "ship/wheel.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/options.h"
#include "project/manifest.h"
#include "ship/audit.h"
#include "ship/python_tools.h"
#include "ship/repair.h"
#include "ship/trial.h"

namespace kiln::cli {
namespace wheel_cli {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<ship::Finding>;

constexpr const char* kSmoke = "smoke.py";

struct Options {
  build::Request request;
  std::string target = ".";
  std::string output, audit, repair;
  std::vector<std::string> tries;
  bool editable = false, no_tools = false, offline = false, dry_run = false;
};

build::World world_of(Context& context) {
  return {sys::real_files(),
          sys::real_processes(),
          context.env,
          {},
          [&](const std::string& line) { context.note(line); },
          {}};
}

int told(const Findings& findings, const fs::path& file, const Json& more, Context& context) {
  bool failed = ship::has_fault(findings);
  if (context.json) {
    Json json = {{"wheel", file.string()}, {"passed", !failed}};
    json.update(more);
    json["findings"] = ship::to_json(findings);
    context.print_json(json);
  } else {
    context.note(text::trim(ship::text_of(findings)));
    context.print(file.string() + "\n");
  }
  return failed ? 1 : 0;
}

void append(Findings& to, Findings more) { to.insert(to.end(), more.begin(), more.end()); }

Result<int> run_audit(const Options& options, Context& context) {
  fs::path file = context.directory / options.audit;
  TRY(ship::WheelView view, ship::read_wheel(file));
  Findings findings = ship::audit(view);
  if (!options.no_tools)
    append(findings, ship::ask_tools(file, !options.offline, world_of(context)));
  return told(findings, file, Json::object(), context);
}

Result<int> run_repair(const Options& options, Context& context) {
  fs::path output = context.directory / (options.output.empty() ? "dist" : options.output);
  build::World world = world_of(context);
  TRY(ship::Repaired repaired,
      ship::repair_wheel(context.directory / options.repair, output, !options.offline, world));
  if (!context.json)
    context.note(
        fmt::format("left to the packages of torch and CUDA: {}",
                    repaired.excluded.empty() ? "nothing" : text::join(repaired.excluded, ", ")));
  return told(repaired.findings, repaired.file, {{"excluded", repaired.excluded}}, context);
}

Findings try_all(const Options& options, const ship::Wheel& wheel, const fs::path& project,
                 const build::World& world) {
  Findings findings;
  fs::path smoke = project / kSmoke;
  if (!world.files.state(smoke).is_file()) smoke.clear();
  for (const std::string& where : options.tries)
    findings.push_back(
        ship::try_wheel({wheel.file, wheel.library.name, smoke, where, !options.offline}, world));
  return findings;
}

Result<fs::path> project_folder(const std::string& target, const Context& context) {
  fs::path folder = (context.directory / target).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  if (sys::real_files().state(folder / project::kManifestName).is_file()) return folder;
  return Error{Fault::Usage, fmt::format("cannot make a wheel of {}", target),
               sys::real_files().state(folder).exists
                   ? fmt::format("it has no {}", project::kManifestName)
                   : "there is no such folder",
               "kiln new NAME makes a project"};
}

// --dry-run: what a wheel of the project would be called, and what would happen to it.
Result<int> show_plan(const Options& options, const fs::path& folder, const std::string& ops,
                      Context& context) {
  const sys::Files& files = sys::real_files();
  TRY(const project::Distribution about, project::read_distribution(files, folder, ops));
  const fs::path output =
      options.output.empty() ? folder / "dist" : context.directory / options.output;
  std::vector<std::string> steps = {fmt::format("build {} for release", ops),
                                    fmt::format("write {} {} to {}", about.name, about.version,
                                                output.lexically_normal().string())};
  if (!options.editable) steps.emplace_back("audit it");
  if (!options.editable && !options.no_tools)
    steps.push_back(options.offline ? "run auditwheel and twine if they are installed"
                                    : "install and run auditwheel and twine");
  for (const std::string& where : options.tries)
    steps.push_back(fmt::format("{} with {} and try it",
                                options.offline ? "use the environment of an earlier trial"
                                                : "install it in a clean environment",
                                where));
  if (context.json)
    context.print_json({{"dry_run", true}, {"steps", steps}});
  else
    for (const std::string& step : steps) context.print("would " + step + "\n");
  return 0;
}

Status check_output_folder(const Options& options, const Context& context) {
  if (options.output.empty()) return {};
  const fs::path above = (context.directory / options.output / ".").lexically_normal();
  const fs::path parent = above.parent_path().parent_path();
  if (sys::real_files().state(parent).is_directory) return {};
  return Error{Fault::Usage, fmt::format("cannot write to {}", options.output),
               fmt::format("there is no folder {}", parent.string()),
               fmt::format("mkdir -p {}", text::shell_quote(parent.string()))};
}

Result<int> run(Options options, Context& context) {
  if (!options.audit.empty()) return run_audit(options, context);
  CHECK_OK(check_output_folder(options, context));
  if (!options.repair.empty()) return run_repair(options, context);
  build::World world = world_of(context);
  TRY(fs::path folder, project_folder(options.target, context));
  TRY(project::Manifest manifest,
      project::read_manifest(world.files, folder / project::kManifestName));
  CHECK_OK(ship::check_package(world.files, folder, manifest.name));
  if (options.dry_run) return show_plan(options, folder, manifest.name, context);
  options.request.targets = {folder.string()};
  options.request.release = true;
  TRY(build::Outcome outcome, build_for(context, options.request));
  ship::WheelRequest request{
      folder, options.output.empty() ? folder / "dist" : context.directory / options.output,
      options.editable};
  TRY(ship::Wheel wheel, ship::write_wheel(outcome, request, world));
  for (const std::string& note : wheel.notes) context.note("note: " + note);
  std::string changes = options.editable ? "" : ship::uncommitted(folder, world);
  if (!changes.empty()) context.note("note: " + changes + ": this wheel does not match any commit");
  Findings findings;
  context.doing("checking the wheel");
  if (!options.editable) {
    TRY(ship::WheelView view, ship::read_wheel(wheel.file));
    findings = ship::audit(view);
    if (!options.no_tools) append(findings, ship::ask_tools(wheel.file, !options.offline, world));
    append(findings, try_all(options, wheel, folder, world));
  }
  int code = told(findings, wheel.file,
                  {{"name", wheel.distribution.name},
                   {"version", wheel.distribution.version},
                   {"tag", wheel.tag},
                   {"bytes", wheel.bytes},
                   {"uncommitted", changes}},
                  context);
  if (code == 0 && !options.editable && !context.json)
    context.note(fmt::format("to upload it: python3 -m twine upload {}",
                             text::shell_quote(wheel.file.string())));
  return code;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target, "A folder with kiln.toml (default: this one)")
      ->type_name("");
  app.add_option("-o,--output", options->output,
                 "The folder to write the wheel to (default: dist of the project)")
      ->type_name("DIR");
  add_list(app, "--try", options->tries, "WHERE",
           "Install it in a clean environment and run smoke.py: torch==2.7.1, or an environment "
           "that has torch (repeatable)");
  app.add_option("--audit", options->audit, "Only audit this wheel, whatever tool made it")
      ->type_name("WHEEL");
  app.add_option("--repair", options->repair,
                 "Make a torch-linked wheel manylinux: auditwheel, with the libraries of torch and "
                 "CUDA left out")
      ->type_name("WHEEL");
  app.add_flag("--no-tools", options->no_tools, "Do not run auditwheel and twine");
  app.add_flag("--offline", options->offline,
               "Install nothing: use only tools and environments that are already there");
  app.add_flag("--editable", options->editable,
               "For pip install -e: a package that builds itself on import");
  app.add_flag("--dry-run", options->dry_run, "Print what would be done, and change nothing");
  add_build_options(app, options->request, {.name = false, .watch = false});
  app.footer(
      "Name, version and dependencies come from pyproject.toml. The path of the wheel goes to\n"
      "stdout. Nothing is uploaded: the command that does it is printed.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace wheel_cli

const Command wheel_command = {"wheel", "Make a wheel of a project, audit and try it",
                               wheel_cli::setup};

}  // namespace kiln::cli
