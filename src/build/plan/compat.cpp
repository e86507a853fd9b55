// SPDX-License-Identifier: Apache-2.0
// Which headers does a source get that includes torch's: kiln's compat headers, or torch's own?
#include "build/plan/compat.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/text.h"
#include "binary/symbols.h"
#include "build/plan/flags.h"
#include "build/plan/light_headers.h"

namespace kiln::build {

namespace {

struct Python {
  fs::path torch;    // the package
  fs::path include;  // Python.h
};

// What torch's own headers say of themselves: "#error C++20 or later compatible compiler is
// required to use ATen." in torch 2.15, C++17 in 2.13.
int language_of_torch(const fs::path& package, const sys::Files& files) {
  constexpr int kOldest = 17;
  auto header = files.read(package / "include" / "ATen" / "ATen.h");
  if (!header) return kOldest;
  for (std::string_view line : text::lines(*header)) {
    if (line.find("#error") == line.npos || line.find(" or later") == line.npos) continue;
    return std::max(kOldest, language_year(line.substr(0, line.find(" or later"))));
  }
  return kOldest;
}

// Asked of the Python that will load the result; torch itself is not imported, which would take
// seconds. Python.h alone comes from a Python without torch too.
Result<Python> ask_python(const World& world, bool needs_torch) {
  std::string path = world.env.get("PATH").value_or("/usr/bin:/bin");
  std::vector<fs::path> candidates;
  if (auto chosen = world.env.get("KILN_PYTHON")) candidates.emplace_back(*chosen);
  if (auto environment = world.env.get("VIRTUAL_ENV"))
    candidates.push_back(fs::path(*environment) / "bin" / "python3");
  candidates.push_back(sys::find_program(world.files, "python3", path));
  std::optional<Python> without_torch;
  for (const fs::path& python : candidates) {
    if (python.empty()) continue;
    sys::ProcessSpec spec;
    spec.arguments = {python.string(), "-c",
                      "import importlib.util as u, sysconfig\n"
                      "s = u.find_spec('torch')\n"
                      "print('kiln-torch', s.submodule_search_locations[0] if s else '')\n"
                      "print('kiln-include', sysconfig.get_paths()['include'])"};
    spec.env = world.env;
    auto result = world.processes.run(spec);
    if (!result || result->exit_code) continue;
    Python found;
    for (std::string_view line : text::lines(result->out)) {
      if (line.starts_with("kiln-torch ")) found.torch = fs::path(text::trim(line.substr(11)));
      if (line.starts_with("kiln-include ")) found.include = fs::path(text::trim(line.substr(13)));
    }
    if (!found.torch.empty()) return found;
    if (!without_torch) without_torch = found;
  }
  if (without_torch && !needs_torch) return *without_torch;
  return Error{Fault::Environment, "cannot build with torch's own headers",
               "no python3 here has torch installed", "set KILN_PYTHON to the Python that has it"};
}

// A setup.py may name torch's folders itself, in include_dirs or among the flags.
void leave_out_torchs_folders(Plan& plan, const sys::Files& files) {
  std::erase_if(plan.includes,
                [&](const fs::path& folder) { return holds_torchs_headers(files, folder); });
  for (std::vector<std::string>* flags : {&plan.cflags, &plan.cuda_flags}) {
    for (size_t i = 0; i < flags->size();) {
      std::string_view flag = (*flags)[i];
      size_t words = 1;
      std::string_view folder;
      for (std::string_view option : {"-isystem", "-I"}) {
        if (!flag.starts_with(option)) continue;
        words = flag == option ? 2 : 1;
        if (words == 1) folder = flag.substr(option.size());
        if (words == 2 && i + 1 < flags->size()) folder = (*flags)[i + 1];
        break;
      }
      bool torchs = !folder.empty() && holds_torchs_headers(files, folder);
      auto at = flags->begin() + static_cast<std::ptrdiff_t>(i);
      if (torchs)
        flags->erase(at, at + static_cast<std::ptrdiff_t>(words));
      else
        i += words;
    }
  }
}

// `f(at::kc::Tensor)`: the inline namespace is the compat headers' own and says nothing to an
// author.
std::string as_written(std::string name) {
  for (std::string_view space : {"at", "c10", "torch", "pybind11"})
    name = text::replace_all(name, fmt::format("{}::kc::", space), fmt::format("{}::", space));
  return name;
}

bool is_over_torchs_types(std::string_view name) {
  for (std::string_view space : {"at::", "c10::", "torch::", "pybind11::"})
    for (size_t at = name.find(space); at != std::string_view::npos; at = name.find(space, at + 1))
      if (at == 0 || std::string_view(" (,<&*").find(name[at - 1]) != std::string_view::npos)
        return true;
  return false;
}

bool comes_with_the_system(std::string_view library) {
  for (std::string_view name :
       {"libstdc++.", "libm.", "libc.", "libgcc_s.", "libdl.", "libpthread.", "librt.", "ld-"})
    if (library.starts_with(name)) return true;
  return false;
}

// When is a header included, of those that a source names nothing of? c10::Half has conversions to
// __half only after cuda_fp16.h, so headers of the toolkit and of the compiler come first, and one
// with members of Tensor before all that declare that.
int turn(std::string_view header) {
  for (std::string_view folder : {"kiln/", "c10/", "ATen/", "torch/", "pybind11/"})
    if (header.starts_with(folder)) return header == kMoreOpsHeader ? 1 : 2;
  return 0;
}

}  // namespace

bool holds_torchs_headers(const sys::Files& files, const fs::path& folder) {
  for (const char* header : {"ATen/ATen.h", "torch/torch.h"})
    if (files.state(folder / header).is_file()) return true;
  return false;
}

Result<fs::path> torch_package(const World& world) {
  TRY(Python python, ask_python(world, true));
  return python.torch;
}

Result<std::vector<fs::path>> torchs_folders(const World& world) {
  TRY(Python python, ask_python(world, true));
  return std::vector<fs::path>{python.torch / "include",
                               python.torch / "include/torch/csrc/api/include", python.include};
}

Status choose_torch_headers(Plan& plan, const Request& request, const World& world,
                            const HeaderChoice& choice) {
  bool torchs_own = choice.torchs_own;
  bool any = std::any_of(plan.sources.begin(), plan.sources.end(),
                         [](const Source& s) { return !s.facts.torch_header.empty(); });
  if (!any) return {};
  std::set<std::string> leaked = choice.added;
  for (const Source& source : plan.sources) {
    leaked.insert(source.facts.leaked.begin(), source.facts.leaked.end());
    if (torchs_own || request.compat == "never" || source.facts.torch_header.empty()) continue;
    if (auto lack = remembered(source, world)) {
      leaked.insert(lack->added.begin(), lack->added.end());
      if (!lack->added.empty() || request.compat != "auto") continue;
      torchs_own = true;
      if (world.on_note)
        world.on_note(
            fmt::format("{}: with torch's own headers, as before: kiln's compat headers lack {}",
                        source.shown, lack->symbol));
    }
  }
  plan.leaked.assign(leaked.begin(), leaked.end());
  std::stable_sort(plan.leaked.begin(), plan.leaked.end(),
                   [](const std::string& a, const std::string& b) { return turn(a) < turn(b); });
  plan.torch =
      torchs_own || request.compat == "never" ? TorchHeaders::Torchs : TorchHeaders::Compat;
  if (plan.torch == TorchHeaders::Compat) leave_out_torchs_folders(plan, world.files);
  bool wants_light = std::any_of(leaked.begin(), leaked.end(), needs_light_headers);
  for (const Source& source : plan.sources)
    for (const std::string& header : source.facts.torch_headers) {
      // pybind11's own, in the compat headers' form, costs no look at Python.
      if (header == "pybind11/pybind11.h" || header == "pybind11/stl.h") continue;
      wants_light |= needs_light_headers(header);
      plan.stable_torch |= is_stable_header(header);
    }
  bool wants_python = wants_light || leaked.contains("Python.h");
  if (plan.torch == TorchHeaders::Compat && !wants_python) return {};
  TRY(Python python, ask_python(world, wants_light || plan.torch == TorchHeaders::Torchs));
  plan.torch_package = python.torch;
  plan.python_include = python.include;
  if (wants_light && plan.torch == TorchHeaders::Compat) {
    TRY(plan.light_headers, make_light_folder(python.torch, world));
  }
  if (plan.torch == TorchHeaders::Torchs)
    plan.torch_language = language_of_torch(python.torch, world.files);
  plan.torch_has_cuda = world.files.state(python.torch / "lib" / "libtorch_cuda.so").is_file();
  return {};
}

Status check_open_names(const Plan& plan, std::string_view library) {
  auto elf = binary::read_elf(std::as_bytes(std::span(library)));
  if (!elf) return {};
  auto dynamic = binary::read_dynamic(*elf);
  const binary::ElfSection* table = elf->find_type(binary::kSectionDynamicSymbols);
  auto symbols =
      table ? binary::read_symbols(*elf, *table) : Result<std::vector<binary::Symbol>>(Error{});
  if (!symbols || !dynamic) return {};
  // Whoever tells the linker to leave names open means it.
  for (const std::string& flag : plan.ldflags)
    if (flag.find("--unresolved-symbols=") != std::string::npos) return {};
  // Another library may have it: the loader will see.
  if (!std::all_of(dynamic->needed.begin(), dynamic->needed.end(), comes_with_the_system))
    return {};
  for (const binary::Symbol& symbol : *symbols) {
    constexpr uint8_t kWeak = 2;
    if (symbol.defined() || symbol.binding == kWeak) continue;
    std::string name = binary::demangle(symbol.name);
    if (!is_over_torchs_types(name)) continue;
    std::string what = fmt::format("link lib{}.so", plan.name);
    std::string why =
        fmt::format("'{}' {}: no source of the library defines it", as_written(name), kMixedSign);
    if (plan.ldflags.empty())
      return Error{Fault::Usage, what, why, "name the source that defines it too"};
    return Error{Fault::Work, what,
                 why +
                     ", and an object that was compiled with torch's own headers is not compatible "
                     "with kiln's compat headers",
                 "--compat=never builds with torch's own headers"};
  }
  return {};
}

std::vector<std::string> language_notes(const Plan& plan, const World& world) {
  std::vector<std::string> notes;
  if (plan.torch == TorchHeaders::None) return notes;
  const int demanded = [&] {
    if (plan.torch == TorchHeaders::Torchs) return plan.torch_language;
    const auto is_asked = [](const Words& flags) { return !asked_language(flags).empty(); };
    if (!is_asked(plan.cflags) && !is_asked(plan.cuda_flags)) return 0;
    auto package = torch_package(world);  // starts Python
    return package ? language_of_torch(*package, world.files) : 0;
  }();
  for (const Words* flags : {&plan.cflags, &plan.cuda_flags}) {
    const std::string asked = asked_language(*flags);
    if (asked.empty() || language_year(asked) >= demanded) continue;
    std::string note =
        plan.torch == TorchHeaders::Torchs
            ? fmt::format("-std={}: torch's own headers require C++{}: compiling with -std=c++{}",
                          asked, demanded, demanded)
            : fmt::format(
                  "-std={}: torch's own headers require C++{}; kiln's compat headers do "
                  "not, so the flag is kept",
                  asked, demanded);
    if (notes.empty() || notes.back() != note) notes.push_back(std::move(note));
  }
  return notes;
}

std::vector<std::string> torch_compile_flags(const Plan& plan, bool cuda) {
  std::vector<std::string> flags;
  if (plan.torch == TorchHeaders::None) return flags;
  flags.push_back("-DTORCH_EXTENSION_NAME=" + plan.name);
  flags.emplace_back("-DTORCH_API_INCLUDE_EXTENSION_H");
  // As torch.utils.cpp_extension has them: the same source must mean the same.
  if (cuda)
    for (const char* name : {"-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
                             "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"})
      flags.emplace_back(name);
  if (plan.torch == TorchHeaders::Compat) {
    if (plan.stable_torch) flags.push_back("-I" + plan.light_headers.string());
    flags.push_back("-I" + plan.home.compat().string());
    if (!plan.stable_torch && !plan.light_headers.empty()) {
      flags.emplace_back("-isystem");
      flags.push_back(plan.light_headers.string());
    }
    if (!plan.python_include.empty()) {
      flags.emplace_back("-isystem");
      flags.push_back(plan.python_include.string());
    }
    for (const std::string& header : plan.leaked) {
      // C++ sources find CUDA's headers where there is a toolkit.
      if (!cuda && header.starts_with("cuda") && plan.cuda_include.empty()) continue;
      // CCCL's lie in a folder of which nvcc alone knows.
      if (!cuda && (header.starts_with("thrust/") || header.starts_with("cuda/"))) continue;
      flags.emplace_back("-include");
      flags.push_back(header);
    }
    return flags;
  }
  for (const fs::path& folder :
       {plan.torch_package / "include", plan.torch_package / "include/torch/csrc/api/include",
        plan.python_include}) {
    flags.emplace_back("-isystem");
    flags.push_back(folder.string());
  }
  return flags;
}

std::vector<std::string> torch_link_words(const Plan& plan) {
  if (plan.torch == TorchHeaders::None) return {};
  const bool compat = plan.torch == TorchHeaders::Compat;
  if (compat && !plan.stable_torch) return {plan.home.compat_archive().string()};
  std::string folder = (plan.torch_package / "lib").string();
  std::vector<std::string> words;
  // The stable API calls functions of torch's libraries by name; those are in the process already.
  if (compat)
    words = {plan.home.compat_archive().string(), "-L" + folder, "-ltorch_cpu"};
  else
    words = {"-L" + folder, "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"};
  // A torch for CPUs has no libtorch_cuda.so, and a source with kernels may still be built next to
  // it.
  if (!plan.cuda_include.empty() && plan.torch_has_cuda) {
    if (!compat) words.emplace_back("-lc10_cuda");
    words.emplace_back("-ltorch_cuda");
  }
  return words;
}

}  // namespace kiln::build
