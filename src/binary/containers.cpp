// SPDX-License-Identifier: Apache-2.0
// How are archives walked whose names, sizes and offsets may lie?
#include "binary/containers.h"

#include <fmt/format.h>
#include <zlib.h>

#include <optional>

#include "base/text.h"
#include "binary/decompress.h"

namespace kiln::binary {
namespace {

constexpr uint64_t kArHeaderBytes = 60, kZipEndBytes = 22, kZipEntryBytes = 46, kZipLocalBytes = 30;
constexpr uint32_t kZipEnd = 0x06054b50, kZip64Locator = 0x07064b50, kZip64End = 0x06064b50,
                   kZipEntry = 0x02014b50, kZipLocal = 0x04034b50;
constexpr std::string_view kArMagic = "!<arch>\n";

Error damaged(std::string_view what, uint64_t offset, std::string why) {
  return Error{Fault::Work, fmt::format("cannot read {}", what),
               fmt::format("at offset {}: {}", offset, why), ""};
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool leads_out(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != name.npos) return true;
  for (std::string_view part : text::split(name, '/'))
    if (part == "..") return true;
  return false;
}

// A newline in a name could feign a line of kiln's own, an escape sequence steer the terminal.
std::optional<uint64_t> control_character(std::string_view name) {
  for (uint64_t i = 0; i < name.size(); ++i)
    if (auto c = static_cast<unsigned char>(name[i]); c < 0x20 || c == 0x7f) return i;
  return std::nullopt;
}

struct Directory {
  uint64_t offset = 0, count = 0;
};

Result<Directory> find_directory(Bytes bytes) {
  // The record at the end may be followed by a comment of up to 65,535 bytes.
  if (bytes.size() < kZipEndBytes)
    return damaged("a zip archive", 0, "it is shorter than its end record");
  uint64_t last = bytes.size() - kZipEndBytes, first = last > 0xffff ? last - 0xffff : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (read_at<uint32_t>(bytes, at) != kZipEnd) continue;
    Directory out{*read_at<uint32_t>(bytes, at + 16), *read_at<uint16_t>(bytes, at + 10)};
    if (at >= 20 && read_at<uint32_t>(bytes, at - 20) == kZip64Locator) {
      uint64_t record = *read_at<uint64_t>(bytes, at - 12);
      auto count = read_at<uint64_t>(bytes, record + 32),
           offset = read_at<uint64_t>(bytes, record + 48);
      if (record > bytes.size() || read_at<uint32_t>(bytes, record) != kZip64End || !count ||
          !offset)
        return damaged("a zip archive", at - 12, "the zip64 record is not at its stated offset");
      out = {*offset, *count};
    }
    return out;
  }
  return damaged("a zip archive", bytes.size(),
                 "the directory at its end is missing: it is truncated, or not a zip");
}

// Sizes and offsets that do not fit into 32 bits are in the extra field of id 1, in this order.
void read_zip64(Bytes extra, uint64_t& unpacked, uint64_t& packed, uint64_t& local) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    uint16_t id = *read_at<uint16_t>(extra, at), size = *read_at<uint16_t>(extra, at + 2);
    if (id == 1) {
      uint64_t field = at + 4;
      for (uint64_t* value : {&unpacked, &packed, &local}) {
        if (*value != 0xffffffff) continue;
        *value = read_at<uint64_t>(extra, field).value_or(*value);
        field += 8;
      }
    }
    at += 4u + size;
  }
}

// The central directory counts, not the local headers: those may hold zeros where a stream was
// written. Every length comes from the file and is checked before it is used.
Result<Member> read_zip_entry(Bytes bytes, uint64_t* at) {
  auto head = slice(bytes, *at, kZipEntryBytes);
  if (!head || read_at<uint32_t>(*head, 0) != kZipEntry)
    return damaged("a zip archive", *at, "no directory entry here");
  uint64_t name_bytes = *read_at<uint16_t>(*head, 28), extra_bytes = *read_at<uint16_t>(*head, 30),
           comment_bytes = *read_at<uint16_t>(*head, 32);
  auto name = slice(bytes, *at + kZipEntryBytes, name_bytes);
  auto extra = slice(bytes, *at + kZipEntryBytes + name_bytes, extra_bytes);
  if (!name || !extra) return damaged("a zip archive", *at, "a directory entry is truncated");
  Member member;
  member.name = std::string(text_of(*name));
  member.method = *read_at<uint16_t>(*head, 10);
  constexpr uint8_t kUnix = 3, kDarwin = 19;  // APPNOTE.TXT 4.4.2.2
  if (const uint8_t system = *read_at<uint8_t>(*head, 5); system == kUnix || system == kDarwin)
    member.mode = *read_at<uint32_t>(*head, 38) >> 16;
  member.unpacked_bytes = *read_at<uint32_t>(*head, 24);
  uint64_t packed = *read_at<uint32_t>(*head, 20), local = *read_at<uint32_t>(*head, 42);
  read_zip64(*extra, member.unpacked_bytes, packed, local);
  if (auto bad = control_character(member.name))
    return damaged("a zip archive", *at + kZipEntryBytes + *bad,
                   "a member's name has a control character");
  if (leads_out(member.name))
    return damaged("a zip archive", *at,
                   fmt::format("the member '{}' is outside its folder", member.name));
  if (*read_at<uint16_t>(*head, 8) & 1)
    return damaged("a zip archive", *at, fmt::format("the member '{}' is encrypted", member.name));
  if (local > bytes.size() || read_at<uint32_t>(bytes, local) != kZipLocal ||
      !slice(bytes, local, kZipLocalBytes))
    return damaged("a zip archive", *at,
                   fmt::format("the member '{}' claims to start at {}", member.name, local));
  const uint64_t local_name_bytes = *read_at<uint16_t>(bytes, local + 26);
  const auto local_name = slice(bytes, local + kZipLocalBytes, local_name_bytes);
  if (!local_name || text_of(*local_name) != member.name)
    return damaged("a zip archive", local,
                   fmt::format("the member '{}' has another name before its data", member.name));
  uint64_t data = local + kZipLocalBytes + local_name_bytes + *read_at<uint16_t>(bytes, local + 28);
  auto content = slice(bytes, data, packed);
  if (!content)
    return damaged("a zip archive", *at,
                   fmt::format("the member '{}' claims {} bytes from offset {}, the file has {}",
                               member.name, packed, data, bytes.size()));
  member.packed = *content;
  *at += kZipEntryBytes + name_bytes + extra_bytes + comment_bytes;
  return member;
}

}  // namespace

