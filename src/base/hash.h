// SPDX-License-Identifier: Apache-2.0
// What is the name of some content? Its BLAKE2b-256 (RFC 7693): two contents with one name do not
// happen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

class Hasher {
 public:
  Hasher();
  // With a secret key of at most 64 bytes (RFC 7693, 2.9): who lacks it cannot make the same hash.
  explicit Hasher(std::string_view key);
  Hasher& add(std::string_view bytes);
  // The length goes in first, so that ("ab", "c") and ("a", "bc") differ.
  Hasher& add_field(std::string_view bytes);
  // 64 lowercase hexadecimal digits; the hasher is spent.
  std::string hex();

 private:
  void compress(bool last);

  std::array<uint64_t, 8> state_;
  std::array<unsigned char, 128> block_{};
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

std::string hash_hex(std::string_view bytes);

}  // namespace kiln
