// SPDX-License-Identifier: Apache-2.0
// How is a tensor read from, and written to, a .npy file of numpy (format versions 1, 2 and 3)?
//
// A file is untrusted bytes: whatever is wrong with it is reported with the offset where it stands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "host/array.h"

namespace kiln::host {

// Without `as`: V2 is read as bf16 and V4 as c32 (numpy has no names for them); V1 may be either
// fp8, so it needs `as`. With `as`: the elements are taken to be of that dtype; their size must be
// the same.
Result<Array> read_npy(const std::filesystem::path& path, std::optional<int32_t> as = std::nullopt);
Result<Array> parse_npy(std::span<const uint8_t> file, const std::string& name,
                        std::optional<int32_t> as);

// Version 1, C order, whole or not at all (a file next to it is renamed).
Status write_npy(const std::filesystem::path& path, const Array& array);
std::string npy_header(const Array& array);

// How numpy and torch get at a dtype that numpy has no name for; "" for the others.
std::string npy_note(int32_t dtype);

}  // namespace kiln::host