bool is_ar(Bytes bytes) { return text_of(bytes).starts_with(kArMagic); }
bool is_zip(Bytes bytes) {
  const uint32_t magic = read_at<uint32_t>(bytes, 0).value_or(0);
  return magic == kZipLocal || magic == kZipEnd;
}

Result<std::vector<Member>> read_ar(Bytes bytes) {
  std::vector<Member> out;
  std::string_view long_names;
  uint64_t at = kArMagic.size();
  while (at + kArHeaderBytes <= bytes.size()) {
    std::string_view head = text_of(bytes.subspan(at, kArHeaderBytes));
    auto size = text::to_int(text::trim(head.substr(48, 10)));
    if (head.substr(58) != "`\n" || !size || *size < 0)
      return damaged("an archive", at, "no member header here");
    auto content = slice(bytes, at + kArHeaderBytes, static_cast<uint64_t>(*size));
    if (!content)
      return damaged("an archive", at,
                     fmt::format("a member claims {} bytes, but {} are left", *size,
                                 bytes.size() - at - kArHeaderBytes));
    std::string_view name = text::trim(head.substr(0, 16));
    if (name == "//") {
      long_names = text_of(*content);
    } else if (name != "/" && name != "/SYM64/") {
      if (name.starts_with('/')) {
        auto where = text::to_int(name.substr(1));
        if (!where || *where < 0 || static_cast<uint64_t>(*where) >= long_names.size())
          return damaged("an archive", at, "a member's name is outside the name table");
        name = long_names.substr(static_cast<uint64_t>(*where));
        name = name.substr(0, name.find('\n'));
      }
      if (name.ends_with('/')) name.remove_suffix(1);
      if (control_character(name))
        return damaged("an archive", at, "a member's name has a control character");
      out.push_back({std::string(name), *content, content->size(), 0});
    }
    at += kArHeaderBytes + ((static_cast<uint64_t>(*size) + 1) & ~uint64_t{1});
  }
  return out;
}

Result<std::vector<Member>> read_zip(Bytes bytes) {
  TRY(Directory directory, find_directory(bytes));
  if (directory.offset > bytes.size() ||
      directory.count > (bytes.size() - directory.offset) / kZipEntryBytes)
    return damaged("a zip archive", directory.offset,
                   fmt::format("it claims {} members, but the file has {} bytes", directory.count,
                               bytes.size()));
  std::vector<Member> out;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    TRY(Member member, read_zip_entry(bytes, &at));
    out.push_back(std::move(member));
  }
  return out;
}

Result<std::vector<std::byte>> unpack_member(const Member& member) {
  auto wrong = [&](std::string why) {
    return Error{Fault::Work, fmt::format("cannot unpack '{}'", member.name), std::move(why), ""};
  };
  if (member.method == 0) return std::vector<std::byte>(member.packed.begin(), member.packed.end());
  if (member.method != 8)
    return wrong(fmt::format("compression method {}; supported are 0 and 8", member.method));
  // Deflate shrinks by 1,032 at most: a larger claim is a lie.
  if (member.unpacked_bytes > kMaxUnpackedBytes ||
      member.unpacked_bytes / 1100 > member.packed.size() + 1)
    return wrong(fmt::format("it claims {} bytes from {} packed ones", member.unpacked_bytes,
                             member.packed.size()));
  std::vector<std::byte> out(member.unpacked_bytes);
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return wrong("zlib has no memory");
  uint64_t taken = 0, written = 0;
  Bytef nowhere = 0;  // an empty member has an end all the same, and zlib wants an address
  int state = Z_OK;
  while (state == Z_OK) {
    constexpr uint64_t kStep = 1 << 30;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(member.packed.data() + taken));
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(kStep, member.packed.size() - taken));
    stream.next_out = out.empty() ? &nowhere : reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(kStep, out.size() - written));
    uInt in = stream.avail_in, room = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    written += room - stream.avail_out;
    if (state == Z_OK && in == stream.avail_in && room == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || written != out.size())
    return wrong(fmt::format("deflate: damaged at byte {} of {}; got {} bytes, expected {}", taken,
                             member.packed.size(), written, out.size()));
  return out;
}

}  // namespace kiln::binary
