// SPDX-License-Identifier: Apache-2.0
// How does a linked library get other device code without a linker?
#include "build/edit/swap_fat.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "binary/bytes.h"

namespace kiln::build {

namespace {

// ELF-64 Object File Format, version 1.5.
struct Segment {
  uint32_t type, flags;
  uint64_t offset, address, physical, file_bytes, memory_bytes, align;
};
struct Section {
  uint32_t name, type;
  uint64_t flags, address, offset, bytes;
  uint32_t link, info;
  uint64_t align, entry_bytes;
};
struct Relocation {
  uint64_t place, kind, addend;
};
struct DynamicRow {
  uint64_t tag, value;
};
constexpr uint32_t kLoad = 1, kDynamic = 2, kNote = 4;
constexpr uint64_t kRela = 7, kRelaBytes = 8;
constexpr uint64_t kFatAlign = 16;
constexpr uint64_t kPageBytes = 65536;  // the largest that either machine has
#ifdef __aarch64__
constexpr uint64_t kRelative = 1027;
#else
constexpr uint64_t kRelative = 8;
#endif

// One fat binary in the section, and what takes its place.
struct Span {
  uint64_t at, bytes;
  std::string_view after;
  // What follows stays aligned as it was.
  uint64_t room() const { return after.size() + (bytes - after.size()) % kFatAlign; }
};

Error cannot(std::string why) {
  return {Fault::Work, "cannot put device code into a library", std::move(why), ""};
}

class Library {
 public:
  explicit Library(std::string_view bytes) : bytes_(bytes) {}

  Result<std::string> swapped(const std::vector<FatSwap>& swaps) {
    CHECK_OK(read_segments());
    CHECK_OK(read_fat_section());
    std::vector<Span> places;
    bool fits = true;
    for (const FatSwap& swap : swaps) {
      std::string_view content = std::string_view(bytes_).substr(section_.offset, section_.bytes);
      size_t at = content.find(swap.before);
      if (at == std::string::npos || content.find(swap.before, at + 1) != std::string::npos)
        return cannot("it does not contain its fat binary exactly once");
      places.push_back({at, swap.before.size(), swap.after});
      fits &= swap.after.size() <= swap.before.size();
    }
    std::sort(places.begin(), places.end(),
              [](const Span& a, const Span& b) { return a.at < b.at; });
    if (!fits) {
      CHECK_OK(move_section(places));
      return std::move(bytes_);
    }
    for (const Span& place : places) {
      char* to = bytes_.data() + section_.offset + place.at;
      std::memcpy(to, place.after.data(), place.after.size());
      std::memset(to + place.after.size(), 0, place.bytes - place.after.size());
    }
    return std::move(bytes_);
  }

 private:
  template <class T>
  std::optional<T> get(uint64_t offset) const {
    return binary::read_at<T>(std::as_bytes(std::span(bytes_.data(), bytes_.size())), offset);
  }
  template <class T>
  void put(uint64_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }

  Status read_segments() {
    auto table = get<uint64_t>(32);
    auto row = get<uint16_t>(54), count = get<uint16_t>(56);
    if (!bytes_.starts_with("\x7f"
                            "ELF\x02\x01") ||
        !table || !row || !count || *row != sizeof(Segment))
      return cannot("it is not a 64-bit ELF library");
    for (uint16_t i = 0; i < *count; ++i) {
      auto segment = get<Segment>(*table + i * sizeof(Segment));
      if (!segment) return cannot("its segment table is truncated");
      segments_.push_back(*segment);
      segment_rows_.push_back(*table + i * sizeof(Segment));
    }
    return {};
  }

  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Segment& one : segments_)
      if (one.type == kLoad && address >= one.address && address < one.address + one.file_bytes)
        return one.offset + (address - one.address);
    return std::nullopt;
  }

  // Readers of device code look into this section, and the runtime follows a pointer into it: both
  // must see the same.
  Status read_fat_section() {
    auto table = get<uint64_t>(40);
    auto row = get<uint16_t>(58), count = get<uint16_t>(60), names = get<uint16_t>(62);
    if (!table || !row || !count || !names || *table == 0 || *row != sizeof(Section))
      return cannot("it has no section table");
    auto name_section = get<Section>(*table + *names * sizeof(Section));
    if (!name_section || name_section->offset > bytes_.size())
      return cannot("its section names are truncated");
    for (uint16_t i = 0; i < *count; ++i) {
      auto section = get<Section>(*table + i * sizeof(Section));
      if (!section || section->name > bytes_.size() - name_section->offset)
        return cannot("its section table is truncated");
      std::string_view name = std::string_view(bytes_).substr(name_section->offset + section->name);
      if (name.substr(0, name.find('\0')) != ".nv_fatbin") continue;
      if (section->offset > bytes_.size() || section->bytes > bytes_.size() - section->offset)
        return cannot("its fat binaries are truncated");
      section_ = *section;
      section_row_ = *table + i * sizeof(Section);
      return {};
    }
    return cannot("it has no fat binary section");
  }

