// SPDX-License-Identifier: Apache-2.0
// What does an entry of the cache look like?
#include "build/cache/entry.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"
#include "binary/decompress.h"
#include "binary/pack.h"

namespace kiln::build {

namespace {

constexpr std::string_view kMagic = "kiln-entry 1\n";
constexpr size_t kHashDigits = 64;
static_assert(kHashDigits == kSignatureBytes);

Error damaged(std::string why) {
  return {Fault::Environment, "a cache entry is damaged", std::move(why), "kiln cache clear"};
}

struct Layout {
  std::string_view header, packed;
  uint64_t unpacked_bytes = 0;
};

struct Sizes {
  size_t begin = 0;  // of the header
  uint64_t header = 0, packed = 0, unpacked = 0;
  // Each is at most kMaxEntryBytes or so: their sum does not overflow.
  uint64_t total() const { return begin + header + packed + kHashDigits; }
};

Result<Sizes> sizes_of(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return damaged("it does not start like one");
  std::string_view rest = bytes.substr(kMagic.size());
  size_t line = rest.substr(0, kEntryBeginningBytes - kMagic.size()).find('\n');
  if (line == std::string_view::npos) return damaged("it has no sizes");
  auto numbers = text::split(rest.substr(0, line), ' ');
  if (numbers.size() != 3) return damaged("it has no sizes");
  Sizes sizes;
  sizes.begin = kMagic.size() + line + 1;
  for (size_t i = 0; i < 3; ++i) {
    auto value = text::to_int(numbers[i]);
    if (!value || *value < 0) return damaged("its sizes are not numbers");
    if (static_cast<uint64_t>(*value) > (i < 2 ? kMaxEntryBytes : binary::kMaxUnpackedBytes))
      return damaged(fmt::format("it claims {} bytes", *value));
    (i == 0   ? sizes.header
     : i == 1 ? sizes.packed
              : sizes.unpacked) = static_cast<uint64_t>(*value);
  }
  return sizes;
}

Result<Layout> layout_of(std::string_view bytes) {
  TRY(const Sizes sizes, sizes_of(bytes));
  if (sizes.total() != bytes.size())
    return damaged(fmt::format("it has {} bytes, its header says {}", bytes.size(), sizes.total()));
  return Layout{bytes.substr(sizes.begin, sizes.header),
                bytes.substr(sizes.begin + sizes.header, sizes.packed), sizes.unpacked};
}

Result<Json> header_of(const Layout& layout) {
  return parse_json(layout.header, "an entry of the cache");
}

Result<Entry> entry_of(const Json& header) {
  try {
    Entry entry{header.at("key"), header.at("what"), header.at("parts"), {}};
    for (const Json& file : header.at("files")) entry.files.push_back({file.at("name"), ""});
    return entry;
  } catch (const nlohmann::json::exception& e) {
    return damaged(e.what());
  }
}

std::string mac(std::string_view bytes, std::string_view key, std::string_view secret) {
  // A secret of any length becomes a key of 64 bytes.
  return Hasher(hash_hex(secret)).add_field(key).add_field(bytes).hex();
}

}  // namespace

std::string write_entry(const Entry& entry) {
  Json files = Json::array();
  std::string contents;
  for (const EntryFile& file : entry.files) {
    files.push_back({{"name", file.name}, {"bytes", file.content.size()}});
    contents += file.content;
  }
  std::string header =
      dump({{"key", entry.key}, {"what", entry.what}, {"parts", entry.parts}, {"files", files}});
  std::string packed = binary::pack(contents);
  std::string bytes =
      fmt::format("{}{} {} {}\n{}", kMagic, header.size(), packed.size(), contents.size(), header);
  bytes += packed;
  return bytes + hash_hex(bytes);
}

Result<uint64_t> declared_bytes(std::string_view beginning) {
  TRY(const Sizes sizes, sizes_of(beginning));
  return sizes.total();
}

Result<Entry> read_entry_header(std::string_view bytes) {
  TRY(Layout layout, layout_of(bytes));
  TRY(const Json header, header_of(layout));
  return entry_of(header);
}

Result<Entry> read_entry(std::string_view bytes, std::string_view key) {
  TRY(Layout layout, layout_of(bytes));
  std::string_view body = bytes.substr(0, bytes.size() - kHashDigits);
  if (hash_hex(body) != bytes.substr(bytes.size() - kHashDigits))
    return damaged("its content does not match its hash");
  TRY(const Json header, header_of(layout));
  TRY(Entry entry, entry_of(header));
  if (entry.key != key) return damaged("it belongs to another key");
  TRY(std::string contents, binary::unpack(layout.packed, layout.unpacked_bytes));
  size_t at = 0;
  for (size_t i = 0; i < entry.files.size(); ++i) {
    size_t size = header["files"][i].value("bytes", size_t{0});
    if (size > contents.size() - at) return damaged("its files are longer than its content");
    entry.files[i].content = contents.substr(at, size);
    at += size;
  }
  return entry;
}

std::string sign(std::string_view bytes, std::string_view key, std::string_view secret) {
  return std::string(bytes) + mac(bytes, key, secret);
}

Result<std::string> verified(std::string_view signed_bytes, std::string_view key,
                             std::string_view secret) {
  if (signed_bytes.size() < kHashDigits) return damaged("it is too short");
  std::string_view bytes = signed_bytes.substr(0, signed_bytes.size() - kHashDigits);
  std::string wanted = mac(bytes, key, secret);
  std::string_view seen = signed_bytes.substr(bytes.size());
  unsigned difference = 0;  // in the same time wherever they differ
  for (size_t i = 0; i < kHashDigits; ++i)
    difference |= static_cast<unsigned char>(wanted[i] ^ seen[i]);
  if (difference != 0) return damaged("it was not signed with this team's key");
  return std::string(bytes);
}

}  // namespace kiln::build
