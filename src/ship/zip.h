// SPDX-License-Identifier: Apache-2.0
// How are files packed into a zip so that the same files always make the same bytes?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace kiln::ship {

struct PackedFile {
  std::string name;
  std::string content;
  bool executable = false;
};

// In the order given; deflate at its best level, no extra fields. `seconds` since 1970 is the time
// of every member; a zip cannot tell one before 1980, which is then 1980's first. Up to 65,535
// members and 4 GiB.
Result<std::string> write_zip(const std::vector<PackedFile>& files, int64_t seconds);

}  // namespace kiln::ship
