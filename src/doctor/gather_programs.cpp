// SPDX-License-Identifier: Apache-2.0
// Where are ninja, nvcc, the host compiler, nvdisasm and ccache, and what are their versions?
// Looked for wherever people put them: what is there is never called missing.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"
#include "doctor/gather.h"
#include "inspect/wheel_tag.h"
#include "project/setup_folder.h"
#include "project/toolchain.h"

namespace kiln::doctor {

namespace {

using sys::fs::path;

struct Place {
  path file;
  bool on_path = false;
};

// PATH's first; then the places of which the shell does not know.
Place find(const Outside& outside, const std::string& name, const std::vector<path>& others) {
  path found = sys::find_program(outside.files, name, search_path(outside.env));
  if (!found.empty()) return {found, true};
  for (const path& file : others)
    if (sys::FileState state = outside.files.state(file); state.is_file() && state.is_executable)
      return {file, false};
  return {};
}

Program look(const Outside& outside, const Place& place, const char* option) {
  Program program;
  if (place.file.empty()) return program;
  program.path = place.file.string();
  program.on_path = place.on_path;
  Answer answer = ask(outside, {program.path, option});
  program.version = version_in(answer.text);
  program.trouble = answer.trouble;
  return program;
}

bool is_too_old(const Program& ninja) {
  return !ninja.version.empty() && inspect::compare_versions(ninja.version, kOldestNinja) < 0;
}

void gather_ninja(const Outside& outside, Facts& facts) {
  std::vector<path> others;
  path setup = project::setup_program(outside.files, outside.env, project::kSetupNinja);
  if (!setup.empty()) others.push_back(setup);
  if (!facts.python.program.path.empty()) {
    others.push_back(path(facts.python.prefix) / "bin/ninja");
    for (const std::string& packages : facts.python.packages) {
      others.push_back(path(packages) / "ninja/data/bin/ninja");
      others.push_back(path(packages) / "bin/ninja");
    }
  }
  for (const char* folder : {"/usr/local/bin", "/usr/bin", "/opt/conda/bin"})
    others.push_back(path(folder) / "ninja");
  if (auto home = outside.env.get("HOME")) others.push_back(path(*home) / ".local/bin/ninja");
  Place place = find(outside, "ninja", others);
  // Fedora's older name: it runs, and nobody who asks for `ninja` finds it.
  if (place.file.empty()) {
    place.file = sys::find_program(outside.files, "ninja-build", search_path(outside.env));
    place.on_path = false;
  }
  auto of_kiln = project::find_ninja(outside.files, outside.env);
  if (place.file.empty() && of_kiln) place.file = *of_kiln;
  facts.ninja = look(outside, place, "--version");
  // The one of PATH is why setup installed another, which kiln takes.
  if (!setup.empty() && place.file != setup &&
      (!facts.ninja.trouble.empty() || is_too_old(facts.ninja)))
    facts.ninja = look(outside, {setup, false}, "--version");
  facts.ninja.kiln_finds = static_cast<bool>(of_kiln);
}

std::vector<path> nvcc_places(const Outside& outside, const Facts& facts) {
  std::vector<path> out;
  if (path setup = facts.setup_folder; !setup.empty()) out.push_back(setup / project::kSetupNvcc);
  out.push_back("/usr/local/cuda/bin/nvcc");
  std::vector<std::string> names = outside.files.list("/usr/local");
  for (auto name = names.rbegin(); name != names.rend(); ++name)
    if (name->starts_with("cuda-")) out.push_back(path("/usr/local") / *name / "bin/nvcc");
  out.push_back("/opt/cuda/bin/nvcc");
  out.push_back("/usr/lib/nvidia-cuda-toolkit/bin/nvcc");
  if (auto conda = outside.env.get("CONDA_PREFIX")) out.push_back(path(*conda) / "bin/nvcc");
  for (const std::string& packages : facts.python.packages) {
    for (const char* folder : {"nvidia/cu13/bin/nvcc", "nvidia/cuda_nvcc/bin/nvcc"})
      out.push_back(path(packages) / folder);
  }
  return out;
}

// Next to the compiler; of a wrapper script where the real one says that it lives.
std::string toolkit_home(const Outside& outside, const path& nvcc) {
  auto real = outside.files.real_path(nvcc);
  path home = (real ? *real : nvcc).parent_path().parent_path();
  if (outside.files.state(home / "include/cuda_runtime.h").is_file()) return home.string();
  Answer answer = ask(outside, {nvcc.string(), "--dryrun", "-c", "x.cu"});
  for (std::string_view line : text::lines(answer.text)) {
    constexpr std::string_view kTop = "#$ TOP=";
    if (!line.starts_with(kTop)) continue;
    path top = path(std::string(text::trim(line.substr(kTop.size())))).lexically_normal();
    if (outside.files.state(top / "include/cuda_runtime.h").is_file()) return top.string();
  }
  return "";
}

void gather_toolkit(const Outside& outside, Facts& facts) {
  Toolkit& toolkit = facts.toolkit;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    auto value = outside.env.get(variable);
    if (!value || !toolkit.cuda_home.empty()) continue;
    toolkit.cuda_home = *value;
    toolkit.cuda_home_variable = variable;
    toolkit.cuda_home_has_nvcc = outside.files.state(path(*value) / "bin/nvcc").is_executable;
  }
  Place place;
  auto of_kiln = project::find_nvcc(outside.files, outside.env);
  if (of_kiln) {
    place.file = of_kiln->command.size() > 1 ? of_kiln->path : path(of_kiln->command[0]);
    // cpp_extension looks at the same places but for the packages next to kiln and of setup.
    place.on_path = outside.env.get("NVCC") || toolkit.cuda_home_has_nvcc ||
                    place.file == "/usr/local/cuda/bin/nvcc" ||
                    !sys::find_program(outside.files, "nvcc", search_path(outside.env)).empty();
  } else {
    place = find(outside, "nvcc", nvcc_places(outside, facts));
  }
  toolkit.nvcc.kiln_finds = static_cast<bool>(of_kiln);
  if (place.file.empty()) return;
  toolkit.nvcc.path = place.file.string();
  toolkit.nvcc.on_path = place.on_path;
  Answer answer = ask(outside, {toolkit.nvcc.path, "--version"});
  toolkit.nvcc.trouble = answer.trouble;
  size_t release = answer.text.find("release ");
  if (release != answer.text.npos) toolkit.nvcc.version = version_in(answer.text.substr(release));
  if (!toolkit.nvcc.trouble.empty()) return;
  if (toolkit.nvcc.version.empty()) {
    toolkit.nvcc.trouble = "it does not print its release";
    return;
  }
  Answer archs = ask(outside, {toolkit.nvcc.path, "--list-gpu-arch"});
  for (std::string_view word : text::split_any(archs.text, " \n"))
    if (word.starts_with("compute_"))
      if (auto list = project::parse_arch_list(word)) toolkit.archs.push_back(list->ptx[0]);
  std::sort(toolkit.archs.begin(), toolkit.archs.end());
  toolkit.home = toolkit_home(outside, place.file);
  auto config = outside.files.read(path(toolkit.home) / "include/crt/host_config.h");
  if (!config) return;
  toolkit.newest_gcc = newest_compiler(*config, "gcc");
  toolkit.newest_clang = newest_compiler(*config, "clang");
}

void gather_host(const Outside& outside, Facts& facts) {
  HostCompiler& host = facts.host;
  for (const char* variable : {"CXX", "NVCC_CCBIN"})
    if (host.named_by.empty() && outside.env.get(variable)) host.named_by = variable;
  host.allow_unsupported =
      facts.variables.nvcc_flags.find("-allow-unsupported-compiler") != std::string::npos;
  auto found = project::find_host_compiler(outside.files, outside.env);
  if (!found) {
    host.program.trouble = fmt::format("{}: {}", found.error().what, found.error().why);
    return;
  }
  host.program.path = found->path.string();
  Answer answer = ask(outside, {host.program.path, "--version"});
  host.clang = answer.text.find("clang") != std::string::npos;
  // "g++ (Debian 12.2.0-14) 12.2.0": the packager's comes first, and may be another.
  std::string first(text::lines(answer.text).empty() ? "" : text::lines(answer.text)[0]);
  size_t close = host.clang ? std::string::npos : first.rfind(')');
  host.program.version = version_in(close == std::string::npos ? first : first.substr(close + 1));
  if (host.program.version.empty()) host.program.version = version_in(first);
}

void gather_ccache(const Outside& outside, Facts& facts) {
  Ccache& ccache = facts.ccache;
  ccache.for_nvcc = facts.variables.nvcc.find("ccache") != std::string::npos ||
                    outside.env.get("CMAKE_CUDA_COMPILER_LAUNCHER").value_or("").find("ccache") !=
                        std::string::npos;
  ccache.program = look(outside, find(outside, "ccache", {}), "--version");
  if (!ccache.program.found() || !ccache.for_nvcc) return;
  std::string depend = outside.env.get("CCACHE_DEPEND").value_or("");
  ccache.depend_mode = !depend.empty() && depend != "0" && depend != "false";
  if (!ccache.depend_mode)
    ccache.depend_mode =
        text::trim(ask(outside, {ccache.program.path, "--get-config", "depend_mode"}).text) ==
        "true";
  Answer counts = ask(outside, {ccache.program.path, "--print-stats"});
  for (std::string_view line : text::lines(counts.text)) {
    auto words = text::split_any(line, "\t ");
    if (words.size() != 2) continue;
    int64_t count = text::to_int(words[1]).value_or(0);
    if (words[0] == "direct_cache_hit" || words[0] == "preprocessed_cache_hit")
      ccache.hits += count;
    if (words[0] == "cache_miss") ccache.misses += count;
  }
}

}  // namespace

