// SPDX-License-Identifier: Apache-2.0
// Which files are inside an ar archive (.a) or a zip archive (.whl)?
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "binary/bytes.h"

namespace kiln::binary {

struct Member {
  std::string name;
  Bytes packed;
  uint64_t unpacked_bytes = 0;
  uint16_t method = 0;  // of a zip: 0 stored, 8 deflate
  uint32_t mode = 0;    // of a zip written on Unix: st_mode, such as 0100644; 0: unknown
};

bool is_ar(Bytes bytes);
bool is_zip(Bytes bytes);
Result<std::vector<Member>> read_ar(Bytes bytes);
// Of the central directory. Refused: names that lead out of the folder they are unpacked to,
// encryption, members that claim more bytes than `kMaxRatio` times what they take.
Result<std::vector<Member>> read_zip(Bytes bytes);
// Checked against the size that its header claims.
Result<std::vector<std::byte>> unpack_member(const Member& member);

}  // namespace kiln::binary
