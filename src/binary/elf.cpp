// SPDX-License-Identifier: Apache-2.0
// How is an ELF header believed? Field by field, each range checked against the file.
#include "binary/elf.h"

#include <fmt/format.h>

namespace kiln::binary {
namespace {

constexpr uint64_t kHeaderBytes = 64, kSectionHeaderBytes = 64, kSegmentHeaderBytes = 56;
// A linker that makes more writes a table of its own (SHT_SYMTAB_SHNDX); nvcc's largest has some
// ten thousand.
constexpr uint64_t kMaxSections = 1 << 20;

Error damaged_elf(uint64_t offset, std::string why, std::string fix = "") {
  return Error{Fault::Work, "cannot read an ELF file", fmt::format("at offset {}: {}", offset, why),
               std::move(fix)};
}

constexpr const char* kOtherBuild =
    "use a file built for a 64-bit little-endian system such as x86_64 or aarch64";

Result<ElfSection> read_section(Bytes bytes, uint64_t at, uint32_t* name_at) {
  ElfSection section;
  *name_at = *read_at<uint32_t>(bytes, at);
  section.type = *read_at<uint32_t>(bytes, at + 4);
  section.flags = *read_at<uint64_t>(bytes, at + 8);
  section.address = *read_at<uint64_t>(bytes, at + 16);
  section.offset = *read_at<uint64_t>(bytes, at + 24);
  section.bytes = *read_at<uint64_t>(bytes, at + 32);
  section.link = *read_at<uint32_t>(bytes, at + 40);
  section.extra = *read_at<uint32_t>(bytes, at + 44);
  section.entry_bytes = *read_at<uint64_t>(bytes, at + 56);
  if (section.type == 0) section.bytes = 0;  // section 0 keeps counts there
  if (!slice(bytes, section.file_bytes() ? section.offset : 0, section.file_bytes())) {
    return damaged_elf(at + 24,
                       fmt::format("a section claims {} bytes from offset {}, the file has {}",
                                   section.bytes, section.offset, bytes.size()));
  }
  return section;
}

Status read_sections(Elf& elf, uint64_t count, uint64_t names_index, uint64_t entry_bytes) {
  uint64_t table = elf.section_table_offset;
  if (table == 0) return {};
  if (entry_bytes != kSectionHeaderBytes) {
    return damaged_elf(58, fmt::format("section headers of {} bytes, expected {}", entry_bytes,
                                       kSectionHeaderBytes));
  }
  if (!slice(elf.bytes, table, kSectionHeaderBytes)) {
    return damaged_elf(40, fmt::format("the section headers start at {}, the file has {} bytes",
                                       table, elf.bytes.size()));
  }
  // More than 65,279 sections: the counts are in section 0.
  if (count == 0) count = *read_at<uint64_t>(elf.bytes, table + 32);
  if (names_index == 0xffff) names_index = *read_at<uint32_t>(elf.bytes, table + 40);
  if (count > kMaxSections || !slice(elf.bytes, table, count * kSectionHeaderBytes)) {
    return damaged_elf(60, fmt::format("{} section headers from offset {}, the file has {} bytes",
                                       count, table, elf.bytes.size()));
  }
  std::vector<uint32_t> names(count);
  elf.sections.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TRY(ElfSection section, read_section(elf.bytes, table + i * kSectionHeaderBytes, &names[i]));
    elf.sections.push_back(section);
  }
  if (names_index < count) {
    Bytes text = elf.content(elf.sections[names_index]);
    for (uint64_t i = 0; i < count; ++i) elf.sections[i].name = text_at(text, names[i]);
  }
  return {};
}

Status read_segments(Elf& elf, uint64_t count, uint64_t entry_bytes) {
  uint64_t table = elf.segment_table_offset;
  if (count == 0 || table == 0) return {};
  if (entry_bytes != kSegmentHeaderBytes) {
    return damaged_elf(54, fmt::format("program headers of {} bytes, expected {}", entry_bytes,
                                       kSegmentHeaderBytes));
  }
  if (!slice(elf.bytes, table, count * kSegmentHeaderBytes)) {
    return damaged_elf(32, fmt::format("{} program headers from offset {}, the file has {} bytes",
                                       count, table, elf.bytes.size()));
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = table + i * kSegmentHeaderBytes;
    elf.segments.push_back(
        {*read_at<uint32_t>(elf.bytes, at), *read_at<uint32_t>(elf.bytes, at + 4),
         *read_at<uint64_t>(elf.bytes, at + 8), *read_at<uint64_t>(elf.bytes, at + 16),
         *read_at<uint64_t>(elf.bytes, at + 32), *read_at<uint64_t>(elf.bytes, at + 40)});
  }
  return {};
}

}  // namespace

