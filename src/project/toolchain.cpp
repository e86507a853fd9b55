// SPDX-License-Identifier: Apache-2.0
// Which compilers make the code, and are they the same as last time?
#include "project/toolchain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "project/arch.h"
#include "project/home.h"
#include "project/setup_folder.h"

namespace kiln::project {

namespace {

using sys::fs::path;

// What nvcc starts, and what cicc links into device code: an update can replace one and keep nvcc
// itself.
constexpr const char* kNvccParts[] = {"nvcc",
                                      "cudafe++",
                                      "ptxas",
                                      "fatbinary",
                                      "nvcc.profile",
                                      "../nvvm/bin/cicc",
                                      "../nvvm/libdevice/libdevice.10.bc"};

// The time of change too, which nobody can set: a compiler swapped at the same path can have any
// other.
void take_part(const sys::Files& files, const path& program, Compiler& compiler) {
  sys::FileState state = files.state(program);
  if (!state.exists) return;
  compiler.parts.push_back(program.lexically_normal());
  compiler.identity += fmt::format("{} {} {} {}\n", program.lexically_normal().string(),
                                   state.size_bytes, state.mtime_ns, state.ctime_ns);
}

std::string search_path(const sys::Environment& env) {
  return env.get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
}

// The first words may be a launcher (ccache, sccache, distcc): each is looked up, the last one is
// the compiler.
Result<Compiler> from_words(const sys::Files& files, const sys::Environment& env,
                            const std::string& variable, const std::string& value) {
  Compiler compiler;
  std::vector<std::string> words = text::shell_split(value);
  if (words.empty())
    return Error{Fault::Environment, variable + " does not name a program", "it is empty",
                 "unset " + variable};
  size_t last_program = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    path found =
        words[i].starts_with('-') ? path() : sys::find_program(files, words[i], search_path(env));
    if (!found.empty()) last_program = i;
    if (i == 0 && found.empty())
      return Error{Fault::Environment, fmt::format("cannot find '{}'", words[0]),
                   fmt::format("{} is set to '{}'", variable, value),
                   fmt::format("correct or unset {}", variable)};
    compiler.command.push_back(found.empty() ? words[i] : found.string());
  }
  TRY(compiler.path, files.real_path(compiler.command[last_program]));
  for (size_t i = 0; i < last_program; ++i) take_part(files, compiler.command[i], compiler);
  return compiler;
}

Result<Compiler> from_path(const sys::Files& files, const path& program) {
  Compiler compiler;
  compiler.command = {program.string()};
  TRY(compiler.path, files.real_path(program));
  return compiler;
}

// /usr/local/cuda-13.0 and its like, where no link /usr/local/cuda leads to one of them.
path newest_toolkit(const sys::Files& files) {
  path newest;
  std::pair<int64_t, int64_t> best{0, 0};
  for (const std::string& name : files.list("/usr/local")) {
    auto words = text::split_any(name, "-.");
    if (words.size() < 2 || words[0] != "cuda") continue;
    std::pair version{text::to_int(words[1]).value_or(0),
                      words.size() > 2 ? text::to_int(words[2]).value_or(0) : 0};
    path nvcc = path("/usr/local") / name / "bin/nvcc";
    if (version <= best || !files.state(nvcc).is_executable) continue;
    best = version;
    newest = nvcc;
  }
  return newest;
}

// nvcc of PyPI's packages in one folder of Python's packages; CUDA 13's first.
path packaged_nvcc(const sys::Files& files, const path& site_packages) {
  for (const char* package : {"nvidia/cu13", "nvidia/cuda_nvcc"})
    if (path nvcc = site_packages / package / "bin/nvcc"; files.state(nvcc).is_executable)
      return nvcc;
  return {};
}

// The folders of packages of the Python on PATH: of a virtual environment, of the system, of the
// user.
std::vector<path> python_packages(const sys::Files& files, const sys::Environment& env) {
  std::vector<path> folders;
  auto add_versions = [&](const path& library, const char* name) {
    for (const std::string& version : files.list(library))
      if (version.starts_with("python3")) folders.push_back(library / version / name);
  };
  path python;
  for (const std::string& name :
       {env.get("KILN_PYTHON").value_or("python3"), std::string("python3"), std::string("python")})
    if (python.empty()) python = sys::find_program(files, name, search_path(env));
  if (python.empty()) return folders;
  // Not the link's target: the packages of an environment lie next to its own name for Python.
  std::vector<path> prefixes = {python.parent_path().parent_path()};
  if (auto real = files.real_path(python)) prefixes.push_back(real->parent_path().parent_path());
  if (auto home = env.get("HOME")) prefixes.push_back(path(*home) / ".local");
  prefixes.emplace_back("/usr/local");
  for (const path& prefix : prefixes)
    for (const char* name : {"site-packages", "dist-packages"}) add_versions(prefix / "lib", name);
  return folders;
}

Result<Compiler> locate_nvcc(const sys::Files& files, const sys::Environment& env) {
  if (auto nvcc = env.get("NVCC")) return from_words(files, env, "NVCC", *nvcc);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    auto home = env.get(variable);
    if (home && files.state(path(*home) / "bin/nvcc").is_executable)
      return from_path(files, path(*home) / "bin/nvcc");
  }
  if (path found = sys::find_program(files, "nvcc", search_path(env)); !found.empty())
    return from_path(files, found);
  if (files.state("/usr/local/cuda/bin/nvcc").is_executable)
    return from_path(files, "/usr/local/cuda/bin/nvcc");
  // Of PyPI's packages, next to this kiln in site-packages.
  if (auto home = find_home(env))
    if (path packaged = packaged_nvcc(files, home->root.parent_path()); !packaged.empty())
      return from_path(files, packaged);
  if (path installed = setup_program(files, env, kSetupNvcc); !installed.empty())
    return from_path(files, installed);
  if (path versioned = newest_toolkit(files); !versioned.empty())
    return from_path(files, versioned);
  for (const path& folder : python_packages(files, env))
    if (path packaged = packaged_nvcc(files, folder); !packaged.empty())
      return from_path(files, packaged);
  return Error{
      Fault::Environment, "cannot find nvcc, the CUDA compiler",
      "it is not in any of: NVCC, CUDA_HOME/bin, PATH, /usr/local/cuda*/bin, the folder of "
      "kiln setup, "
      "nvidia/cu13/bin and nvidia/cuda_nvcc/bin in the site-packages of kiln and of the "
      "Python on PATH",
      "kiln setup installs it; or the CUDA toolkit (apt install "
      "cuda-nvcc-13-0 "
      "cuda-cudart-dev-13-0, or "
      "conda install -c nvidia cuda-nvcc), or set CUDA_HOME to where it is"};
}

}  // namespace

