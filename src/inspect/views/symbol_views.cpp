// SPDX-License-Identifier: Apache-2.0
// How do symbols and libraries read, as text and as JSON?
#include "inspect/views/symbol_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"

namespace kiln::inspect {
namespace {

std::string_view type_name(uint8_t type) {
  switch (type) {
    case 0:
      return "NOTYPE";
    case 1:
      return "OBJECT";
    case 2:
      return "FUNC";
    case 3:
      return "SECTION";
    case 4:
      return "FILE";
    case 5:
      return "COMMON";
    case 6:
      return "TLS";
    case 10:
      return "IFUNC";
    default:
      return "?";
  }
}

std::string_view binding_name(uint8_t binding) {
  return binding == 0    ? "LOCAL"
         : binding == 1  ? "GLOBAL"
         : binding == 2  ? "WEAK"
         : binding == 10 ? "UNIQUE"
                         : "?";
}

std::string_view visibility_name(uint8_t other) {
  constexpr std::string_view kNames[] = {"DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED"};
  return kNames[other & 3];
}

std::string versioned(const SymbolRow& row) {
  if (row.version.empty()) return row.demangled;
  return fmt::format("{}{}{}", row.demangled, row.default_version ? "@@" : "@", row.version);
}

void tree_text(const SymbolView& view, int at, int depth, std::set<int>& shown, std::string& out) {
  const LoadedLibrary& library = view.libraries[static_cast<size_t>(at)];
  bool again = !shown.insert(at).second;
  if (depth > 0)
    out += fmt::format("  {:{}}{}  {}\n", "", (depth - 1) * 2, library.name,
                       again                  ? "(above)"
                       : library.path.empty() ? "not found"
                       : !library.member.empty()
                           ? fmt::format("in this wheel: {} ({})", library.member, library.how)
                       : library.by_loader
                           ? fmt::format("{} ({})", library.path.string(), library.how)
                           : fmt::format("not found by the loader; {}", library.path.string()));
  if (again) return;
  for (int child : library.children) tree_text(view, child, depth + 1, shown, out);
}

Json row_json(const SymbolRow& row) {
  Json out{{"name", row.name}, {"demangled", row.demangled}, {"nm", std::string(1, row.letter)}};
  out["version"] = row.version.empty() ? Json(nullptr) : Json(row.version);
  if (row.default_version) out["default_version"] = true;
  return out;
}

Json table_json(const std::vector<SymbolRow>& rows) {
  Json out = Json::array();
  for (const SymbolRow& row : rows) {
    Json one = row_json(row);
    one["value"] = row.value;
    one["bytes"] = row.bytes;
    one["type"] = type_name(row.type);
    one["binding"] = binding_name(row.binding);
    one["visibility"] = visibility_name(row.other);
    one["section"] = row.section;
    out.push_back(std::move(one));
  }
  return out;
}

std::string table_text(const char* title, const std::vector<SymbolRow>& rows) {
  if (rows.empty()) return "";
  std::string out = fmt::format("{}: {} symbols\n  {:>6} {:>16} {:>8} {:<7} {:<6} {:<9} {:>5} {}\n",
                                title, grouped(rows.size()), "number", "value", "bytes", "type",
                                "bind", "visible", "where", "name");
  for (size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("  {:>6} {:016x} {:>8} {:<7} {:<6} {:<9} {:>5} {}\n", i, rows[i].value,
                       rows[i].bytes, type_name(rows[i].type), binding_name(rows[i].binding),
                       visibility_name(rows[i].other), rows[i].section, versioned(rows[i]));
  return out;
}

}  // namespace

std::string symbols_text(const SymbolView& view, const TextStyle& style) {
  size_t nobody = 0;
  for (const NeededSymbol& needed : view.needed) nobody += needed.provider.empty() && !needed.weak;
  std::string out;
  if (!view.soname.empty()) out += fmt::format("soname {}\n", view.soname);
  if (!view.rpath.empty()) out += fmt::format("RPATH {}\n", view.rpath);
  if (!view.runpath.empty()) out += fmt::format("RUNPATH {}\n", view.runpath);
  if (!view.origin.empty())
    out += fmt::format("$ORIGIN is {} once pip has installed the wheel\n", view.origin);
  if (view.libraries.size() > 1) {
    out += style.bold("libraries") + "\n";
    std::set<int> shown;
    tree_text(view, 0, 0, shown, out);
  } else if (!view.libraries.empty()) {
    out += "libraries: none needed\n";
  }
  out += style.bold("system") + "\n";
  auto floor = [&](const char* name, const std::string& number) {
    if (!number.empty()) out += fmt::format("  {}_{} or newer\n", name, number);
  };
  floor("GLIBC", view.floor.glibc);
  floor("GLIBCXX", view.floor.glibcxx);
  floor("CXXABI", view.floor.cxxabi);
  out += fmt::format("  {}", view.floor.tag);
  for (size_t i = 0; i < view.floor.reasons.size(); ++i)
    out += fmt::format("{}{}", i ? ", " : ": not older because of ", view.floor.reasons[i]);
  out += "\n";
  for (const std::string& library : view.floor.outside)
    out += fmt::format("  {}: no manylinux guarantees it\n", library);
  for (const std::string& line : view.advice) out += fmt::format("note: {}\n", line);
  out += style.bold(fmt::format("needed: {}", grouped(view.needed.size())));
  out += nobody ? fmt::format(", {} of them not provided\n", grouped(nobody)) : "\n";
  for (const NeededSymbol& needed : view.needed) {
    std::string who = !needed.provider.empty() ? needed.provider
                      : needed.weak            ? "nobody (weak: it may be missing)"
                                               : "nobody";
    out += fmt::format("  {} {}  <- {}\n", needed.symbol.letter, versioned(needed.symbol), who);
    if (!needed.why.empty()) out += fmt::format("      {}\n", needed.why);
  }
  out += style.bold(fmt::format("defined: {}", grouped(view.defined.size()))) + "\n";
  for (const SymbolRow& row : view.defined)
    out += fmt::format("  {} {}\n", row.letter, versioned(row));
  return out;
}

std::string tables_text(const SymbolView& view) {
  return table_text(view.libraries.empty() ? ".symtab" : ".dynsym", view.dynamic) +
         table_text(".symtab", view.all);
}

Json symbols_json(const SymbolView& view) {
  auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  Json defined = Json::array(), needed = Json::array(), libraries = Json::array();
  for (const SymbolRow& row : view.defined) defined.push_back(row_json(row));
  for (const NeededSymbol& one : view.needed) {
    Json row = row_json(one.symbol);
    row["weak"] = one.weak;
    row["provider"] = text(one.provider);
    if (!one.why.empty()) row["why"] = one.why;
    needed.push_back(std::move(row));
  }
  for (size_t i = 1; i < view.libraries.size(); ++i) {
    const LoadedLibrary& library = view.libraries[i];
    const LoadedLibrary& parent = view.libraries[static_cast<size_t>(std::max(library.parent, 0))];
    libraries.push_back({{"name", library.name},
                         {"path", text(library.path.string())},
                         {"member", text(library.member)},
                         {"by", text(library.how)},
                         {"found_by_loader", library.by_loader && !library.path.empty()},
                         {"needed_by", parent.name}});
  }
  Json out{{"soname", text(view.soname)},   {"rpath", text(view.rpath)},
           {"runpath", text(view.runpath)}, {"interpreter", text(view.interpreter)},
           {"origin", text(view.origin)},   {"libraries", std::move(libraries)}};
  out["system"] = {{"glibc", text(view.floor.glibc)},   {"glibcxx", text(view.floor.glibcxx)},
                   {"cxxabi", text(view.floor.cxxabi)}, {"tag", view.floor.tag},
                   {"because_of", view.floor.reasons},  {"outside", view.floor.outside}};
  out["torch"] = text(view.torch.version);
  out["advice"] = view.advice;
  out["needed"] = std::move(needed);
  out["defined"] = std::move(defined);
  if (!view.dynamic.empty()) {
    out[view.libraries.empty() ? "symtab" : "dynsym"] = table_json(view.dynamic);
    if (!view.all.empty()) out["symtab"] = table_json(view.all);
  }
  return out;
}

}  // namespace kiln::inspect