const ElfSection* Elf::find(std::string_view name) const {
  for (const ElfSection& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

const ElfSection* Elf::find_type(uint32_t wanted) const {
  for (const ElfSection& section : sections)
    if (section.type == wanted) return &section;
  return nullptr;
}

Bytes Elf::content(const ElfSection& section) const {
  return slice(bytes, section.offset, section.file_bytes()).value_or(Bytes{});
}

Bytes Elf::at_address(uint64_t address) const {
  constexpr uint32_t kLoad = 1;
  for (const ElfSegment& segment : segments) {
    if (segment.type != kLoad || address < segment.address ||
        address - segment.address >= segment.file_bytes)
      continue;
    uint64_t inside = address - segment.address;
    auto found = slice(bytes, segment.offset, segment.file_bytes);
    if (found) return found->subspan(inside);
  }
  return {};
}

bool is_elf(Bytes bytes) { return read_at<uint32_t>(bytes, 0) == 0x464c457fu; }

Result<Elf> read_elf(Bytes bytes) {
  if (!is_elf(bytes)) return damaged_elf(0, "it does not start with \\x7fELF");
  if (bytes.size() < kHeaderBytes)
    return damaged_elf(bytes.size(),
                       fmt::format("the file ends inside its header of {} bytes", kHeaderBytes));
  auto kind = [&](size_t at) { return std::to_integer<int>(bytes[at]); };
  if (kind(4) != 2)
    return kind(4) == 1 ? damaged_elf(4, "a 32-bit file; kiln reads 64-bit ones", kOtherBuild)
                        : damaged_elf(4, fmt::format("class {}, expected 2 (64-bit)", kind(4)));
  if (kind(5) != 1)
    return kind(5) == 2
               ? damaged_elf(5, "a big-endian file; kiln reads little-endian ones", kOtherBuild)
               : damaged_elf(5, fmt::format("byte order {}, expected 1 (little-endian)", kind(5)));
  Elf elf;
  elf.bytes = bytes;
  elf.os_abi = static_cast<uint8_t>(kind(7));
  elf.abi_version = static_cast<uint8_t>(kind(8));
  elf.type = *read_at<uint16_t>(bytes, 16);
  elf.machine = *read_at<uint16_t>(bytes, 18);
  elf.segment_table_offset = *read_at<uint64_t>(bytes, 32);
  elf.section_table_offset = *read_at<uint64_t>(bytes, 40);
  elf.flags = *read_at<uint32_t>(bytes, 48);
  CHECK_OK(read_segments(elf, *read_at<uint16_t>(bytes, 56), *read_at<uint16_t>(bytes, 54)));
  CHECK_OK(read_sections(elf, *read_at<uint16_t>(bytes, 60), *read_at<uint16_t>(bytes, 62),
                         *read_at<uint16_t>(bytes, 58)));
  return elf;
}

std::string_view text_at(Bytes table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  const void* end = std::memchr(begin, 0, table.size() - offset);
  return end ? std::string_view(begin, static_cast<size_t>(static_cast<const char*>(end) - begin))
             : std::string_view();
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case kMachineX86:
      return "x86_64";
    case kMachineAarch64:
      return "aarch64";
    case kMachineCuda:
      return "CUDA";
    default:
      return fmt::format("machine {}", machine);
  }
}

}  // namespace kiln::binary