std::string misleading_cuda_home(const sys::Files& files, const sys::Environment& env) {
  if (env.get("NVCC")) return "";
  std::string first;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    auto home = env.get(variable);
    if (!home) continue;
    if (files.state(path(*home) / "bin/nvcc").is_executable) return first;
    if (first.empty()) first = fmt::format("{}={} has no bin/nvcc", variable, *home);
  }
  return first;
}

Result<Compiler> find_nvcc(const sys::Files& files, const sys::Environment& env) {
  TRY(Compiler compiler, locate_nvcc(files, env));
  for (const char* part : kNvccParts)
    take_part(files, compiler.path.parent_path() / part, compiler);
  return compiler;
}

Result<HostCompiler> find_host_compiler(const sys::Files& files, const sys::Environment& env) {
  HostCompiler host;
  auto named = env.get("CXX");
  host.chosen = named.has_value();
  if (!named) named = env.get("NVCC_CCBIN");
  if (named) {
    TRY(static_cast<Compiler&>(host),
        from_words(files, env, host.chosen ? "CXX" : "NVCC_CCBIN", *named));
  } else {
    path found;
    for (const char* name : {"g++", "c++"})
      if (found.empty()) found = sys::find_program(files, name, search_path(env));
    if (found.empty())
      return Error{Fault::Environment, "cannot find a C++ compiler",
                   "neither g++ nor c++ is on PATH, and CXX is not set",
                   "apt install g++, or set CXX"};
    TRY(static_cast<Compiler&>(host), from_path(files, found));
  }
  take_part(files, host.path, host);
  // nvcc calls `gcc` of PATH when nobody chose for it.
  if (!host.chosen)
    if (path gcc = sys::find_program(files, "gcc", search_path(env)); !gcc.empty())
      if (auto real = files.real_path(gcc)) take_part(files, *real, host);
  return host;
}

Result<path> find_ninja(const sys::Files& files, const sys::Environment& env) {
  // Setup installs one only where that of PATH is missing or too old.
  if (path installed = setup_program(files, env, kSetupNinja); !installed.empty()) return installed;
  path found = sys::find_program(files, "ninja", search_path(env));
  if (!found.empty()) return found;
  // PyPI's, in the bin of the environment that this kiln is installed in:
  // lib/python3.x/site-packages/kiln.
  if (auto home = find_home(env))
    if (path beside = (home->root / "../../../../bin/ninja").lexically_normal();
        files.state(beside).is_executable)
      return beside;
  return Error{Fault::Environment, "cannot find ninja, which runs the build", "it is not on PATH",
               "kiln setup, or apt install ninja-build, or pip install ninja"};
}

std::string supported_archs(const Compiler& nvcc, sys::Processes& processes) {
  sys::ProcessSpec spec;
  spec.arguments = {nvcc.path.string(), "--list-gpu-code"};
  auto result = processes.run(spec);
  std::vector<Arch> archs;
  if (result && result->exit_code == 0)
    for (std::string_view word : text::split_any(result->out, " \n"))
      if (auto list = parse_arch_list(word); list && word.starts_with("sm_"))
        archs.push_back(list->sass[0]);
  std::ranges::stable_sort(archs, {}, [](const Arch& one) {  // nvcc has 11.0 before 10.3
    return std::pair(one.major, one.minor);
  });
  std::vector<std::string> names;
  for (const Arch& one : archs) names.push_back(one.text());
  return text::join(names, ", ");
}

}  // namespace kiln::project
