// SPDX-License-Identifier: Apache-2.0
// What does a wheel hold, as an audit needs to know it? Any wheel, also one made by others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ship/release.h"

namespace kiln::ship {

struct WheelName {
  std::string name, version, python, abi,
      platform;  // "my_ext", "0.1.0", "py3", "none", "manylinux_2_17_aarch64"
  bool valid = false;
};
// "name-version[-build]-python-abi-platform.whl"
WheelName parse_wheel_name(std::string_view file_name);

struct MemberView {
  std::string name;
  uint64_t bytes = 0, packed_bytes = 0;
  std::string hash;  // as RECORD has it
  // Not a plain file: "a symbolic link to /etc/passwd", "a device", "setuid"; empty otherwise.
  std::string oddity{};
};

struct LibraryView {
  std::string member;
  uint64_t bytes = 0;
  LibraryNeeds needs;
  uint64_t symbol_table_bytes = 0;  // of the table that only debuggers read
  std::vector<std::string>
      torch_symbols;  // C++ names of torch that it needs: bound to few releases
  std::vector<std::string> python_symbols;
};

struct WheelView {
  std::string file_name;
  WheelName name;
  uint64_t bytes = 0;
  std::vector<MemberView> members;
  std::vector<LibraryView> libraries;
  std::vector<std::string> unreadable;       // libraries that are none, each with why
  std::map<std::string, std::string> texts;  // "METADATA", "WHEEL", "RECORD" of the dist-info
  std::string dist_info;                     // its folder
};

// Fails for what is not a zip, and for names that lead out of the folder a wheel is unpacked to.
Result<WheelView> read_wheel(const fs::path& file);

// The values of a field of METADATA or WHEEL, in order.
std::vector<std::string> field_values(const std::string& text, std::string_view field);

}  // namespace kiln::ship
