// SPDX-License-Identifier: Apache-2.0
// How does a fat binary get into a library without a compiler?
#include "build/run/fat_object.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace kiln::build {

namespace {

// ELF-64 Object File Format, version 1.5, tables 1 to 14.
struct FileHeader {
  unsigned char ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  uint16_t type = 1;  // relocatable
#ifdef __aarch64__
  uint16_t machine = 183;
#else
  uint16_t machine = 62;
#endif
  uint32_t version = 1;
  uint64_t entry = 0, program_headers = 0, section_headers = 0;
  uint32_t flags = 0;
  uint16_t header_bytes = 64, program_header_bytes = 0, program_header_count = 0;
  uint16_t section_header_bytes = 64, section_count = 0, names_section = 0;
};

struct SectionHeader {
  uint32_t name = 0, type = 0;
  uint64_t flags = 0, address = 0, offset = 0, bytes = 0;
  uint32_t link = 0, info = 0;
  uint64_t align = 1, entry_bytes = 0;
};

struct Symbol {
  uint32_t name = 0;
  unsigned char binding = 0, visibility = 0;
  uint16_t section = 0;
  uint64_t value = 0, bytes = 0;
};

static_assert(sizeof(FileHeader) == 64 && sizeof(SectionHeader) == 64 && sizeof(Symbol) == 24);

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void align_to(std::string& out, size_t bytes) {
  out.resize((out.size() + bytes - 1) / bytes * bytes);
}

}  // namespace

std::string fat_object(std::string_view fat_binary, std::string_view symbol) {
  // .note.GNU-stack tells the linker that nothing here wants an executable stack.
  // .note.kiln.room is aligned otherwise than other notes, so that the linker gives it a segment of
  // its own: a row in the table of segments that an edit may use (swap_fat.h). Name size, no
  // content, a type of its own, name.
  const std::string names("\0.nv_fatbin\0.symtab\0.strtab\0.note.GNU-stack\0.note.kiln.room\0", 60);
  const std::string room("\5\0\0\0\0\0\0\0\2\0\0\0kiln\0\0\0\0\0\0\0\0", 24);
  const std::string strings = std::string("\0", 1) + std::string(symbol) + std::string("\0", 1);
  const std::array<Symbol, 2> symbols = {
      Symbol{}, Symbol{1, 0x11, 2, 1, 0, fat_binary.size()}};  // global object, hidden

  std::array<SectionHeader, 7> sections;
  std::string out(sizeof(FileHeader), '\0');
  auto append = [&](SectionHeader& section, std::string_view content) {
    align_to(out, section.align);
    section.offset = out.size();
    section.bytes = content.size();
    out.append(content);
  };
  sections[1] = {.name = 1, .type = 1, .flags = 2, .align = 8};
  append(sections[1], fat_binary);
  sections[2] = {
      .name = 12, .type = 2, .link = 3, .info = 1, .align = 8, .entry_bytes = sizeof(Symbol)};
  append(sections[2], {reinterpret_cast<const char*>(symbols.data()), sizeof symbols});
  sections[3] = {.name = 20, .type = 3};
  append(sections[3], strings);
  sections[4] = {.name = 28, .type = 1};
  append(sections[4], "");
  sections[5] = {.name = 44, .type = 7, .flags = 2, .align = 8};
  append(sections[5], room);
  sections[6] = {.name = 0, .type = 3};
  append(sections[6], names);
  align_to(out, 8);

  FileHeader header;
  header.section_headers = out.size();
  header.section_count = sections.size();
  header.names_section = sections.size() - 1;
  std::memcpy(out.data(), &header, sizeof header);
  for (const SectionHeader& section : sections) out.append(bytes_of(section));
  return out;
}

}  // namespace kiln::build
