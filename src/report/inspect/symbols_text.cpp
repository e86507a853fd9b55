// SPDX-License-Identifier: Apache-2.0
// How do symbols and libraries read on a terminal?
#include <fmt/format.h>

#include <set>

#include "base/units.h"
#include "report/inspect.h"

namespace kiln::report {
namespace {

using results::LibraryFacts;
using results::NeededSymbol;
using results::SymbolRow;
using results::Symbols;

std::string versioned_name(const SymbolRow& row) {
  if (row.version.empty()) return row.demangled;
  return fmt::format("{}{}{}", row.demangled, row.default_version ? "@@" : "@", row.version);
}

void library_tree(const Symbols& symbols, int at, int depth, std::set<int>& shown,
                  std::string& out) {
  const LibraryFacts& library = symbols.libraries[static_cast<size_t>(at)];
  bool again = !shown.insert(at).second;
  if (depth > 0)
    out +=
        fmt::format("  {:{}}{}  {}\n", "", (depth - 1) * 2, library.name,
                    again                  ? "(above)"
                    : library.path.empty() ? "not found"
                    : !library.member.empty()
                        ? fmt::format("in this wheel: {} ({})", library.member, library.how)
                    : library.by_loader ? fmt::format("{} ({})", library.path, library.how)
                                        : fmt::format("not found by the loader; {}", library.path));
  if (again) return;
  for (int child : library.children) library_tree(symbols, child, depth + 1, shown, out);
}

std::string symbol_table(const char* title, const std::vector<SymbolRow>& rows) {
  if (rows.empty()) return "";
  std::string out = fmt::format("{}: {} symbols\n  {:>6} {:>16} {:>8} {:<7} {:<6} {:<9} {:>5} {}\n",
                                title, grouped(rows.size()), "number", "value", "bytes", "type",
                                "bind", "visible", "where", "name");
  for (size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("  {:>6} {:016x} {:>8} {:<7} {:<6} {:<9} {:>5} {}\n", i, rows[i].value,
                       rows[i].bytes, type_of(rows[i]), binding_of(rows[i]), visibility_of(rows[i]),
                       rows[i].section, versioned_name(rows[i]));
  return out;
}

}  // namespace

std::string symbols_text(const Symbols& symbols, const InspectStyle& style) {
  size_t nobody = 0;
  for (const NeededSymbol& needed : symbols.needed)
    nobody += needed.provider.empty() && !needed.weak;
  std::string out;
  if (!symbols.soname.empty()) out += fmt::format("soname {}\n", symbols.soname);
  if (!symbols.rpath.empty()) out += fmt::format("RPATH {}\n", symbols.rpath);
  if (!symbols.runpath.empty()) out += fmt::format("RUNPATH {}\n", symbols.runpath);
  if (!symbols.origin.empty())
    out += fmt::format("$ORIGIN is {} once pip has installed the wheel\n", symbols.origin);
  if (symbols.libraries.size() > 1) {
    out += style.bold("libraries") + "\n";
    std::set<int> shown;
    library_tree(symbols, 0, 0, shown, out);
  } else if (!symbols.libraries.empty()) {
    out += "libraries: none needed\n";
  }
  out += style.bold("system") + "\n";
  auto floor = [&](const char* name, const std::string& number) {
    if (!number.empty()) out += fmt::format("  {}_{} or newer\n", name, number);
  };
  floor("GLIBC", symbols.floor.glibc);
  floor("GLIBCXX", symbols.floor.glibcxx);
  floor("CXXABI", symbols.floor.cxxabi);
  out += fmt::format("  {}", symbols.floor.tag);
  for (size_t i = 0; i < symbols.floor.reasons.size(); ++i)
    out += fmt::format("{}{}", i ? ", " : ": not older because of ", symbols.floor.reasons[i]);
  out += "\n";
  for (const std::string& library : symbols.floor.outside)
    out += fmt::format("  {}: no manylinux guarantees it\n", library);
  for (const std::string& line : symbols.advice) out += fmt::format("note: {}\n", line);
  out += style.bold(fmt::format("needed: {}", grouped(symbols.needed.size())));
  out += nobody ? fmt::format(", {} of them not provided\n", grouped(nobody)) : "\n";
  for (const NeededSymbol& needed : symbols.needed) {
    std::string who = !needed.provider.empty() ? needed.provider
                      : needed.weak            ? "nobody (weak: it may be missing)"
                                               : "nobody";
    out +=
        fmt::format("  {} {}  <- {}\n", needed.symbol.letter, versioned_name(needed.symbol), who);
    if (!needed.why.empty()) out += fmt::format("      {}\n", needed.why);
  }
  out += style.bold(fmt::format("defined: {}", grouped(symbols.defined.size()))) + "\n";
  for (const SymbolRow& row : symbols.defined)
    out += fmt::format("  {} {}\n", row.letter, versioned_name(row));
  return out;
}

std::string tables_text(const Symbols& symbols) {
  return symbol_table(symbols.libraries.empty() ? ".symtab" : ".dynsym", symbols.dynamic) +
         symbol_table(".symtab", symbols.all);
}

}  // namespace kiln::report
