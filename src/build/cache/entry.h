// SPDX-License-Identifier: Apache-2.0
// What does an entry of the cache look like? Files of one step, why they are what they are, and a
// hash over all of it.
//
//   kiln-entry 1\n
//   <bytes of the header, packed bytes of the files, unpacked bytes>\n
//   <header, JSON>
//   <files one after another, packed>
//   <64 hexadecimal digits: the hash of everything above>
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::build {

// Nothing that is kept is larger (a Redis server takes no more); what claims to be is damaged, or a
// trap.
inline constexpr uint64_t kMaxEntryBytes = uint64_t{512} << 20;
// The beginning of an entry that holds its sizes.
inline constexpr size_t kEntryBeginningBytes = 96;

struct EntryFile {
  std::string name;
  std::string content;
};

struct Entry {
  std::string key;   // 64 hexadecimal digits
  std::string what;  // "compile add.cu for compute_90"
  Json parts;        // of the key, for people: which flags, which files
  std::vector<EntryFile> files;
};

std::string write_entry(const Entry& entry);
// An error when a byte is missing or wrong, or when it is the entry of another key.
Result<Entry> read_entry(std::string_view bytes, std::string_view key);
// How many bytes the entry has that begins so, by its own account: asked before all of it is read.
Result<uint64_t> declared_bytes(std::string_view beginning);
// Without the files; nothing is verified but the form.
Result<Entry> read_entry_header(std::string_view bytes);

// With a secret's hash at the end, for a place that others can write to; and back, when the hash is
// right.
std::string sign(std::string_view bytes, std::string_view key, std::string_view secret);
inline constexpr size_t kSignatureBytes = 64;
Result<std::string> verified(std::string_view signed_bytes, std::string_view key,
                             std::string_view secret);

}  // namespace kiln::build
