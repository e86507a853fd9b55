// SPDX-License-Identifier: Apache-2.0
// Does a wheel work where nothing of kiln is?
#include "ship/trial.h"

#include <fmt/format.h>

#include "base/text.h"
#include "project/home.h"
#include "ship/python_tools.h"
#include "sys/clock.h"

namespace kiln::ship {

namespace {

constexpr double kTrialSeconds = 600;
constexpr std::string_view kMark = "KILN-TRIAL ";

// The last line it prints is for us.
constexpr const char* kScript = R"(
import importlib, json, platform, runpy, sys
import torch
package = importlib.import_module(sys.argv[1])
kiln = importlib.util.find_spec("kiln")
if kiln is not None:
    raise SystemExit(f"kiln is importable here, from {kiln.origin}: this environment is not clean")
if sys.argv[2]:
    runpy.run_path(sys.argv[2], run_name="__main__")
names = list(getattr(package, "__all__", ()))
where = torch.cuda.get_device_name() if torch.cuda.is_available() else "the engine"
print("KILN-TRIAL " + json.dumps([torch.__version__, platform.python_version(), len(names), where]))
)";

Result<fs::path> python_of(const TrialRequest& request, const build::World& world) {
  const std::string& where = request.where;
  for (const fs::path& path : {fs::path(where), fs::path(where) / "bin/python"})
    if (where.find('/') != where.npos && world.files.state(path).is_executable &&
        !world.files.state(path).is_directory)
      return path;
  if (where.find('/') != where.npos)
    return Error{Fault::Usage, fmt::format("cannot try the wheel in {}", where),
                 "it is neither a Python nor an environment",
                 "--try torch==2.7.1, or the folder of a virtual environment that has torch"};
  fs::path python = system_python(world);
  if (python.empty())
    return Error{
        Fault::Environment, "cannot try the wheel", "python3 is not on PATH",
        "install one, or name the folder of a virtual environment with torch: --try FOLDER"};
  auto made = environment_with("try", python, {where}, request.may_install, world);
  if (!made && !request.may_install)
    return Error{Fault::Environment, "cannot try the wheel",
                 "no earlier trial installed it, and --offline installs nothing",
                 "run it once without --offline, or name an environment that has torch"};
  return made;
}

// Of this process's variables what a new shell would have: no PYTHONPATH that brings kiln or
// another torch.
sys::Environment clean_environment(const fs::path& packages, const build::World& world) {
  sys::Environment env = world.env;
  for (const char* name : {"PYTHONHOME", "PYTHONSTARTUP", "KILN_HOME", "KILN_BIN"}) env.unset(name);
  env.set("PYTHONPATH", packages.string());
  env.set("PYTHONNOUSERSITE", "1");
  env.set("PYTHONDONTWRITEBYTECODE", "1");
  if (auto home = project::find_home(world.env); home && !env.get("KILN_ENGINE"))
    env.set("KILN_ENGINE", (home->root / "lib/libkiln_engine.so").string());
  return env;
}

std::string tail_of(std::string_view text) {
  auto lines = text::lines(text::trim(text));
  std::string out;
  for (size_t i = lines.size() > 6 ? lines.size() - 6 : 0; i < lines.size(); ++i)
    out += (out.empty() ? "" : "\n                ") + std::string(lines[i]);
  return out;
}

struct Folder {
  fs::path path;
  sys::Files& files;
  ~Folder() { (void)files.remove(path); }
};

}  // namespace

Finding try_wheel(const TrialRequest& request, const build::World& world) {
  std::string area = "try";
  auto failed = [&](std::string why, std::string fix = "") {
    return Finding{Verdict::Fault, area, fmt::format("{}: {}", request.where, why), std::move(fix)};
  };
  auto python = python_of(request, world);
  if (!python) return failed(python.error().why, python.error().fix);
  auto made = sys::make_temporary_folder("kiln-try");
  if (!made) return failed(made.error().why);
  Folder folder{*made, world.files};

  double begun = sys::now_seconds();
  sys::ProcessSpec install;
  install.arguments = {python->string(),
                       "-m",
                       "pip",
                       "install",
                       "-q",
                       "--no-deps",
                       "--no-index",
                       "--no-cache-dir",
                       "--target",
                       (folder.path / "p").string(),
                       request.wheel.string()};
  install.env = clean_environment(folder.path, world);
  install.limit_s = kTrialSeconds;
  auto installed = world.processes.run(install);
  if (!installed) return failed(installed.error().why);
  if (installed->exit_code != 0) return failed("pip rejects it: " + tail_of(installed->out));

  sys::ProcessSpec use;
  use.arguments = {python->string(), "-c", kScript, request.package, request.smoke.string()};
  use.directory = folder.path;
  use.env = clean_environment(folder.path / "p", world);
  use.limit_s = kTrialSeconds;
  auto used = world.processes.run(use);
  if (!used) return failed(used.error().why);
  size_t at = used->out.rfind(kMark);
  if (used->exit_code != 0 || at == used->out.npos) return failed(tail_of(used->out));
  std::string_view line = text::lines(std::string_view(used->out).substr(at + kMark.size()))[0];
  auto facts = parse_json(line, "the trial's answer");
  const bool whole = facts && facts->is_array() && facts->size() == 4 && facts->at(0).is_string() &&
                     facts->at(1).is_string() && facts->at(3).is_string();
  if (!whole) return failed("its answer cannot be read");
  std::string smoke = request.smoke.empty() ? "imported (no smoke.py)"
                                            : request.smoke.filename().string() + " passed";
  return {Verdict::Good, area,
          fmt::format("torch {}, Python {}, {}: {}, {}", facts->at(0).get<std::string>(),
                      facts->at(1).get<std::string>(), facts->at(3).get<std::string>(), smoke,
                      text::duration(sys::now_seconds() - begun)),
          ""};
}

}  // namespace kiln::ship
