// SPDX-License-Identifier: Apache-2.0
// Which headers does a source get that includes torch's: kiln's compat headers, or torch's own?
#include "build/plan/compat.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "binary/symbols.h"
#include "project/own_cache.h"

namespace kiln::build {

namespace {

constexpr int kMemoryVersion = 1;
constexpr size_t kSourceDigits = 16;

Result<fs::path> memory_file(const fs::path& source, const World& world) {
  TRY(fs::path cache, project::own_cache_folder(world.files, world.env));
  return cache / "compat" / (hash_hex(source.string()).substr(0, kSourceDigits) + ".json");
}

// "/w/add.h" of "/w/add.h:14:7" and of "/w/add.h(14)".
fs::path file_of(std::string_view place) {
  for (size_t at = place.find_first_of(":("); at != std::string_view::npos;
       at = place.find_first_of(":(", at + 1))
    if (at + 1 < place.size() && place[at + 1] >= '0' && place[at + 1] <= '9')
      return place.substr(0, at);
  return place;
}

bool still_lacks(const std::string& hash, const std::string& symbol,
                 const Result<std::string>& content) {
  if (!content) return false;
  return hash == hash_hex(*content) ||
         (!symbol.empty() && content->find(symbol) != std::string::npos);
}

// A memory holds while the kiln is the same, and the source, and the header in which something was
// lacking, are as they were or still name it.
std::optional<Lack> remembered(const Source& source, const World& world) {
  auto file = memory_file(source.file, world);
  auto text = file ? world.files.read(*file) : Result<std::string>(std::string());
  auto json = text ? parse_json(*text, "compat memory") : Result<Json>(Json());
  if (!json || !json->is_object() || json->value("kiln_compat", 0) != kMemoryVersion)
    return std::nullopt;
  if (json->value("version", "") != KILN_VERSION_STRING) return std::nullopt;
  std::string symbol = json->value("symbol", ""), header = json->value("header", "");
  if (!still_lacks(json->value("content", ""), symbol, world.files.read(source.file)))
    return std::nullopt;
  if (!header.empty() &&
      !still_lacks(json->value("header_content", ""), symbol, world.files.read(header)))
    return std::nullopt;
  return Lack{source.shown, json->value("place", ""), symbol};
}

struct Python {
  fs::path torch;    // the package
  fs::path include;  // Python.h
};

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

// Whose fault is it? A syntax error is the author's, and another minute with torch's headers
// would not fix it.
constexpr std::string_view kOwnSigns[] = {
    "expected a ",  "expected an ", "expected ';'",
    "expected '}'", "expected ‘",   "unrecognized token",
    "unterminated", "stray ‘",      "was not declared in this scope; did you mean ‘std::"};

std::string_view quoted(std::string_view line) {
  for (auto [open, close] : {std::pair<std::string_view, std::string_view>{"\"", "\""},
                             {"‘", "’"},
                             {"'", "'"},
                             {"`", "'"}}) {
    size_t begin = line.find(open);
    if (begin == std::string_view::npos) continue;
    size_t end = line.find(close, begin + open.size());
    if (end != std::string_view::npos)
      return line.substr(begin + open.size(), end - begin - open.size());
  }
  return {};
}

// `namespace "pybind11" has no member "class_"`: the last quoted word says more than the first.
std::string symbol_in(std::string_view message) {
  if (size_t at = message.find(": No such file or directory"); at != std::string_view::npos) {
    std::string_view name = text::trim(message.substr(0, at));
    return std::string(
        name.substr(name.rfind(' ') == std::string_view::npos ? 0 : name.rfind(' ') + 1));
  }
  size_t member = message.find("has no member");
  if (member != std::string_view::npos) return std::string(quoted(message.substr(member)));
  return std::string(quoted(message));
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

constexpr std::string_view kMixedSign = "is left open";

}  // namespace

bool holds_torchs_headers(const sys::Files& files, const fs::path& folder) {
  for (const char* header : {"ATen/ATen.h", "torch/torch.h"})
    if (files.state(folder / header).is_file()) return true;
  return false;
}

Status choose_torch_headers(Plan& plan, const Request& request, const World& world,
                            bool torchs_own) {
  bool any = std::any_of(plan.sources.begin(), plan.sources.end(),
                         [](const Source& s) { return !s.facts.torch_header.empty(); });
  if (!any) return {};
  std::set<std::string> leaked;
  for (const Source& source : plan.sources) {
    leaked.insert(source.facts.leaked.begin(), source.facts.leaked.end());
    if (torchs_own || request.compat != "auto" || source.facts.torch_header.empty()) continue;
    if (auto lack = remembered(source, world)) {
      torchs_own = true;
      if (world.on_note)
        world.on_note(
            fmt::format("{}: with torch's own headers, as before: kiln's compat headers lack {}",
                        source.shown, lack->symbol));
    }
  }
  plan.leaked.assign(leaked.begin(), leaked.end());
  plan.torch =
      torchs_own || request.compat == "never" ? TorchHeaders::Torchs : TorchHeaders::Compat;
  if (plan.torch == TorchHeaders::Compat) leave_out_torchs_folders(plan, world.files);
  bool wants_python = leaked.contains("Python.h");
  if (plan.torch == TorchHeaders::Compat && !wants_python) return {};
  TRY(Python python, ask_python(world, plan.torch == TorchHeaders::Torchs));
  plan.torch_package = python.torch;
  plan.python_include = python.include;
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

std::optional<Lack> what_compat_lacks(const Error& error, const Plan& plan) {
  if (error.fault != Fault::Work) return std::nullopt;
  if (error.why.find(kMixedSign) != std::string::npos)
    return Lack{plan.sources[0].shown, "", std::string(quoted(std::string_view(error.why))), true};
  for (std::string_view line : text::lines(error.why)) {
    size_t at = line.find("error");
    bool undefined = line.find("undefined reference to") != std::string_view::npos;
    if (at == std::string_view::npos && !undefined) continue;
    for (std::string_view sign : kOwnSigns)
      if (line.find(sign) != std::string_view::npos) return std::nullopt;
    std::string_view message =
        undefined ? line.substr(line.find("undefined reference")) : line.substr(at);
    std::string place(text::trim(undefined ? line.substr(0, line.find("undefined reference"))
                                           : line.substr(0, at)));
    if (place.ends_with("fatal")) place.resize(place.size() - 5);
    while (place.ends_with(':') || place.ends_with(' ')) place.pop_back();
    std::string symbol = symbol_in(message);
    if (symbol.empty()) symbol = text::trim(message);
    Lack lack{plan.sources[0].shown, place, symbol};
    for (const Source& source : plan.sources)
      if (error.what.ends_with(source.file.filename().string())) lack.source = source.shown;
    return lack;
  }
  return std::nullopt;
}

void remember_lack(const Plan& plan, const World& world, const Lack& lack) {
  for (const Source& source : plan.sources) {
    if (source.shown != lack.source) continue;
    auto file = memory_file(source.file, world);
    auto content = world.files.read(source.file);
    if (!file || !content) return;
    Json memory = {{"kiln_compat", kMemoryVersion},
                   {"version", KILN_VERSION_STRING},
                   {"source", source.file.string()},
                   {"symbol", lack.symbol},
                   {"place", lack.place},
                   {"content", hash_hex(*content)}};
    fs::path header = file_of(lack.place);
    auto of_header = header.is_absolute() && header != source.file ? world.files.read(header)
                                                                   : Result<std::string>(Error{});
    if (of_header) {
      memory["header"] = header.string();
      memory["header_content"] = hash_hex(*of_header);
    }
    (void)world.files.make_directories(file->parent_path());
    (void)world.files.write(*file, dump(memory), sys::Durable::No);
  }
}

std::string fallback_note(const Lack& lack) {
  if (lack.mixed)
    return fmt::format(
        "{}: {} is in an object that was compiled with torch's own headers: building with those, "
        "which "
        "takes about a minute",
        lack.source, lack.symbol);
  return fmt::format(
      "{}: kiln's compat headers lack {}: building with torch's own headers, which takes about a "
      "minute",
      lack.place.empty() ? lack.source : lack.place, lack.symbol);
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
    flags.push_back("-I" + plan.home.compat().string());
    if (!plan.python_include.empty()) {
      flags.emplace_back("-isystem");
      flags.push_back(plan.python_include.string());
    }
    for (const std::string& header : plan.leaked) {
      if (!cuda && header.starts_with("cuda_")) continue;
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
  if (plan.torch == TorchHeaders::Compat) return {plan.home.compat_archive().string()};
  if (plan.torch != TorchHeaders::Torchs) return {};
  std::string folder = (plan.torch_package / "lib").string();
  std::vector<std::string> words = {"-L" + folder, "-lc10", "-ltorch_cpu", "-ltorch",
                                    "-ltorch_python"};
  // A torch for CPUs has no libtorch_cuda.so, and a source with kernels may still be built next to
  // it.
  if (!plan.cuda_include.empty() && plan.torch_has_cuda) {
    words.emplace_back("-lc10_cuda");
    words.emplace_back("-ltorch_cuda");
  }
  return words;
}

}  // namespace kiln::build
