// SPDX-License-Identifier: Apache-2.0
// Would this library load here, and would its kernels run?
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"
#include "doctor/check.h"
#include "inspect/wheel_tag.h"

namespace kiln::doctor {

namespace {

using inspect::compare_versions;

bool is_torch_library(std::string_view name) {
  return name.starts_with("libc10") || name.starts_with("libtorch");
}

// The first finding that is not fine, else that of the last library; Skip without libraries.
template <class F>
Finding each_library(const Facts& facts, F one) {
  if (facts.libraries.empty()) return skip("no library was named");
  Finding result = skip("");
  for (const Library& library : facts.libraries) {
    if (!library.trouble.empty()) continue;
    Finding finding = one(library);
    if (finding.verdict > result.verdict) result = std::move(finding);
  }
  return result;
}

std::string more(size_t count) { return count > 1 ? fmt::format(" (and {} more)", count - 1) : ""; }

bool runs_here(const Facts& facts, const Library& library) {
  return library.machine.empty() || library.machine == facts.machine.cpu;
}

std::string kiln_rebuild(const Facts& facts) {
  return fmt::format("kiln build --arch {}", text::shell_quote(fitting_arch(facts)));
}

// "2.17" of "manylinux_2_17_x86_64" and of "manylinux2014_x86_64"; empty: the tag names none.
std::string glibc_of_tag(std::string_view platform) {
  constexpr std::pair<std::string_view, std::string_view> kOldNames[] = {
      {"manylinux2014_", "2.17"}, {"manylinux2010_", "2.12"}, {"manylinux1_", "2.5"}};
  for (const auto& [name, version] : kOldNames)
    if (platform.starts_with(name)) return std::string(version);
  auto words = text::split(platform, '_');
  if (words.size() < 3 || words[0] != "manylinux") return "";
  return fmt::format("{}.{}", words[1], words[2]);
}

}  // namespace

Finding check_cpu(const Facts& facts) {
  for (const Library& library : facts.libraries)
    if (!library.trouble.empty())
      return fail(fmt::format("{} cannot be read: {}", library.name, library.trouble),
                  library.trouble_fix.empty() ? "build or download it again" : library.trouble_fix);
  return each_library(facts, [&](const Library& library) {
    if (runs_here(facts, library)) return ok(fmt::format("{}: {}", library.name, library.machine));
    return fail(fmt::format("{} is for {}; this machine is {}", library.name, library.machine,
                            facts.machine.cpu),
                fmt::format("use the file that was built for {}", facts.machine.cpu));
  });
}

Finding check_missing_libraries(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    std::vector<const MissingLibrary*> gone, late;
    for (const MissingLibrary& one : library.missing) {
      if (one.name.starts_with("libcudart")) continue;
      (one.beside.empty() ? gone : late).push_back(&one);
    }
    if (!gone.empty()) {
      const MissingLibrary& one = *gone.front();
      if (is_torch_library(one.name))
        return fail(fmt::format("{} needs {}, and no torch is installed in this Python{}",
                                library.name, one.name, more(gone.size())),
                    "pip install torch, and import torch first; or rebuild with kiln build, which "
                    "links nothing of torch");
      return fail(fmt::format("{} needs {} (of {}), which the loader does not find{}", library.name,
                              one.name, one.needed_by, more(gone.size())),
                  fmt::format("install the package that has {}, or rebuild without it", one.name));
    }
    if (!late.empty())
      return warn(
          fmt::format("{} needs {}, which only {} has, and no RPATH leads there: it loads only "
                      "after `import torch`{}",
                      library.name, late.front()->name, late.front()->beside, more(late.size())),
          "import torch before it; or rebuild with kiln build, which links nothing of torch");
    return ok("all libraries are found");
  });
}

