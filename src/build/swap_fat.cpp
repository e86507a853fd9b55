// SPDX-License-Identifier: Apache-2.0
// How does a linked library get other device code without a linker?
#include "build/swap_fat.h"

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
struct Relocation {
  uint64_t place, kind, addend;
};
struct DynamicRow {
  uint64_t tag, value;
};
constexpr uint32_t kLoad = 1, kDynamic = 2, kNote = 4;
constexpr uint64_t kRela = 7, kRelaBytes = 8;
constexpr uint64_t kPageBytes = 65536;  // the largest that either machine has
#ifdef __aarch64__
constexpr uint64_t kRelative = 1027;
#else
constexpr uint64_t kRelative = 8;
#endif

Error cannot(std::string why) { return {Fault::Work, "cannot put device code into a library", std::move(why), ""}; }

class Library {
 public:
  explicit Library(std::string_view bytes) : bytes_(bytes) {}

  Result<std::string> swapped(const std::vector<FatSwap>& swaps) {
    CHECK_OK(read_segments());
    for (const FatSwap& swap : swaps) {
      size_t at = bytes_.find(swap.before);
      if (at == std::string::npos || bytes_.find(swap.before, at + 1) != std::string::npos)
        return cannot("its fat binary is not there exactly once");
      if (swap.after.size() <= swap.before.size()) {
        bytes_.replace(at, swap.after.size(), swap.after);
        std::memset(bytes_.data() + at + swap.after.size(), 0, swap.before.size() - swap.after.size());
      } else {
        CHECK_OK(append(at, swap.after));
      }
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
      return cannot("it is no ELF library of 64 bits");
    for (uint16_t i = 0; i < *count; ++i) {
      auto segment = get<Segment>(*table + i * sizeof(Segment));
      if (!segment) return cannot("its table of segments is cut off");
      segments_.push_back(*segment);
      places_.push_back(*table + i * sizeof(Segment));
    }
    return {};
  }

  std::optional<uint64_t> address_of(uint64_t offset) const {
    for (const Segment& one : segments_)
      if (one.type == kLoad && offset >= one.offset && offset < one.offset + one.file_bytes)
        return one.address + (offset - one.offset);
    return std::nullopt;
  }
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Segment& one : segments_)
      if (one.type == kLoad && address >= one.address && address < one.address + one.file_bytes)
        return one.offset + (address - one.address);
    return std::nullopt;
  }

  // A segment at the end of the file and behind all addresses; made of the note segment at the first call. Segments to
  // load are in the order of their addresses: the note's row must come last.
  Status append(size_t old_offset, const std::string& content) {
    auto old_address = address_of(old_offset);
    if (!old_address) return cannot("its fat binary is in no segment");
    if (!added_) {
      uint64_t end = 0;
      for (size_t i = 0; i < segments_.size(); ++i) {
        if (segments_[i].type == kNote) added_ = i;
        if (segments_[i].type == kLoad) {
          end = std::max(end, segments_[i].address + segments_[i].memory_bytes);
          if (added_) return cannot("its note segment comes before one to load");
        }
      }
      if (!added_) return cannot("it has no note segment");
      bytes_.resize((bytes_.size() + kPageBytes - 1) / kPageBytes * kPageBytes);
      uint64_t address = (end + kPageBytes - 1) / kPageBytes * kPageBytes;
      segments_[*added_] = {kLoad, 4, bytes_.size(), address, address, 0, 0, kPageBytes};
    }
    Segment& segment = segments_[*added_];
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    uint64_t address = segment.address + (bytes_.size() - segment.offset);
    bytes_ += content;
    segment.file_bytes = segment.memory_bytes = bytes_.size() - segment.offset;
    put(places_[*added_], segment);
    return point_to(*old_address, address);
  }

  Status point_to(uint64_t old_address, uint64_t new_address) {
    uint64_t table = 0, bytes = 0;
    for (const Segment& segment : segments_) {
      if (segment.type != kDynamic) continue;
      for (uint64_t at = segment.offset; at < segment.offset + segment.file_bytes; at += sizeof(DynamicRow)) {
        auto row = get<DynamicRow>(at);
        if (!row || row->tag == 0) break;
        if (row->tag == kRela) table = row->value;
        if (row->tag == kRelaBytes) bytes = row->value;
      }
    }
    auto offset = offset_of(table);
    if (!table || !offset) return cannot("it has no relocations");
    int found = 0;
    for (uint64_t at = *offset; at < *offset + bytes; at += sizeof(Relocation)) {
      auto row = get<Relocation>(at);
      if (!row) return cannot("its relocations are cut off");
      if (row->kind != kRelative || row->addend != old_address) continue;
      row->addend = new_address;
      put(at, *row);
      // The place holds the same value where the linker wrote it there too.
      if (auto place = offset_of(row->place)) {
        auto value = get<uint64_t>(*place);
        if (value && *value == old_address) put(*place, new_address);
      }
      ++found;
    }
    if (found != 1) return cannot("not exactly one relocation points to its fat binary");
    return {};
  }

  std::string bytes_;
  std::vector<Segment> segments_;
  std::vector<uint64_t> places_;
  std::optional<size_t> added_;
};

}  // namespace

Result<std::string> swap_fat_binaries(std::string_view library, const std::vector<FatSwap>& swaps) {
  return Library(library).swapped(swaps);
}

}  // namespace kiln::build
