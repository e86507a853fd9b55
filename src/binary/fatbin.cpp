// SPDX-License-Identifier: Apache-2.0
// How are the entries of a fat binary found?
#include "binary/fatbin.h"

#include <fmt/format.h>

namespace kiln::binary {
namespace {

constexpr uint64_t kContainerHeaderBytes = 16;
constexpr uint64_t kSmallestEntryHeader = 64;
constexpr uint64_t kFlagDebug = 0x2, kFlagLz4 = 0x2000, kFlagZstd = 0x8000,
                   kFlagVariantA = 0x100000, kFlagVariantF = 0x200000;

Error damaged_fatbin(std::string why) {
  return Error{Fault::Work, "cannot read a fat binary", std::move(why), ""};
}

// The format has no public description: what the fields mean was found by comparing with cuobjdump
// on many binaries. Whatever is outside of what was seen is refused, with its offset.
Result<FatbinEntry> read_entry(Bytes container, uint64_t at, uint64_t* next) {
  auto header_bytes = read_at<uint32_t>(container, at + 4);
  auto payload_bytes = read_at<uint64_t>(container, at + 8);
  if (!header_bytes || !payload_bytes || *header_bytes < kSmallestEntryHeader) {
    return damaged_fatbin(fmt::format("the header of the entry at offset {} is truncated", at));
  }
  auto header = slice(container, at, *header_bytes);
  if (!header || !slice(container, at + *header_bytes, *payload_bytes)) {
    return damaged_fatbin(fmt::format(
        "the entry at offset {} claims {} + {} bytes, but the container ends before that", at,
        *header_bytes, *payload_bytes));
  }
  FatbinEntry entry;
  entry.kind = *read_at<uint16_t>(*header, 0);
  uint32_t compressed = *read_at<uint32_t>(*header, 0x10);
  entry.arch = *read_at<uint32_t>(*header, 0x1c);
  uint64_t flags = *read_at<uint64_t>(*header, 0x28);
  entry.unpacked_bytes = *read_at<uint64_t>(*header, 0x38);
  entry.debug = flags & kFlagDebug;
  entry.variant = flags & kFlagVariantA ? 'a' : flags & kFlagVariantF ? 'f' : 0;
  entry.compression = flags & kFlagZstd  ? Compression::Zstd
                      : flags & kFlagLz4 ? Compression::Lz4
                                         : Compression::None;
  entry.version_minor = *read_at<uint16_t>(*header, 0x18);
  entry.version_major = *read_at<uint16_t>(*header, 0x1a);
  entry.offset = at + *header_bytes;
  entry.payload_bytes = *payload_bytes;
  entry.packed_bytes = entry.compression == Compression::None ? *payload_bytes : compressed;
  if (entry.packed_bytes > *payload_bytes) {
    return damaged_fatbin(
        fmt::format("the entry at offset {} claims {} packed bytes in a payload of {}", at,
                    compressed, *payload_bytes));
  }
  uint32_t identifier_at = *read_at<uint32_t>(*header, 0x20),
           identifier_bytes = *read_at<uint32_t>(*header, 0x24);
  if (identifier_at && identifier_bytes) {
    if (auto text = slice(container, at + identifier_at, identifier_bytes)) {
      entry.identifier.assign(reinterpret_cast<const char*>(text->data()), text->size());
    }
  }
  *next = at + *header_bytes + *payload_bytes;
  return entry;
}

}  // namespace

Result<uint64_t> container_bytes(Bytes head) {
  auto magic = read_at<uint32_t>(head, 0);
  auto header = read_at<uint16_t>(head, 6);
  auto size = read_at<uint64_t>(head, 8);
  if (!magic || !header || !size) return damaged_fatbin("it ends inside the container's header");
  if (*magic != kContainerMagic)
    return damaged_fatbin(
        fmt::format("the magic is 0x{:08x}, expected 0x{:08x}", *magic, kContainerMagic));
  if (*header < kContainerHeaderBytes)
    return damaged_fatbin(fmt::format("the container's header has {} bytes, expected 16", *header));
  if (*size > kMaxUnpackedBytes * 16)
    return damaged_fatbin(fmt::format("the container claims {} bytes", *size));
  return *header + *size;
}

Result<std::vector<FatbinEntry>> read_container(Bytes container) {
  TRY(uint64_t size, container_bytes(container));
  if (size > container.size()) {
    return damaged_fatbin(
        fmt::format("the container claims {} bytes, but has {}", size, container.size()));
  }
  std::vector<FatbinEntry> entries;
  Bytes whole = container.first(size);
  uint64_t at = *read_at<uint16_t>(container, 6);
  while (at < size) {
    uint64_t next = 0;
    TRY(FatbinEntry entry, read_entry(whole, at, &next));
    entries.push_back(std::move(entry));
    at = next;
  }
  return entries;
}

Result<std::vector<std::byte>> read_image(Bytes container, const FatbinEntry& entry) {
  auto packed = slice(container, entry.offset, entry.packed_bytes);
  if (!packed) return damaged_fatbin("an entry is outside its container");
  TRY(auto image, decompress(entry.compression, *packed, entry.unpacked_bytes));
  if (entry.kind == static_cast<uint16_t>(ImageKind::Ptx)) {
    while (!image.empty() && image.back() == std::byte{0}) image.pop_back();
  }
  return image;
}

Result<std::vector<PtxText>> read_ptx(Bytes container) {
  TRY(auto entries, read_container(container));
  std::vector<PtxText> out;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind != static_cast<uint16_t>(ImageKind::Ptx)) continue;
    TRY(auto image, read_image(container, entry));
    out.push_back({entry.arch, entry.variant,
                   std::string(reinterpret_cast<const char*>(image.data()), image.size())});
  }
  return out;
}

Result<std::vector<PtxText>> ptx_in_wrapper(const void* wrapper) {
  struct Wrapper {
    uint32_t magic;
    uint32_t version;
    const std::byte* container;
    const void* names;
  };
  Wrapper seen;
  if (!wrapper) return damaged_fatbin("the wrapper is null");
  std::memcpy(&seen, wrapper, sizeof seen);
  if (seen.magic != kWrapperMagic) {
    return damaged_fatbin(fmt::format("the wrapper's magic is 0x{:08x}, expected 0x{:08x}",
                                      seen.magic, kWrapperMagic));
  }
  if (!seen.container) return damaged_fatbin("the wrapper does not point to a container");
  TRY(uint64_t size, container_bytes({seen.container, kContainerHeaderBytes}));
  return read_ptx({seen.container, size});
}

}  // namespace kiln::binary
