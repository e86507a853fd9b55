// SPDX-License-Identifier: Apache-2.0
// How does kiln pack what it keeps? By zstd at its fastest: generated C++ shrinks to a tenth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kiln::binary {

std::string pack(std::string_view content);
// Exactly `unpacked_bytes` come out, or an error.
Result<std::string> unpack(std::string_view packed, uint64_t unpacked_bytes);

}  // namespace kiln::binary
