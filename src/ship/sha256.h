// SPDX-License-Identifier: Apache-2.0
// What is the SHA-256 of some bytes (FIPS 180-4)? The hash that a wheel's RECORD and PyPI use.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::ship {

std::array<uint8_t, 32> sha256(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);
// "sha256=" and the digest in URL-safe base64 without padding, as RECORD has it.
std::string record_hash(std::string_view bytes);

}  // namespace kiln::ship
