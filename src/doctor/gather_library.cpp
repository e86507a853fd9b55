// SPDX-License-Identifier: Apache-2.0
// What does a library need, and would it find it here? All of it read by the views of `kiln
// inspect`.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "binary/symbols.h"
#include "doctor/gather.h"
#include "inspect/analysis.h"
#include "inspect/artifact.h"
#include "inspect/needs.h"

namespace kiln::doctor {

namespace {

using inspect::LoadedLibrary;

// The newest "GLIBC_2.36" that a library of the tree defines, as "2.36".
std::string newest_defined(const LoadedLibrary& library, std::string_view prefix) {
  if (library.bytes.empty()) return "";
  auto elf = binary::read_elf(library.bytes);
  if (!elf) return "";
  auto dynamic = binary::read_dynamic(*elf);
  if (!dynamic) return "";
  std::string newest;
  for (std::string_view version : dynamic->defined_versions) {
    if (!version.starts_with(prefix)) continue;
    std::string_view number = version.substr(prefix.size());
    if (number.empty() || number[0] < '0' || number[0] > '9') continue;
    if (newest.empty() || inspect::compare_versions(number, newest) > 0)
      newest = std::string(number);
  }
  return newest;
}

// "x" of x.cpython-311-aarch64-linux-gnu.so and x.abi3.so; empty for any other name.
std::string module_of(std::string_view file) {
  file = file.substr(file.rfind('/') + 1);
  if (!file.ends_with(".so")) return "";
  size_t dot = file.find('.');
  std::string_view rest = file.substr(dot + 1);
  if (rest.starts_with("cpython-") || rest.starts_with("abi3."))
    return std::string(file.substr(0, dot));
  return "";
}

void read_images(const inspect::Analysis& analysis, const Facts& facts, Library& library) {
  for (const inspect::ImageGroup& group : inspect::groups_of(analysis.images.images))
    if (std::find(library.images.begin(), library.images.end(), group.label) ==
        library.images.end())
      library.images.push_back(group.label);
  for (const project::Arch& arch : facts.gpu.archs) {
    auto served = inspect::service_for(analysis.images.images,
                                       static_cast<uint32_t>(arch.major * 10 + arch.minor));
    library.serves.push_back({arch, served.service == inspect::Service::Native,
                              served.service == inspect::Service::Jit});
  }
  library.driver_sass = analysis.floor.sass;
  library.driver_ptx = analysis.floor.ptx;
  library.why_sass = analysis.floor.why_sass;
  library.why_ptx = analysis.floor.why_ptx;
}

void read_needs(const inspect::SymbolView& view, Library& library) {
  for (size_t i = 1; i < view.libraries.size(); ++i) {
    const LoadedLibrary& one = view.libraries[i];
    if (one.name.starts_with("libcudart.so.")) library.cudarts.push_back(one.name);
    std::string parent =
        one.parent >= 0 ? view.libraries[static_cast<size_t>(one.parent)].name : "";
    if (one.path.empty() && one.member.empty())
      library.missing.push_back({one.name, one.parent == 0 ? library.name : parent, ""});
    else if (!one.by_loader && one.parent == 0)
      library.missing.push_back({one.name, library.name, one.path.parent_path().string()});
    if (one.name == "libc.so.6") library.glibc_here = newest_defined(one, "GLIBC_");
    if (one.name == "libstdc++.so.6") {
      library.glibcxx_here = newest_defined(one, "GLIBCXX_");
      library.glibcxx_file = one.path.string();
    }
  }
  library.glibc = view.floor.glibc;
  library.glibcxx = view.floor.glibcxx;
  std::vector<std::string> names;
  // What a library that is not there would have provided is known by its name alone.
  bool incomplete = std::any_of(library.missing.begin(), library.missing.end(),
                                [](const MissingLibrary& one) { return one.beside.empty(); });
  for (const inspect::NeededSymbol& needed : view.needed) {
    names.push_back(needed.symbol.name);
    library.uses_python |= needed.provider == "python";
    if (!needed.provider.empty() || needed.weak) continue;
    if (incomplete && needed.why.empty()) continue;
    if (needed.why.find("no torch is installed") != std::string::npos) continue;
    library.symbols.push_back({needed.symbol.name, needed.symbol.demangled, needed.why,
                               needed.why.find("_GLIBCXX_USE_CXX11_ABI") != std::string::npos});
  }
  library.built_for_torch = inspect::torch_range(names);
  for (const inspect::SymbolRow& symbol : view.defined) {
    library.is_kiln |= symbol.name.starts_with("kiln_");
    library.has_init |= symbol.name == "PyInit_" + library.module;
  }
}

Library read_library(const Outside& outside, const inspect::Artifact& file, const Facts& facts) {
  Library library;
  library.name = file.name;
  library.module = file.kind == inspect::FileKind::SharedLibrary ? module_of(file.name) : "";
  library.has_init = library.module.empty();
  library.shared = file.kind == inspect::FileKind::SharedLibrary;
  inspect::AnalyseOptions options;
  options.kernels = false;
  auto analysis = inspect::analyse(file, options);
  if (!analysis) {
    library.trouble = analysis.error().what + ": " + analysis.error().why;
    library.trouble_fix = analysis.error().fix;
    return library;
  }
  library.machine = analysis->machine;
  read_images(*analysis, facts, library);
  if (!analysis->images.faults.empty()) library.trouble = analysis->images.faults.front();
  // The loader's search on another CPU's file would find this CPU's libraries.
  if (!library.shared || (!library.machine.empty() && library.machine != facts.machine.cpu))
    return library;
  // The torch to compare with is that of the Python in use, which KILN_PYTHON may name.
  sys::Environment env = outside.env;
  if (facts.python.program.found())
    env.set("PATH", sys::fs::path(facts.python.program.path).parent_path().string() + ":" +
                        search_path(outside.env));
  auto view = inspect::read_symbol_view(file, outside.files, outside.processes, env, {});
  if (view)
    read_needs(*view, library);
  else
    library.trouble = view.error().what + ": " + view.error().why;
  return library;
}

}  // namespace

Wheel read_wheel_name(std::string_view file) {
  Wheel wheel;
  wheel.name = std::string(file.substr(file.rfind('/') + 1));
  std::string_view stem = wheel.name;
  if (stem.ends_with(".whl")) stem.remove_suffix(4);
  auto parts = text::split(stem, '-');
  if (parts.size() != 5 && parts.size() != 6) {
    wheel.trouble = "a wheel is named name-version-python-abi-platform.whl";
    return wheel;
  }
  size_t at = parts.size() - 3;
  for (std::string_view python : text::split(parts[at], '.'))
    for (std::string_view abi : text::split(parts[at + 1], '.'))
      for (std::string_view platform : text::split(parts[at + 2], '.'))
        wheel.tags.push_back(fmt::format("{}-{}-{}", python, abi, platform));
  return wheel;
}

Status gather_library(const Outside& outside, const sys::fs::path& file, const std::string& shown,
                      Facts& facts) {
  if (!outside.files.state(file).exists)
    return Error{Fault::Usage, fmt::format("cannot examine {}", shown), "there is no such file",
                 "kiln doctor path/to/library.so"};
  if (outside.files.state(file).is_directory)
    return Error{
        Fault::Usage, fmt::format("cannot examine {}", shown), "it is a folder, not a library",
        fmt::format("kiln doctor {} for a project; for a library the .so, .o, .a or .whl in it",
                    shown)};
  for (const char* ending : {".cu", ".cpp", ".cc", ".py", ".toml"})
    if (shown.ends_with(ending))
      return Error{Fault::Usage, fmt::format("cannot examine {}", shown),
                   "it is a source, not a library",
                   "kiln doctor FOLDER for a project, or the library that kiln build prints"};
  if (shown.ends_with(".whl")) facts.wheel = read_wheel_name(shown);
  auto opened = inspect::open_file(file, shown);
  if (!opened) {
    Library library;
    library.name = shown;
    library.trouble = opened.error().why;
    library.trouble_fix = "build or download it again";
    facts.libraries.push_back(std::move(library));
    return {};
  }
  for (inspect::Artifact& artifact : *opened)
    facts.libraries.push_back(read_library(outside, artifact, facts));
  return {};
}

}  // namespace kiln::doctor