  // The section with what grew goes to a segment of its own at the end of the file and behind all
  // addresses, made of that of fat_object's spare note, which alone is aligned by 8: by other notes
  // op libraries know each other. Segments to load are in the order of their addresses: the note's
  // row must come last.
  Status move_section(const std::vector<Span>& places) {
    std::string content;
    uint64_t copied = 0;
    std::vector<uint64_t> moved;  // where each of `places` is now
    for (const Span& place : places) {
      content.append(bytes_, section_.offset + copied, place.at - copied);
      moved.push_back(content.size());
      content += place.after;
      content.resize(moved.back() + place.room());
      copied = place.at + place.bytes;
    }
    content.append(bytes_, section_.offset + copied, section_.bytes - copied);

    std::optional<size_t> added;
    uint64_t end = 0;
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (segments_[i].type == kNote && segments_[i].align == 8) added = i;
      if (segments_[i].type != kLoad) continue;
      end = std::max(end, segments_[i].address + segments_[i].memory_bytes);
      if (added) return cannot("its spare note comes before a load segment");
    }
    if (!added) return cannot("it has no spare note");
    uint64_t address = (end + kPageBytes - 1) / kPageBytes * kPageBytes;
    uint64_t offset = (bytes_.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
    CHECK_OK(point_to(places, moved, address));
    std::memset(bytes_.data() + section_.offset, 0, section_.bytes);
    bytes_.resize(offset);
    bytes_ += content;
    put(segment_rows_[*added],
        Segment{kLoad, 4, offset, address, address, content.size(), content.size(), kPageBytes});
    section_.address = address;
    section_.offset = offset;
    section_.bytes = content.size();
    put(section_row_, section_);
    return {};
  }

  Status point_to(const std::vector<Span>& places, const std::vector<uint64_t>& moved,
                  uint64_t new_address) {
    uint64_t table = 0, bytes = 0;
    for (const Segment& segment : segments_) {
      if (segment.type != kDynamic) continue;
      for (uint64_t at = segment.offset; at < segment.offset + segment.file_bytes;
           at += sizeof(DynamicRow)) {
        auto row = get<DynamicRow>(at);
        if (!row || row->tag == 0) break;
        if (row->tag == kRela) table = row->value;
        if (row->tag == kRelaBytes) bytes = row->value;
      }
    }
    auto offset = offset_of(table);
    if (!table || !offset) return cannot("it has no relocations");
    std::vector<int> found(places.size());
    for (uint64_t at = *offset; at < *offset + bytes; at += sizeof(Relocation)) {
      auto row = get<Relocation>(at);
      if (!row) return cannot("its relocations are truncated");
      uint64_t into = row->addend - section_.address;
      if (row->kind != kRelative || into >= section_.bytes) continue;
      uint64_t old_address = row->addend, now = into;
      for (size_t i = 0; i < places.size() && places[i].at <= into; ++i) {
        if (into == places[i].at) ++found[i];
        if (into > places[i].at && into < places[i].at + places[i].bytes)
          return cannot("a relocation points into the middle of a fat binary");
        now = into == places[i].at
                  ? moved[i]
                  : into - places[i].at - places[i].bytes + moved[i] + places[i].room();
      }
      row->addend = new_address + now;
      put(at, *row);
      // The place holds the same value where the linker wrote it there too.
      if (auto place = offset_of(row->place)) {
        auto value = get<uint64_t>(*place);
        if (value && *value == old_address) put(*place, row->addend);
      }
    }
    if (std::any_of(found.begin(), found.end(), [](int times) { return times != 1; }))
      return cannot("its fat binary does not have exactly one relocation");
    return {};
  }

  std::string bytes_;
  std::vector<Segment> segments_;
  std::vector<uint64_t> segment_rows_;
  Section section_{};  // .nv_fatbin
  uint64_t section_row_ = 0;
};

}  // namespace

Result<std::string> swap_fat_binaries(std::string_view library, const std::vector<FatSwap>& swaps) {
  return Library(library).swapped(swaps);
}

}  // namespace kiln::build
