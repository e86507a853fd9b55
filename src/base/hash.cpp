// SPDX-License-Identifier: Apache-2.0
// What is the name of some content? Its BLAKE2b-256, written after RFC 7693, section 3.
#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln {

namespace {

constexpr size_t kHashBytes = 32;
constexpr size_t kMostKeyBytes = 64;

constexpr std::array<uint64_t, 8> kInitial = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

constexpr unsigned char kSigma[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                          {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                          {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                          {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                          {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                          {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                          {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                          {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                          {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                          {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

inline void mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d, uint64_t x, uint64_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

}  // namespace

Hasher::Hasher() : state_(kInitial) { state_[0] ^= 0x01010000 ^ kHashBytes; }

Hasher::Hasher(std::string_view key) : Hasher() {
  key = key.substr(0, kMostKeyBytes);
  state_[0] ^= key.size() << 8;
  if (key.empty()) return;
  add(key);
  filled_ = block_.size();  // the rest of the key's block is zeros
}

void Hasher::compress(bool last) {
  static_assert(std::endian::native == std::endian::little);
  std::array<uint64_t, 16> m;
  std::memcpy(m.data(), block_.data(), sizeof m);
  std::array<uint64_t, 16> v;
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(kInitial.begin(), kInitial.end(), v.begin() + 8);
  v[12] ^= total_;
  if (last) v[14] = ~v[14];
  for (int round = 0; round < 12; ++round) {
    const unsigned char* s = kSigma[round % 10];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
  for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

Hasher& Hasher::add(std::string_view bytes) {
  while (!bytes.empty()) {
    // A full block waits until more comes: the last block is compressed with its mark.
    if (filled_ == block_.size()) {
      total_ += filled_;
      compress(false);
      filled_ = 0;
    }
    size_t count = std::min(bytes.size(), block_.size() - filled_);
    std::memcpy(block_.data() + filled_, bytes.data(), count);
    filled_ += count;
    bytes.remove_prefix(count);
  }
  return *this;
}

Hasher& Hasher::add_field(std::string_view bytes) {
  uint64_t size = bytes.size();
  add({reinterpret_cast<const char*>(&size), sizeof size});
  return add(bytes);
}

std::string Hasher::hex() {
  total_ += filled_;
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(), 0);
  compress(true);
  std::string out;
  const auto* bytes = reinterpret_cast<const unsigned char*>(state_.data());
  for (size_t i = 0; i < kHashBytes; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

std::string hash_hex(std::string_view bytes) { return Hasher().add(bytes).hex(); }

}  // namespace kiln
