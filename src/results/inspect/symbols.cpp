// SPDX-License-Identifier: Apache-2.0
#include "results/inspect/symbols.h"

#include <algorithm>
#include <utility>

namespace kiln::results {
namespace {

Json symbol_row_json(const SymbolRow& row) {
  Json out{{"name", row.name}, {"demangled", row.demangled}, {"nm", std::string(1, row.letter)}};
  out["version"] = row.version.empty() ? Json(nullptr) : Json(row.version);
  if (row.default_version) out["default_version"] = true;
  return out;
}

Json symbol_table_json(const std::vector<SymbolRow>& rows) {
  Json out = Json::array();
  for (const SymbolRow& row : rows) {
    Json one = symbol_row_json(row);
    one["value"] = row.value;
    one["bytes"] = row.bytes;
    one["type"] = type_of(row);
    one["binding"] = binding_of(row);
    one["visibility"] = visibility_of(row);
    one["section"] = row.section;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string_view type_of(const SymbolRow& row) {
  switch (row.type) {
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

std::string_view binding_of(const SymbolRow& row) {
  return row.binding == 0    ? "LOCAL"
         : row.binding == 1  ? "GLOBAL"
         : row.binding == 2  ? "WEAK"
         : row.binding == 10 ? "UNIQUE"
                             : "?";
}

std::string_view visibility_of(const SymbolRow& row) {
  constexpr std::string_view kNames[] = {"DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED"};
  return kNames[row.other & 3];
}

Json to_json(const Symbols& symbols) {
  auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  Json defined = Json::array(), needed = Json::array(), libraries = Json::array();
  for (const SymbolRow& row : symbols.defined) defined.push_back(symbol_row_json(row));
  for (const NeededSymbol& one : symbols.needed) {
    Json row = symbol_row_json(one.symbol);
    row["weak"] = one.weak;
    row["provider"] = text(one.provider);
    if (!one.why.empty()) row["why"] = one.why;
    needed.push_back(std::move(row));
  }
  for (size_t i = 1; i < symbols.libraries.size(); ++i) {
    const LibraryFacts& library = symbols.libraries[i];
    const LibraryFacts& parent =
        symbols.libraries[static_cast<size_t>(std::max(library.parent, 0))];
    libraries.push_back({{"name", library.name},
                         {"path", text(library.path)},
                         {"member", text(library.member)},
                         {"by", text(library.how)},
                         {"found_by_loader", library.by_loader && !library.path.empty()},
                         {"needed_by", parent.name}});
  }
  Json out{{"soname", text(symbols.soname)},   {"rpath", text(symbols.rpath)},
           {"runpath", text(symbols.runpath)}, {"interpreter", text(symbols.interpreter)},
           {"origin", text(symbols.origin)},   {"libraries", std::move(libraries)}};
  out["system"] = {{"glibc", text(symbols.floor.glibc)},   {"glibcxx", text(symbols.floor.glibcxx)},
                   {"cxxabi", text(symbols.floor.cxxabi)}, {"tag", symbols.floor.tag},
                   {"because_of", symbols.floor.reasons},  {"outside", symbols.floor.outside}};
  out["torch"] = text(symbols.torch);
  out["advice"] = symbols.advice;
  out["needed"] = std::move(needed);
  out["defined"] = std::move(defined);
  if (!symbols.dynamic.empty()) {
    out[symbols.libraries.empty() ? "symtab" : "dynsym"] = symbol_table_json(symbols.dynamic);
    if (!symbols.all.empty()) out["symtab"] = symbol_table_json(symbols.all);
  }
  return out;
}

}  // namespace kiln::results
