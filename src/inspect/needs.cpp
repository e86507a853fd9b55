// SPDX-License-Identifier: Apache-2.0
// Who provides each symbol that a library needs, and where nobody does, why?
#include "inspect/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/text.h"

namespace kiln::inspect {
namespace {

using binary::Symbol;
using sys::fs::path;

struct TorchSymbol {
  std::string_view name, first, last;
};
constexpr TorchSymbol kTorchSymbols[] = {
#define KILN_TORCH_SYMBOL(name, first, last) {name, first, last},
#include "inspect/torch_symbols.def"
#undef KILN_TORCH_SYMBOL
};
constexpr std::string_view kOldestKnownTorch = "2.1", kNewestKnownTorch = "2.11";

SymbolRow row_of(const binary::Elf& elf, const Symbol& symbol) {
  SymbolRow row;
  row.letter = nm_letter(elf, symbol);
  row.name = std::string(symbol.name);
  row.demangled = binary::demangle(symbol.name);
  row.version = std::string(symbol.version);
  row.default_version = symbol.default_version;
  row.value = symbol.value;
  row.bytes = symbol.bytes;
  row.type = symbol.type;
  row.binding = symbol.binding;
  row.other = symbol.other;
  row.section = symbol.section == binary::kUndefinedSection  ? "UND"
                : symbol.section == binary::kAbsoluteSection ? "ABS"
                : symbol.section == binary::kCommonSection   ? "COM"
                                                             : std::to_string(symbol.section);
  return row;
}

bool is_torch_name(std::string_view demangled) {
  for (std::string_view space : {"c10::", "at::", "torch::", "caffe2::", "aoti_torch"})
    if (demangled.find(space) != demangled.npos) return true;
  return false;
}

bool is_torch_library(std::string_view name) {
  return name.starts_with("libc10") || name.starts_with("libtorch");
}

bool is_python_name(std::string_view name) {
  return name.starts_with("Py") || name.starts_with("_Py");
}

// The last identifier with its length, as in the mangled name: "14torchCheckFail".
std::string mangled_piece(std::string_view demangled) {
  std::string_view head = demangled.substr(0, demangled.find('('));
  head = head.substr(0, head.find('<'));
  size_t at = head.rfind("::");
  std::string_view name = at == head.npos ? head : head.substr(at + 2);
  size_t blank = name.rfind(' ');
  if (blank != name.npos) name = name.substr(blank + 1);
  return name.empty() ? std::string() : fmt::format("{}{}", name.size(), name);
}

using Exports = std::vector<std::string>;

Exports torch_exports(const std::vector<LoadedLibrary>& libraries) {
  Exports out;
  for (const LoadedLibrary& library : libraries) {
    if (library.bytes.empty() || !is_torch_library(library.name)) continue;
    auto elf = binary::read_elf(library.bytes);
    if (!elf) continue;
    const binary::ElfSection* table = elf->find_type(binary::kSectionDynamicSymbols);
    if (!table) continue;
    auto symbols = binary::read_symbols(*elf, *table);
    if (!symbols) continue;
    for (const Symbol& symbol : *symbols)
      if (symbol.defined()) out.emplace_back(symbol.name);
  }
  return out;
}

std::string explain(const SymbolRow& symbol, const Exports& exports,
                    const std::string& torch_version) {
  if (!is_torch_name(symbol.demangled)) return "";
  if (exports.empty()) return "a symbol of torch, and no torch is installed to compare with";
  std::string piece = mangled_piece(symbol.demangled);
  std::string wanted = without_string_abi(symbol.demangled),
              head = wanted.substr(0, wanted.find('('));
  std::string other;
  for (const std::string& name : exports) {
    if (piece.empty() || name.find(piece) == name.npos) continue;
    std::string demangled = binary::demangle(name), plain = without_string_abi(demangled);
    if (plain == wanted) {
      bool old_abi = symbol.name.find("__cxx11") == symbol.name.npos;
      return fmt::format(
          "built with the {} std::string (_GLIBCXX_USE_CXX11_ABI={}); torch {} has the {} one",
          old_abi ? "old" : "new", old_abi ? 0 : 1, torch_version, old_abi ? "new" : "old");
    }
    if (plain.substr(0, plain.find('(')) == head) other = demangled;
  }
  std::string range = torch_range({symbol.name});
  std::string built =
      range.empty() ? "built for another torch" : fmt::format("built for torch {}", range);
  if (!other.empty()) return fmt::format("{}; torch {} has {}", built, torch_version, other);
  return fmt::format("{}; torch {} has no {}", built, torch_version, head);
}

void find_providers(SymbolView& view, const std::vector<LoadedLibrary>& libraries) {
  std::unordered_map<std::string_view, std::vector<NeededSymbol*>> open;
  for (NeededSymbol& needed : view.needed) open[needed.symbol.name].push_back(&needed);
  for (size_t i = 1; i < libraries.size(); ++i) {
    const LoadedLibrary& library = libraries[i];
    if (library.bytes.empty()) continue;
    auto elf = binary::read_elf(library.bytes);
    if (!elf) continue;
    const binary::ElfSection* table = elf->find_type(binary::kSectionDynamicSymbols);
    if (!table) continue;
    auto symbols = binary::read_symbols(*elf, *table);
    if (!symbols) continue;
    for (const Symbol& symbol : *symbols) {
      if (!symbol.defined() || symbol.binding == 0) continue;
      auto found = open.find(symbol.name);
      if (found == open.end()) continue;
      for (NeededSymbol* needed : found->second)
        if (needed->provider.empty() && (needed->symbol.version.empty() || symbol.version.empty() ||
                                         needed->symbol.version == symbol.version))
          needed->provider = library.name;
    }
  }
}

// Where pip installs what has a platform; nothing without a python3.
std::optional<path> packages_folder(const sys::Files& files, sys::Processes& processes,
                                    const sys::Environment& env) {
  path python = sys::find_program(files, "python3", env.get("PATH").value_or("/usr/bin:/bin"));
  if (python.empty()) return std::nullopt;
  sys::ProcessSpec spec;
  spec.arguments = {python.string(), "-c",
                    "import sysconfig; print(sysconfig.get_path('platlib'))"};
  auto answer = processes.run(spec);
  if (!answer || answer->exit_code != 0) return std::nullopt;
  return path(std::string(text::trim(answer->out))).lexically_normal();
}

void advise(SymbolView& view) {
  std::vector<std::string> names, late;
  for (const NeededSymbol& needed : view.needed) names.push_back(needed.symbol.name);
  for (const LoadedLibrary& library : view.libraries)
    if (!library.path.empty() && !library.by_loader) late.push_back(library.name);
  for (const LoadedLibrary& library : view.libraries) {
    if (library.parent != 0 || library.by_loader || !is_torch_library(library.name)) continue;
    view.advice.push_back(
        fmt::format("{}: the loader does not find it (no RPATH or RUNPATH leads to torch/lib): "
                    "\"{}: cannot open shared object "
                    "file\". `import torch` before this library loads it; or link nothing of "
                    "torch: kiln build makes such a "
                    "library",
                    library.name, library.name));
    break;
  }
  bool torch_needed = std::any_of(
      view.needed.begin(), view.needed.end(),
      [](const NeededSymbol& needed) { return is_torch_name(needed.symbol.demangled); });
  if (!torch_needed) return;
  std::string range = torch_range(names);
  if (!range.empty())
    view.advice.push_back(fmt::format(
        "its torch symbols are those of torch {}{}", range,
        view.torch.version.empty() ? "" : fmt::format("; installed is {}", view.torch.version)));
}

}  // namespace

std::string without_string_abi(std::string demangled) {
  for (std::string_view from :
       {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "std::__cxx11::basic_string"})
    demangled = text::replace_all(demangled, from, "std::string");
  return text::replace_all(text::replace_all(demangled, "[abi:cxx11]", ""),
                           "std::__cxx11::", "std::");
}

std::string torch_range(const std::vector<std::string>& names) {
  std::string_view first, last;
  for (const std::string& name : names)
    for (const TorchSymbol& row : kTorchSymbols) {
      if (row.name != name) continue;
      if (first.empty() || compare_versions(row.first, first) > 0) first = row.first;
      if (last.empty() || compare_versions(row.last, last) < 0) last = row.last;
    }
  if (first.empty()) return "";
  if (compare_versions(first, last) > 0) return "of no single release";
  if (first == kOldestKnownTorch) return fmt::format("{} or older", last);
  if (last == kNewestKnownTorch) return fmt::format("{} or newer", first);
  return first == last ? std::string(first) : fmt::format("{} to {}", first, last);
}

InstalledTorch find_torch(const sys::Files& files, sys::Processes& processes,
                          const sys::Environment& env) {
  InstalledTorch torch;
  auto folder = find_package(files, processes, env, "torch");
  if (!folder) return torch;
  torch.folder = *folder;
  auto version = files.read(*folder / "version.py");
  if (!version) return torch;
  for (std::string_view line : text::lines(*version)) {
    if (!line.starts_with("__version__")) continue;
    size_t begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
    if (begin < end) torch.version = std::string(line.substr(begin + 1, end - begin - 1));
  }
  return torch;
}

Result<SymbolView> read_symbol_view(const Artifact& file, const sys::Files& files,
                                    sys::Processes& processes, const sys::Environment& env,
                                    const SymbolOptions& options) {
  SymbolView view;
  TRY(binary::Elf elf, binary::read_elf(file.bytes));
  TRY(binary::Dynamic dynamic, binary::read_dynamic(elf));
  view.soname = std::string(dynamic.soname);
  view.rpath = std::string(dynamic.rpath);
  view.runpath = std::string(dynamic.runpath);
  view.interpreter = std::string(dynamic.interpreter);
  view.floor = system_floor(dynamic.versions, dynamic.needed, binary::machine_name(elf.machine));
  bool wants_torch = std::any_of(dynamic.needed.begin(), dynamic.needed.end(), is_torch_library);
  const binary::ElfSection* table = elf.find_type(binary::kSectionDynamicSymbols);
  const binary::ElfSection* whole = elf.find_type(binary::kSectionSymbols);
  if (!table) table = whole;  // an object has the whole table alone
  if (table) {
    TRY(auto symbols, binary::read_symbols(elf, *table));
    for (size_t i = 0; i < symbols.size(); ++i) {
      SymbolRow row = row_of(elf, symbols[i]);
      if (options.whole_tables) view.dynamic.push_back(row);
      if (i == 0 || symbols[i].name.empty() || symbols[i].binding == 0) continue;
      wants_torch |= !symbols[i].defined() && is_torch_name(row.demangled);
      if (symbols[i].defined())
        view.defined.push_back(std::move(row));
      else
        view.needed.push_back({std::move(row), symbols[i].binding == 2, "", ""});
    }
  }
  if (options.whole_tables && whole && whole != table) {
    TRY(auto symbols, binary::read_symbols(elf, *whole));
    for (const Symbol& symbol : symbols) view.all.push_back(row_of(elf, symbol));
  }
  if (!dynamic.present) return view;
  LoadWorld world{files, env, {}, {}};
  if (wants_torch) {
    view.torch = find_torch(files, processes, env);
    if (!view.torch.folder.empty()) world.beside.push_back(view.torch.folder / "lib");
  }
  path place = file.path;
  if (file.wheel) {
    path packages = packages_folder(files, processes, env).value_or(file.path);
    for (const Artifact& other : *file.wheel) {
      std::shared_ptr<const void> keeper = other.mapping;
      if (other.unpacked) keeper = other.unpacked;
      world.coming[packages / installed_name(other.member)] = {other.member, other.bytes, keeper};
    }
    place = packages / installed_name(file.member);
    view.origin = place.parent_path().string();
  }
  TRY(view.libraries, load_tree(place, file.bytes, world));
  find_providers(view, view.libraries);
  Exports exports;
  for (NeededSymbol& needed : view.needed) {
    if (!needed.provider.empty()) continue;
    if (is_python_name(needed.symbol.name)) {
      needed.provider = "python";
      continue;
    }
    if (exports.empty()) exports = torch_exports(view.libraries);
    needed.why = explain(needed.symbol, exports, view.torch.version);
  }
  advise(view);
  return view;
}

}  // namespace kiln::inspect