Finding check_cudart_major(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    int torch_major = major_of(facts.torch.cuda);
    for (const std::string& name : library.cudarts) {
      int major = major_of(name);
      bool missing = std::any_of(
          library.missing.begin(), library.missing.end(),
          [&](const MissingLibrary& one) { return one.name == name && one.beside.empty(); });
      if (torch_major && major && major != torch_major)
        return fail(fmt::format("{} needs {}; torch {} brings CUDA {}", library.name, name,
                                facts.torch.version, facts.torch.cuda),
                    fmt::format("rebuild it with nvcc {}, or with kiln build for CUDA 12 and 13",
                                facts.torch.cuda));
      if (missing)
        return fail(fmt::format("{} needs {}, which the loader does not find", library.name, name),
                    fmt::format("pip install nvidia-cuda-runtime{}, or rebuild with kiln build",
                                major == 12 ? "-cu12" : ""));
    }
    return ok(library.cudarts.empty() ? "it needs no libcudart by name"
                                      : "its libcudart is torch's");
  });
}

Finding check_torch_symbols(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    if (!runs_here(facts, library)) return skip("it is for another CPU");
    std::vector<const MissingSymbol*> gone;
    for (const MissingSymbol& one : library.symbols)
      if (!one.string_abi) gone.push_back(&one);
    if (gone.empty()) return ok("all symbols are found");
    std::string why =
        gone.front()->why.empty() ? "no library that it loads has it" : gone.front()->why;
    std::string built =
        library.built_for_torch.empty() ? "" : fmt::format("torch {}", library.built_for_torch);
    return fail(
        fmt::format("{}: undefined symbol {}: {}{}", library.name, gone.front()->demangled, why,
                    more(gone.size())),
        built.empty()
            ? "rebuild it here; kiln build makes a library for every torch since 2.7"
            : fmt::format(
                  "install {}, or rebuild it: kiln build makes a library for every torch since "
                  "2.7",
                  built));
  });
}

Finding check_string_abi(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    if (!runs_here(facts, library)) return skip("it is for another CPU");
    for (const MissingSymbol& one : library.symbols)
      if (one.string_abi)
        return fail(
            fmt::format("{}: undefined symbol {}: {}", library.name, one.demangled, one.why),
            "rebuild it with torch's own _GLIBCXX_USE_CXX11_ABI, or with kiln build, where it does "
            "not matter");
    return ok("its std::string is torch's");
  });
}

Finding check_module_init(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    if (library.module.empty()) return skip("its name is not that of an extension module");
    if (library.has_init) return ok(fmt::format("PyInit_{}", library.module));
    return fail(fmt::format("{} has the name of the module {}, but no PyInit_{}", library.name,
                            library.module, library.module),
                library.is_kiln
                    ? "kiln.load it, or torch.ops.load_library it"
                    : "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), or torch.ops.load_library it");
  });
}

Finding check_wheel_tag(const Facts& facts) {
  if (!facts.wheel) return skip("no wheel was named");
  const Wheel& wheel = *facts.wheel;
  if (!wheel.trouble.empty())
    return fail(fmt::format("{}: {}", wheel.name, wheel.trouble), "pip download it again");
  if (!facts.python.program.found()) return skip("no Python to compare with");
  auto words = text::split(facts.python.program.version, '.');
  int minor =
      words.size() > 1 && text::to_int(words[1]) ? static_cast<int>(*text::to_int(words[1])) : 0;
  std::string first_reason;
  for (const std::string& tag : wheel.tags) {
    auto parts = text::split(tag, '-');
    if (parts.size() != 3) continue;
    std::string_view python = parts[0], abi = parts[1], platform = parts[2];
    std::string own = fmt::format("cp3{}", minor), reason;
    bool any_python = python == "py3" || python == fmt::format("py3{}", minor);
    bool stable = abi == "abi3" && python.starts_with("cp3") &&
                  text::to_int(python.substr(3)).value_or(999) <= minor;
    if (!any_python && !stable && python != own)
      reason = fmt::format("it is for {}; this Python is {}", python, facts.python.program.version);
    bool any_platform = platform == "any";
    if (reason.empty() && !any_platform && !platform.ends_with(facts.machine.cpu))
      reason = fmt::format("it is for {}; this machine is {}", platform, facts.machine.cpu);
    std::string floor = glibc_of_tag(platform);
    if (reason.empty() && !floor.empty() && !facts.machine.glibc.empty() &&
        compare_versions(floor, facts.machine.glibc) > 0)
      reason = fmt::format("it is for glibc {} and newer; this machine has {}", floor,
                           facts.machine.glibc);
    if (reason.empty() && platform.starts_with("musllinux_") && !facts.machine.glibc.empty())
      reason = fmt::format("it is for systems with musl (Alpine); this one has glibc {}",
                           facts.machine.glibc);
    if (reason.empty()) return ok(fmt::format("{} fits this Python and CPU", tag));
    if (first_reason.empty()) first_reason = reason;
  }
  return fail(fmt::format("{}: {}", wheel.name,
                          first_reason.empty() ? "its tags cannot be read" : first_reason),
              "get the wheel for this machine; kiln wheel makes one for every Python");
}

