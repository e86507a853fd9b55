// SPDX-License-Identifier: Apache-2.0
// What does a wheel hold, as an audit needs to know it?
#include "ship/wheel_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "binary/containers.h"
#include "binary/symbols.h"
#include "ship/sha256.h"
#include "sys/mapped_file.h"

namespace kiln::ship {

namespace {

bool is_torch_symbol(std::string_view name) {
  if (!name.starts_with("_Z")) return false;
  for (std::string_view piece :
       {"N3c10", "NK3c10", "N2at", "NK2at", "N5torch", "NK5torch", "N6caffe2"})
    if (name.find(piece) != name.npos) return true;
  return false;
}

bool is_python_symbol(std::string_view name) {
  return name.starts_with("Py") || name.starts_with("_Py");
}

bool is_library_name(std::string_view name) {
  return name.ends_with(".so") || name.find(".so.") != name.npos;
}

// For a terminal, which a target must not steer.
std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) c = '?';
  return out;
}

// A wheel holds files and folders. Some tools that unpack it create whatever else its modes name.
// The bits are those that zip writes (st_mode of Unix, the same on every system).
std::string oddity_of(uint32_t mode, std::string_view content) {
  constexpr uint32_t kType = 0170000, kPipe = 0010000, kFolder = 0040000, kFile = 0100000,
                     kLink = 0120000, kSocket = 0140000, kSetIds = 06000;
  constexpr size_t kShownOfTarget = 200;
  switch (mode & kType) {
    case 0:
    case kFile:
    case kFolder:
      return mode & kSetIds ? "setuid or setgid" : "";
    case kLink:
      return "a symbolic link to " + printable(content.substr(0, kShownOfTarget));
    case kPipe:
    case kSocket:
      return "a pipe or socket";
    default:
      return "a device";
  }
}

Result<LibraryView> read_library(const std::string& member, binary::Bytes bytes) {
  LibraryView out;
  out.member = member;
  out.bytes = bytes.size();
  inspect::Artifact artifact;
  artifact.name = artifact.member = member;
  artifact.kind = inspect::kind_of(bytes);
  artifact.bytes = bytes;
  TRY(out.needs, needs_of(artifact));
  TRY(binary::Elf elf, binary::read_elf(bytes));
  if (const binary::ElfSection* table = elf.find_type(binary::kSectionSymbols))
    out.symbol_table_bytes = table->bytes;
  if (const binary::ElfSection* table = elf.find_type(binary::kSectionDynamicSymbols)) {
    TRY(auto symbols, binary::read_symbols(elf, *table));
    for (const binary::Symbol& symbol : symbols) {
      if (symbol.defined()) continue;
      if (is_torch_symbol(symbol.name)) out.torch_symbols.emplace_back(symbol.name);
      if (is_python_symbol(symbol.name)) out.python_symbols.emplace_back(symbol.name);
    }
  }
  return out;
}

}  // namespace

WheelName parse_wheel_name(std::string_view file_name) {
  WheelName out;
  if (!file_name.ends_with(".whl")) return out;
  file_name.remove_suffix(4);
  auto parts = text::split(file_name, '-');
  if (parts.size() != 5 && parts.size() != 6) return out;
  size_t last = parts.size() - 1;
  out = {std::string(parts[0]),        std::string(parts[1]),    std::string(parts[last - 2]),
         std::string(parts[last - 1]), std::string(parts[last]), true};
  for (std::string_view part : parts) out.valid &= !part.empty();
  return out;
}

std::vector<std::string> field_values(const std::string& text, std::string_view field) {
  std::vector<std::string> out;
  for (std::string_view line : text::lines(text)) {
    if (text::trim(line).empty()) break;  // the description follows
    if (line.size() > field.size() && line[field.size()] == ':' &&
        text::lower(line.substr(0, field.size())) == text::lower(field))
      out.emplace_back(text::trim(line.substr(field.size() + 1)));
  }
  return out;
}

Result<WheelView> read_wheel(const fs::path& file) {
  WheelView view;
  view.file_name = file.filename().string();
  view.name = parse_wheel_name(view.file_name);
  TRY(sys::MappedFile mapped, sys::MappedFile::open(file));
  binary::Bytes bytes = mapped.bytes();
  view.bytes = bytes.size();
  if (!binary::is_zip(bytes))
    return Error{Fault::Work, fmt::format("cannot read {}", file.string()),
                 "it is not a zip file, and so not a wheel",
                 "kiln wheel makes one from a project; or download it again"};
  auto members = binary::read_zip(bytes);
  if (!members) {
    members.error().what = fmt::format("cannot trust {}", file.string());
    members.error().fix = "do not install it; get it again from its publisher";
    return std::move(members.error());
  }
  for (const binary::Member& member : *members) {
    if (member.name.ends_with('/') && oddity_of(member.mode, "").empty()) continue;
    TRY(std::vector<std::byte> content, binary::unpack_member(member));
    std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    view.members.push_back({member.name, content.size(), member.packed.size(), record_hash(text),
                            oddity_of(member.mode, text)});
    auto parts = text::split(member.name, '/');
    if (parts.size() == 2 && parts[0].ends_with(".dist-info")) {
      view.dist_info = std::string(parts[0]);
      view.texts[std::string(parts[1])] = std::string(text);
    }
    if (!is_library_name(parts.back()) && !binary::is_elf(content)) continue;
    auto library = read_library(member.name, content);
    if (library)
      view.libraries.push_back(std::move(*library));
    else
      view.unreadable.push_back(fmt::format("{}: {}", member.name, library.error().why));
  }
  return view;
}

}  // namespace kiln::ship
