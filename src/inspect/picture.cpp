// SPDX-License-Identifier: Apache-2.0
// How is every byte of a file given to one piece?
#include "inspect/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "binary/elf.h"

namespace kiln::inspect {
namespace {

using binary::Bytes;
using binary::ElfSection;
using binary::ImageKind;

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Group group_of(const ElfSection& section, bool cubin) {
  std::string_view name = section.name;
  if (cubin && name.starts_with(".text")) return Group::Sass;
  if (cubin && name.starts_with(".nv_debug")) return Group::Debug;
  if (name == ".nv_fatbin" || name == "__nv_relfatbin" || name == ".nvFatBinSegment")
    return Group::Fatbin;
  if (section.type == binary::kSectionSymbols || section.type == binary::kSectionDynamicSymbols ||
      section.type == binary::kSectionStrings || name.starts_with(".gnu.version") ||
      one_of(name, {".gnu.hash", ".hash"}))
    return Group::Symbols;
  if (name.starts_with(".rela") || name.starts_with(".rel.") || name.starts_with(".relr"))
    return Group::Relocations;
  if (one_of(name, {".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".debug_frame"}))
    return Group::Unwind;
  if (name.starts_with(".debug") || name.starts_with(".zdebug")) return Group::Debug;
  if (section.flags & binary::kSectionCode) return Group::HostCode;
  if (section.flags & binary::kSectionAlloc) return Group::HostData;
  return Group::Other;
}

void add_images(const ImageList& images, std::vector<Piece>& pieces) {
  size_t last = ~size_t{0};
  for (const Image& image : images.images) {
    if (image.container_bytes.empty()) continue;
    if (image.container != last) {
      pieces.push_back({Group::Fatbin, "container header", image.container_offset, 16});
      last = image.container;
    }
    uint64_t payload = image.container_offset + image.entry.offset;
    pieces.push_back(
        {Group::Fatbin, "entry header", payload - image.header_bytes, image.header_bytes});
    Group group = image.is(ImageKind::Elf)     ? Group::Sass
                  : image.is(ImageKind::Ptx)   ? Group::Ptx
                  : image.is(ImageKind::LtoIr) ? Group::Lto
                                               : Group::Fatbin;
    pieces.push_back({group, image.label(), payload, image.entry.payload_bytes});
  }
}

void add_elf(const binary::Elf& elf, const ImageList& images, std::vector<Piece>& pieces) {
  bool cubin = elf.machine == binary::kMachineCuda;
  pieces.push_back({Group::Header, "ELF header", 0, 64});
  if (!elf.segments.empty())
    pieces.push_back(
        {Group::Header, "program headers", elf.segment_table_offset, elf.segments.size() * 56});
  if (!elf.sections.empty())
    pieces.push_back(
        {Group::Header, "section headers", elf.section_table_offset, elf.sections.size() * 64});
  bool has_images = !cubin && !images.images.empty();
  for (const ElfSection& section : elf.sections) {
    if (section.file_bytes() == 0) continue;
    Group group = group_of(section, cubin);
    // Its images cover it; what they leave is filled in at the end.
    if (has_images && group == Group::Fatbin && section.name != ".nvFatBinSegment") continue;
    pieces.push_back({group, std::string(section.name), section.offset, section.file_bytes()});
  }
}

// The name of the gap: padding inside the fat binary's section is the fat binary's.
Piece gap(const binary::Elf* elf, uint64_t offset, uint64_t bytes) {
  if (elf)
    for (const ElfSection& section : elf->sections)
      if (section.file_bytes() && offset >= section.offset &&
          offset + bytes <= section.offset + section.bytes)
        return {Group::Fatbin, "padding in " + std::string(section.name), offset, bytes};
  return {Group::Gap, "padding", offset, bytes};
}

}  // namespace

std::vector<Piece> picture_of(Bytes file, const ImageList& images) {
  std::vector<Piece> claimed, out;
  auto elf = binary::read_elf(file);
  if (elf)
    add_elf(*elf, images, claimed);
  else if (images.containers == 0 && !file.empty())
    claimed.push_back({images.images.empty() ? Group::Other : Group::Ptx, "text", 0, file.size()});
  if (!elf || elf->machine != binary::kMachineCuda) add_images(images, claimed);
  std::stable_sort(claimed.begin(), claimed.end(),
                   [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
  uint64_t at = 0;
  auto fill = [&](uint64_t to) {
    if (to > at) out.push_back(gap(elf ? &*elf : nullptr, at, to - at));
  };
  for (Piece& piece : claimed) {
    uint64_t end = std::min<uint64_t>(piece.offset + piece.bytes, file.size());
    uint64_t begin = std::max(piece.offset, at);
    if (begin >= end) continue;
    fill(begin);
    piece.offset = begin;
    piece.bytes = end - begin;
    at = end;
    out.push_back(std::move(piece));
  }
  fill(file.size());
  return out;
}

std::vector<GroupTotal> totals_of(const std::vector<Piece>& pieces) {
  std::array<uint64_t, results::kGroups> sums{};
  for (const Piece& piece : pieces) sums[static_cast<size_t>(piece.group)] += piece.bytes;
  std::vector<GroupTotal> out;
  for (size_t i = 0; i < results::kGroups; ++i)
    if (sums[i]) out.push_back({static_cast<Group>(i), sums[i]});
  std::stable_sort(out.begin(), out.end(),
                   [](const GroupTotal& a, const GroupTotal& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace kiln::inspect
