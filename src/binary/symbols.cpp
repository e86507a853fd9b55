// SPDX-License-Identifier: Apache-2.0
// How are symbol tables and the tables of versions next to them walked, when their links may form a
// circle?
#include "binary/symbols.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

namespace kiln::binary {
namespace {

constexpr uint64_t kSymbolBytes = 24, kDynamicEntryBytes = 16;
constexpr uint32_t kVersionNeeds = 0x6ffffffe, kVersionDefinitions = 0x6ffffffd,
                   kVersionOfSymbols = 0x6fffffff, kExtendedIndices = 18;

Error damaged_symbols(uint64_t offset, std::string why) {
  return Error{Fault::Work, "cannot read the symbols of an ELF file",
               fmt::format("at offset {}: {}", offset, why), ""};
}

struct Version {
  std::string_view name, library;
};

Bytes linked_strings(const Elf& elf, const ElfSection& section) {
  return section.link < elf.sections.size() ? elf.content(elf.sections[section.link]) : Bytes{};
}

void put(std::vector<Version>& versions, uint16_t index, Version version) {
  index &= 0x7fff;
  if (versions.size() <= index) versions.resize(index + 1u);
  versions[index] = version;
}

// Each link goes forward by at least one record, and there are no more versions than fit into the
// section: neither a circle nor a square of work can be written.
Status read_needs(const Elf& elf, const ElfSection& section, std::vector<Version>* by_index,
                  std::vector<NeededVersion>* list) {
  Bytes bytes = elf.content(section), strings = linked_strings(elf, section);
  uint64_t at = 0, left = bytes.size() / 16;
  while (at < bytes.size()) {
    auto count = read_at<uint16_t>(bytes, at + 2);
    auto file = read_at<uint32_t>(bytes, at + 4), first = read_at<uint32_t>(bytes, at + 8),
         next = read_at<uint32_t>(bytes, at + 12);
    if (!count || !next)
      return damaged_symbols(section.offset + at, "a record of needed versions is truncated");
    uint64_t version_at = at + *first;
    for (uint16_t i = 0; i < *count; ++i) {
      if (left-- == 0)
        return damaged_symbols(section.offset + at,
                               "more needed versions than its section can hold");
      auto index = read_at<uint16_t>(bytes, version_at + 6);
      auto name = read_at<uint32_t>(bytes, version_at + 8),
           step = read_at<uint32_t>(bytes, version_at + 12);
      if (!index || !name || !step)
        return damaged_symbols(section.offset + version_at, "a needed version is truncated");
      Version version{text_at(strings, *name), text_at(strings, *file)};
      if (by_index) put(*by_index, *index, version);
      if (list) list->push_back({version.library, version.name});
      if (*step < 16) break;
      version_at += *step;
    }
    if (*next < 16) break;
    at += *next;
  }
  return {};
}

Status read_definitions(const Elf& elf, const ElfSection& section, std::vector<Version>* by_index,
                        std::vector<std::string_view>* list) {
  Bytes bytes = elf.content(section), strings = linked_strings(elf, section);
  uint64_t at = 0;
  while (at < bytes.size()) {
    auto index = read_at<uint16_t>(bytes, at + 4);
    auto first = read_at<uint32_t>(bytes, at + 12), next = read_at<uint32_t>(bytes, at + 16);
    if (!index || !first || !next)
      return damaged_symbols(section.offset + at, "a defined version is truncated");
    auto name = read_at<uint32_t>(bytes, at + *first);
    if (!name)
      return damaged_symbols(section.offset + at,
                             "a defined version has no name inside its section");
    if (by_index) put(*by_index, *index, {text_at(strings, *name), {}});
    if (list) list->push_back(text_at(strings, *name));
    if (*next < 20) break;
    at += *next;
  }
  return {};
}

}  // namespace

Result<std::vector<Symbol>> read_symbols(const Elf& elf, const ElfSection& table) {
  Bytes bytes = elf.content(table), strings = linked_strings(elf, table), indices, extended;
  if (table.entry_bytes != kSymbolBytes && !bytes.empty()) {
    return damaged_symbols(table.offset, fmt::format("symbols of {} bytes, expected {}",
                                                     table.entry_bytes, kSymbolBytes));
  }
  std::vector<Version> versions;
  bool dynamic = table.type == kSectionDynamicSymbols;
  uint64_t own_index = static_cast<uint64_t>(&table - elf.sections.data());
  for (const ElfSection& section : elf.sections) {
    if (section.type == kExtendedIndices && section.link == own_index)
      extended = elf.content(section);
    if (!dynamic) continue;
    if (section.type == kVersionNeeds) CHECK_OK(read_needs(elf, section, &versions, nullptr));
    if (section.type == kVersionDefinitions)
      CHECK_OK(read_definitions(elf, section, &versions, nullptr));
    if (section.type == kVersionOfSymbols) indices = elf.content(section);
  }
  std::vector<Symbol> out;
  out.reserve(bytes.size() / kSymbolBytes);
  for (uint64_t i = 0; i * kSymbolBytes + kSymbolBytes <= bytes.size(); ++i) {
    uint64_t at = i * kSymbolBytes;
    Symbol symbol;
    uint8_t kind = *read_at<uint8_t>(bytes, at + 4);
    symbol.name = text_at(strings, *read_at<uint32_t>(bytes, at));
    symbol.type = kind & 15;
    symbol.binding = kind >> 4;
    symbol.other = *read_at<uint8_t>(bytes, at + 5);
    symbol.section = *read_at<uint16_t>(bytes, at + 6);
    if (symbol.section == 0xffff) symbol.section = read_at<uint32_t>(extended, i * 4).value_or(0);
    symbol.value = *read_at<uint64_t>(bytes, at + 8);
    symbol.bytes = *read_at<uint64_t>(bytes, at + 16);
    if (auto index = read_at<uint16_t>(indices, i * 2)) {
      uint16_t number = *index & 0x7fff;
      // 0 is local, 1 global: no version.
      if (number > 1 && number < versions.size()) {
        symbol.version = versions[number].name;
        symbol.version_library = versions[number].library;
        symbol.default_version = symbol.defined() && !(*index & 0x8000);
      }
    }
    out.push_back(symbol);
  }
  return out;
}

char nm_letter(const Elf& elf, const Symbol& symbol) {
  constexpr uint8_t kObject = 1, kIndirect = 10, kLocal = 0, kWeak = 2, kUnique = 10;
  if (symbol.section == kCommonSection) return 'C';
  if (!symbol.defined()) {
    if (symbol.binding == kWeak) return symbol.type == kObject ? 'v' : 'w';
    return 'U';
  }
  if (symbol.type == kIndirect) return 'i';
  if (symbol.binding == kWeak) return symbol.type == kObject ? 'V' : 'W';
  if (symbol.binding == kUnique) return 'u';
  char letter = '?';
  if (symbol.section == kAbsoluteSection) {
    letter = 'a';
  } else if (symbol.section < elf.sections.size()) {
    const ElfSection& section = elf.sections[symbol.section];
    bool alloc = section.flags & kSectionAlloc;
    if (section.flags & kSectionCode)
      letter = 't';
    else if (section.type == kSectionNoBits)
      letter = 'b';
    else if (alloc && (section.flags & kSectionWrite))
      letter = 'd';
    else if (alloc)
      letter = 'r';
    else
      return symbol.binding == kLocal ? 'n' : 'N';
  }
  return symbol.binding == kLocal || letter == '?' ? letter : static_cast<char>(letter - 'a' + 'A');
}

Result<Dynamic> read_dynamic(const Elf& elf) {
  constexpr uint32_t kSegmentDynamic = 2, kSegmentInterpreter = 3, kSectionDynamic = 6;
  constexpr uint64_t kNeeded = 1, kStringTable = 5, kSoname = 14, kRpath = 15, kRunpath = 29;
  Dynamic out;
  Bytes entries, strings;
  for (const ElfSegment& segment : elf.segments) {
    auto bytes = slice(elf.bytes, segment.offset, segment.file_bytes);
    if (segment.type == kSegmentInterpreter && bytes) out.interpreter = text_at(*bytes, 0);
    if (segment.type != kSegmentDynamic) continue;
    if (!bytes)
      return damaged_symbols(segment.offset,
                             fmt::format("the dynamic segment claims {} bytes, the file has {}",
                                         segment.file_bytes, elf.bytes.size()));
    entries = *bytes;
  }
  const ElfSection* section = elf.find_type(kSectionDynamic);
  if (entries.empty() && section) entries = elf.content(*section);
  if (entries.empty()) return out;
  out.present = true;
  // The address of the strings first; without segments (an odd file) the section's link.
  for (uint64_t at = 0; at + kDynamicEntryBytes <= entries.size(); at += kDynamicEntryBytes)
    if (*read_at<uint64_t>(entries, at) == kStringTable)
      strings = elf.at_address(*read_at<uint64_t>(entries, at + 8));
  if (strings.empty() && section) strings = linked_strings(elf, *section);
  for (uint64_t at = 0; at + kDynamicEntryBytes <= entries.size(); at += kDynamicEntryBytes) {
    uint64_t tag = *read_at<uint64_t>(entries, at), value = *read_at<uint64_t>(entries, at + 8);
    if (tag == 0) break;
    if (tag == kNeeded) out.needed.push_back(text_at(strings, value));
    if (tag == kSoname) out.soname = text_at(strings, value);
    if (tag == kRpath) out.rpath = text_at(strings, value);
    if (tag == kRunpath) out.runpath = text_at(strings, value);
  }
  for (const ElfSection& one : elf.sections) {
    if (one.type == kVersionNeeds) CHECK_OK(read_needs(elf, one, nullptr, &out.versions));
    if (one.type == kVersionDefinitions)
      CHECK_OK(read_definitions(elf, one, nullptr, &out.defined_versions));
  }
  return out;
}

std::string demangle(std::string_view name) {
  // A name of more nests deeper than its reader's stack is sure to be; the longest of torch's has
  // 4,000.
  constexpr size_t kLongest = 1 << 15;
  if (!name.starts_with("_Z") || name.size() > kLongest) return std::string(name);
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : std::string(name);
}

}  // namespace kiln::binary
