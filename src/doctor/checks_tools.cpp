// SPDX-License-Identifier: Apache-2.0
// Are the programs that build here, of a version that works, and do they fit each other?
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"
#include "doctor/check.h"
#include "inspect/wheel_tag.h"

namespace kiln::doctor {

namespace {

using inspect::compare_versions;

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/')); }

std::string add_to_path(const std::string& file) {
  return fmt::format("export PATH={}:$PATH", text::shell_quote(folder_of(file)));
}

// "c++14" of the last -std= in flags, where it is older than C++17.
std::string old_standard(std::string_view flags) {
  std::string last;
  for (std::string_view word : text::split_any(flags, " \t\n\"',[]")) {
    for (std::string_view mark : {"-std=", "--std="})
      if (word.starts_with(mark)) last = std::string(word.substr(mark.size()));
  }
  for (std::string_view old : {"c++98", "c++03", "c++0x", "c++11", "c++1y", "c++14", "gnu++98",
                               "gnu++03", "gnu++0x", "gnu++11", "gnu++1y", "gnu++14"})
    if (last == old) return last;
  return "";
}

}  // namespace

Finding check_ninja(const Facts& facts) {
  const Program& ninja = facts.ninja;
  if (!ninja.found())
    return fail("ninja is not on PATH or in a Python package: nothing can be built", "kiln setup",
                Cure::Ninja);
  if (!ninja.trouble.empty())
    return fail(fmt::format("{} does not run: {}", ninja.path, ninja.trouble), "kiln setup",
                Cure::Ninja);
  if (!ninja.version.empty() && compare_versions(ninja.version, kOldestNinja) < 0)
    return fail(
        fmt::format("ninja {} at {} is older than {}", ninja.version, ninja.path, kOldestNinja),
        "kiln setup", Cure::Ninja);
  bool enough = ninja.kiln_finds && !facts.torch.found();  // nobody but kiln looks for it
  if (!ninja.on_path && !enough)
    return warn(fmt::format("ninja {} is at {}, which is not on PATH as `ninja`", ninja.version,
                            ninja.path),
                ninja.path.ends_with("/ninja") ? add_to_path(ninja.path) : "kiln setup",
                Cure::Environment);
  return ok(fmt::format("ninja {}", ninja.version));
}

Finding check_cuda_home(const Facts& facts) {
  const Toolkit& toolkit = facts.toolkit;
  bool variable_lies = !toolkit.cuda_home.empty() && !toolkit.cuda_home_has_nvcc;
  if (!toolkit.nvcc.found()) {
    std::string where = variable_lies ? fmt::format("{}={} has no bin/nvcc, and none is",
                                                    toolkit.cuda_home_variable, toolkit.cuda_home)
                                      : "no nvcc is";
    return fail(where + " on PATH, in /usr/local/cuda* or in Python packages", "kiln setup",
                Cure::Nvcc);
  }
  if (!toolkit.nvcc.trouble.empty())
    return fail(fmt::format("{} does not run: {}", toolkit.nvcc.path, toolkit.nvcc.trouble),
                "kiln setup", Cure::Nvcc);
  std::string set_home = fmt::format("export CUDA_HOME={}", text::shell_quote(toolkit.home));
  if (variable_lies)
    return fail(
        fmt::format("{} is {}, which has no bin/nvcc; nvcc {} is at {}", toolkit.cuda_home_variable,
                    toolkit.cuda_home, toolkit.nvcc.version, toolkit.nvcc.path),
        set_home, Cure::Environment);
  if (toolkit.home.empty())
    return warn(
        fmt::format("nvcc {} at {} has no include/cuda_runtime.h next to it", toolkit.nvcc.version,
                    toolkit.nvcc.path),
        "kiln setup, or install the toolkit's cudart headers (apt install cuda-cudart-dev-13-0)",
        Cure::Nvcc);
  bool enough = toolkit.nvcc.kiln_finds && !facts.torch.found();
  if (!toolkit.nvcc.on_path && toolkit.cuda_home.empty() && !enough)
    return warn(fmt::format("nvcc {} is at {}; neither PATH nor CUDA_HOME leads there",
                            toolkit.nvcc.version, toolkit.nvcc.path),
                set_home, Cure::Environment);
  return ok(fmt::format("nvcc {} in {}", toolkit.nvcc.version, toolkit.home));
}

Finding check_arch_supported(const Facts& facts) {
  const std::string& list_text = facts.variables.arch_list;
  if (!list_text.empty() && text::lower(list_text) != "native")
    if (auto list = project::parse_arch_list(list_text); !list)
      return fail(fmt::format("TORCH_CUDA_ARCH_LIST is '{}': {}", list_text, list.error().what),
                  fmt::format("export TORCH_CUDA_ARCH_LIST='{}'", fitting_arch(facts)),
                  Cure::Environment);
  auto asked = asked_archs(facts);
  if (!asked) return skip("no architecture is requested");
  if (facts.toolkit.archs.empty()) return skip("nvcc does not list its architectures");
  std::vector<std::string> refused;
  auto known = [&](const project::Arch& arch) {
    return std::any_of(facts.toolkit.archs.begin(), facts.toolkit.archs.end(),
                       [&](const project::Arch& one) {
                         return one.major == arch.major && one.minor == arch.minor;
                       });
  };
  for (const auto* side : {&asked->list.sass, &asked->list.ptx})
    for (const project::Arch& arch : *side)
      if (!known(arch) && std::find(refused.begin(), refused.end(), arch.text()) == refused.end())
        refused.push_back(arch.text());
  if (refused.empty())
    return ok(fmt::format("nvcc compiles for {}", project::describe(asked->list)));
  return fail(fmt::format("{} requests {}, which nvcc {} does not support; it supports {} to {}",
                          asked->by, text::join(refused, ", "), facts.toolkit.nvcc.version,
                          facts.toolkit.archs.front().text(), facts.toolkit.archs.back().text()),
              fmt::format("remove {} from {}", text::join(refused, ", "), asked->by));
}

Finding check_host_compiler(const Facts& facts) {
  const HostCompiler& host = facts.host;
  if (!host.program.found())
    return fail(host.program.trouble.empty() ? "no C++ compiler is on PATH" : host.program.trouble,
                "apt install g++, or set CXX");
  std::string name = fmt::format("{} {}", host.clang ? "clang" : "g++", host.program.version);
  int newest = host.clang ? facts.toolkit.newest_clang : facts.toolkit.newest_gcc;
  int major = major_of(host.program.version);
  if (!facts.toolkit.nvcc.found() || !newest || !major) return ok(name);
  if (major <= newest) return ok(fmt::format("{}; nvcc supports up to {}", name, newest));
  if (host.allow_unsupported)
    return ok(fmt::format("{}, newer than nvcc's limit {}, allowed by -allow-unsupported-compiler",
                          name, newest));
  return fail(fmt::format("{} at {}{} is newer than nvcc {} allows ({})", name, host.program.path,
                          host.named_by.empty() ? "" : " (" + host.named_by + ")",
                          facts.toolkit.nvcc.version, newest),
              fmt::format("export NVCC_CCBIN={}-{}", host.clang ? "clang++" : "g++", newest));
}

Finding check_cxx_standard(const Facts& facts) {
  struct Place {
    std::string_view name;
    std::string_view flags;
  };
  std::vector<Place> places = {
      {"CXXFLAGS", facts.variables.cxx_flags},
      {"NVCC_PREPEND_FLAGS or NVCC_APPEND_FLAGS", facts.variables.nvcc_flags}};
  if (facts.project) places.push_back({"the project's flags", facts.project->flags});
  for (const Place& place : places)
    if (std::string old = old_standard(place.flags); !old.empty())
      return fail(
          fmt::format("-std={} in {}: torch's headers and kiln/op.h need C++17", old, place.name),
          fmt::format("remove -std={} from {}", old, place.name));
  return ok("no flag requests a C++ standard older than 17");
}

Finding check_python_headers(const Facts& facts) {
  const Python& python = facts.python;
  if (!python.program.found()) return skip("no python3 on PATH; the kiln command does not need it");
  if (!python.program.trouble.empty())
    return warn(fmt::format("{} does not run: {}", python.program.path, python.program.trouble),
                "put a Python that runs before it on PATH, or export KILN_PYTHON");
  if (python.has_header) return ok(fmt::format("Python {} with Python.h", python.program.version));
  // Only who compiles against CPython's API misses it.
  std::string version = python.program.version.substr(0, python.program.version.rfind('.'));
  Finding finding =
      warn(fmt::format(
               "{} has no Python.h: setup.py and cpp_extension builds fail; kiln does not need it",
               python.include),
           fmt::format("apt install python{}-dev", version));
  if (facts.project && facts.project->setup_py) finding.verdict = Verdict::Fail;
  return finding;
}

Finding check_cuda_major(const Facts& facts) {
  if (!facts.torch.found()) return skip("no torch in this Python");
  if (facts.torch.cuda.empty()) return ok(fmt::format("torch {} for CPUs", facts.torch.version));
  if (!facts.toolkit.nvcc.found() || facts.toolkit.nvcc.version.empty())
    return skip("no nvcc to compare with");
  int torch_major = major_of(facts.torch.cuda), nvcc_major = major_of(facts.toolkit.nvcc.version);
  if (torch_major == nvcc_major)
    return ok(fmt::format("torch {} and nvcc {} are both CUDA {}", facts.torch.version,
                          facts.toolkit.nvcc.version, nvcc_major));
  std::string reason =
      fmt::format("nvcc is CUDA {}, torch {} is CUDA {}: cpp_extension refuses to build",
                  facts.toolkit.nvcc.version, facts.torch.version, facts.torch.cuda);
  std::string fix = fmt::format(
      "install nvcc {} and set CUDA_HOME, or build with kiln, whose libraries run on both",
      facts.torch.cuda);
  bool classic = facts.project && (facts.project->setup_py || facts.project->jit);
  return classic ? fail(reason, fix) : warn(reason, fix);
}

Finding check_two_cudarts(const Facts& facts) {
  int torch_major = major_of(facts.torch.cuda);
  const Cudart* first = nullptr;
  for (const Cudart& one : facts.cudarts) {
    bool of_process = one.from.starts_with("process");
    if (of_process && first && first->path != one.path)
      return fail(fmt::format("{} has two CUDA runtimes mapped: {} and {}; streams and handles of "
                              "one mean nothing to "
                              "the other",
                              one.from, first->path, one.path),
                  "link the library with kiln, which uses the runtime in the process, or against "
                  "torch's libcudart");
    if (of_process) {
      first = &one;
      continue;
    }
    if (torch_major && one.major && one.major != torch_major)
      return warn(
          fmt::format(
              "{} in {} comes before torch's CUDA {} runtime: a process can end up with both",
              one.path, one.from, facts.torch.cuda),
          fmt::format("remove {} from {}", folder_of(one.path), one.from));
  }
  if (facts.cudarts.empty()) return ok("no second libcudart");
  return ok(fmt::format("one libcudart: {}", facts.cudarts.front().path));
}

}  // namespace kiln::doctor
