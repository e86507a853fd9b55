// SPDX-License-Identifier: Apache-2.0
// What does an entry of the cache look like? Files of one step, why they are what they are, and a hash over all of it.
//
//   kiln-entry 1\n
//   <bytes of the header, packed bytes of the files, unpacked bytes>\n
//   <header, JSON>
//   <files one after another, packed>
//   <64 hexadecimal digits: the hash of everything above>
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::build {

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
// Without the files; nothing is verified but the form.
Result<Entry> read_entry_header(std::string_view bytes);

// With a secret's hash at the end, for a place that others can write to; and back, when the hash is right.
std::string sign(std::string_view bytes, std::string_view key, std::string_view secret);
Result<std::string> verified(std::string_view signed_bytes, std::string_view key, std::string_view secret);

}  // namespace kiln::build