int newest_compiler(std::string_view host_config, std::string_view name) {
  // "#error -- unsupported GNU version! gcc versions later than 15 are not supported!", "... clang
  // version is 19.x"
  int newest = 0;
  for (std::string_view line : text::lines(host_config)) {
    size_t at = line.find("#error");
    if (at == line.npos || line.find(name) == line.npos) continue;
    for (std::string_view mark : {"later than ", "less than "}) {
      size_t number = line.find(mark);
      if (number == line.npos) continue;
      std::string_view rest = line.substr(number + mark.size());
      size_t end = rest.find_first_not_of("0123456789");
      int value = static_cast<int>(text::to_int(rest.substr(0, end)).value_or(0));
      if (mark == "less than ") value -= 1;
      newest = std::max(newest, value);
    }
  }
  return newest;
}

void gather_programs(const Outside& outside, Facts& facts) {
  gather_ninja(outside, facts);
  gather_toolkit(outside, facts);
  gather_host(outside, facts);
  gather_ccache(outside, facts);
  std::vector<path> disassemblers;
  if (facts.toolkit.nvcc.found())
    disassemblers.push_back(path(facts.toolkit.nvcc.path).parent_path() / "nvdisasm");
  if (!facts.setup_folder.empty())
    disassemblers.push_back(path(facts.setup_folder) / project::kSetupNvdisasm);
  for (const std::string& packages : facts.python.packages)
    disassemblers.push_back(path(packages) / "nvidia/cu13/bin/nvdisasm");
  Place place = find(outside, "nvdisasm", disassemblers);
  facts.nvdisasm.path = place.file.string();
  facts.nvdisasm.on_path = place.on_path;
}

}  // namespace kiln::doctor
