// SPDX-License-Identifier: Apache-2.0
// How are the fat binaries of a file found? By their magic: a library can hold more of them than
// wrappers tell.
#include "inspect/images.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "binary/cubin.h"
#include "binary/elf.h"

namespace kiln::inspect {
namespace {

using binary::Bytes;
using binary::ImageKind;

uint64_t offset_in(Bytes file, Bytes part) {
  return static_cast<uint64_t>(part.data() - file.data());
}

void add_container(Bytes file, Bytes container, ImageList& list) {
  uint64_t at = offset_in(file, container);
  auto entries = binary::read_container(container);
  size_t index = list.containers++;
  if (!entries) {
    list.faults.push_back(fmt::format("fat binary at offset {}: {}", at, entries.error().why));
    return;
  }
  uint64_t previous_end = 16;
  for (binary::FatbinEntry& entry : *entries) {
    Image image{index, container, at, std::move(entry), 0};
    image.header_bytes = image.entry.offset - std::min(previous_end, image.entry.offset);
    previous_end = image.entry.offset + image.entry.payload_bytes;
    list.images.push_back(std::move(image));
  }
}

// Containers are aligned to 8 bytes, and padded.
void scan(Bytes file, Bytes section, ImageList& list) {
  uint64_t at = 0;
  while (at + 16 <= section.size()) {
    if (binary::read_at<uint32_t>(section, at) != binary::kContainerMagic) {
      at += 8;
      continue;
    }
    Bytes rest = section.subspan(at);
    auto size = binary::container_bytes(rest);
    if (!size || *size > rest.size()) {
      list.containers++;
      list.faults.push_back(
          fmt::format("fat binary at offset {}: {}", offset_in(file, rest),
                      size ? fmt::format("it claims {} bytes, but {} are left", *size, rest.size())
                           : size.error().why));
      at += 8;
      continue;
    }
    add_container(file, rest.first(*size), list);
    at += (*size + 7) / 8 * 8;
  }
}

// "sm_90a" of .target; 0 when it has none.
void read_ptx_target(std::string_view text, binary::FatbinEntry& entry) {
  size_t at = text.find(".target");
  if (at == text.npos) return;
  std::string_view rest = text.substr(at, 64);
  size_t number = rest.find("sm_");
  if (number == rest.npos) return;
  for (char c : rest.substr(number + 3)) {
    if (c >= '0' && c <= '9' && entry.arch < 10000) {
      entry.arch = entry.arch * 10 + static_cast<uint32_t>(c - '0');
      continue;
    }
    if (c == 'a' || c == 'f') entry.variant = c;
    break;
  }
}

Image bare(Bytes file, ImageKind kind) {
  Image image;
  image.entry.kind = static_cast<uint16_t>(kind);
  image.entry.packed_bytes = image.entry.payload_bytes = image.entry.unpacked_bytes = file.size();
  return image;
}

}  // namespace

std::string Image::label() const {
  std::string number = fmt::format("{}{}", entry.arch,
                                   entry.variant ? std::string(1, entry.variant) : std::string());
  if (is(ImageKind::Elf)) return "sm_" + number;
  if (is(ImageKind::Ptx)) return "compute_" + number;
  if (is(ImageKind::LtoIr)) return "LTO sm_" + number;
  return fmt::format("kind {} sm_{}", entry.kind, number);
}

std::string_view name_of(binary::Compression compression) {
  switch (compression) {
    case binary::Compression::Zstd:
      return "zstd";
    case binary::Compression::Lz4:
      return "lz4";
    default:
      return "none";
  }
}

bool looks_like_ptx(Bytes bytes) {
  std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                        std::min<size_t>(bytes.size(), 1 << 16));
  for (std::string_view line : text::lines(head)) {
    line = text::trim(line);
    if (line.empty() || line.starts_with("//")) continue;
    return line.starts_with(".version");
  }
  return false;
}

Result<ImageList> find_images(Bytes file) {
  ImageList list;
  if (binary::read_at<uint32_t>(file, 0) == binary::kContainerMagic) {
    scan(file, file, list);
    return list;
  }
  if (!binary::is_elf(file)) {
    if (!looks_like_ptx(file)) return list;
    Image image = bare(file, ImageKind::Ptx);
    read_ptx_target({reinterpret_cast<const char*>(file.data()), file.size()}, image.entry);
    list.images.push_back(std::move(image));
    return list;
  }
  TRY(binary::Elf elf, binary::read_elf(file));
  if (binary::is_cubin(elf)) {
    TRY(binary::Cubin cubin, binary::read_cubin(file));
    Image image = bare(file, ImageKind::Elf);
    image.entry.arch = cubin.arch;
    image.entry.variant = binary::variant_of(cubin);
    list.images.push_back(std::move(image));
    return list;
  }
  for (const binary::ElfSection& section : elf.sections)
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin")
      scan(file, elf.content(section), list);
  return list;
}

Result<std::vector<std::byte>> unpack(const Image& image, Bytes file) {
  if (image.container_bytes.empty()) return std::vector<std::byte>(file.begin(), file.end());
  auto out = binary::read_image(image.container_bytes, image.entry);
  if (!out)
    out.error().why = fmt::format("{}, entry {} at offset {}", out.error().why, image.label(),
                                  image.container_offset + image.entry.offset);
  return out;
}

}  // namespace kiln::inspect