Finding check_glibc(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    if (!runs_here(facts, library) || library.glibc.empty() || library.glibc_here.empty())
      return skip("not known");
    if (compare_versions(library.glibc, library.glibc_here) <= 0)
      return ok(
          fmt::format("needs glibc {}, this machine has {}", library.glibc, library.glibc_here));
    return fail(fmt::format("{} needs GLIBC_{}; this machine has glibc {}", library.name,
                            library.glibc, library.glibc_here),
                "build it on an older system, or with kiln build, whose floor is glibc 2.17");
  });
}

Finding check_glibcxx(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    if (!runs_here(facts, library) || library.glibcxx.empty() || library.glibcxx_here.empty())
      return skip("it needs no libstdc++");
    if (compare_versions(library.glibcxx, library.glibcxx_here) <= 0)
      return ok(fmt::format("needs GLIBCXX_{}, this machine has {}", library.glibcxx,
                            library.glibcxx_here));
    return fail(
        fmt::format("{} needs GLIBCXX_{}; {} has {}", library.name, library.glibcxx,
                    library.glibcxx_file, library.glibcxx_here),
        facts.variables.library_path.empty()
            ? "install a newer libstdc++ (conda install -c conda-forge libstdcxx-ng), or rebuild "
              "with an older g++"
            : fmt::format("LD_LIBRARY_PATH is {}: remove the folder with the old libstdc++",
                          facts.variables.library_path));
  });
}

Finding check_kernel_image(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    if (library.images.empty()) return skip("it contains no GPU code");
    std::string holds = text::join(library.images, ", ");
    if (library.serves.empty()) return ok(fmt::format("{}: {}", library.name, holds));
    for (const Library::Serves& one : library.serves)
      if (!one.native && !one.jit)
        return fail(
            fmt::format(
                "{} contains {}; this GPU is sm_{}, and none of its PTX can be compiled for it",
                library.name, holds, one.gpu.number()),
            kiln_rebuild(facts));
    for (const Library::Serves& one : library.serves)
      if (!one.native)
        return warn(fmt::format("{} contains {} and no SASS for sm_{}: the driver compiles its PTX "
                                "at the first call",
                                library.name, holds, one.gpu.number()),
                    kiln_rebuild(facts));
    return ok(fmt::format("{} has SASS for the GPU here", library.name));
  });
}

Finding check_ptx_driver(const Facts& facts) {
  return each_library(facts, [&](const Library& library) {
    int driver = major_of(facts.gpu.driver);
    if (library.images.empty()) return skip("it contains no GPU code");
    int floor = std::max(library.driver_sass, library.driver_ptx);
    if (!driver)
      return ok(floor ? fmt::format("its code needs driver {} or newer", floor)
                      : "no driver on this machine");
    bool native = !library.serves.empty() &&
                  std::all_of(library.serves.begin(), library.serves.end(),
                              [](const Library::Serves& one) { return one.native; });
    if (library.driver_sass > driver)
      return fail(
          fmt::format(
              "{} was compiled by {}; its code needs driver {} or newer, this machine has {}",
              library.name, library.why_sass, library.driver_sass, facts.gpu.driver),
          fmt::format("update the driver to {}, or build with an older nvcc", library.driver_sass));
    if (!native && library.driver_ptx > driver)
      return fail(
          fmt::format("{} has {}, which driver {} cannot compile ({} can)", library.name,
                      library.why_ptx, facts.gpu.driver, library.driver_ptx),
          fmt::format("update the driver to {}, or {}", library.driver_ptx, kiln_rebuild(facts)));
    return ok(fmt::format("driver {} is new enough", facts.gpu.driver));
  });
}

}  // namespace kiln::doctor
