// SPDX-License-Identifier: Apache-2.0
// What are the bytes of a file for? Groups, and how many bytes each has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::results {

enum class Group {
  Header,
  HostCode,
  HostData,
  Sass,
  Ptx,
  Lto,
  Fatbin,
  Symbols,
  Relocations,
  Unwind,
  Debug,
  Other,
  Gap
};
inline constexpr size_t kGroups = static_cast<size_t>(Group::Gap) + 1;
std::string_view name_of(Group group);

struct GroupBytes {
  Group group = Group::Other;
  uint64_t bytes = 0;
};

struct Piece {
  Group group = Group::Other;
  std::string name;  // ".text", "sm_90", "section headers"
  uint64_t offset = 0, bytes = 0;
};

// Images of one kind in the fat binaries of a file.
struct ImageBytes {
  std::string label;        // "sm_90", "compute_90"
  std::string compression;  // "none", "zstd"
  size_t count = 0;
  uint64_t packed_bytes = 0, unpacked_bytes = 0;
  bool debug = false;
};

// The file as a whole.
struct FileBytes {
  std::string name, kind;  // "libadd.so", "shared library"
  std::string machine;     // "aarch64"; empty for device code alone
  uint64_t bytes = 0;
  std::vector<GroupBytes> groups;  // largest first; their sum is `bytes`
  size_t containers = 0;           // fat binaries
  std::vector<ImageBytes> images;
};

}  // namespace kiln::results
