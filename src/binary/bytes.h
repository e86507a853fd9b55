// SPDX-License-Identifier: Apache-2.0
// How are numbers read from bytes that nobody vouches for? Every read is checked; a failed one
// gives no value.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace kiln::binary {

using Bytes = std::span<const std::byte>;

// The little-endian value at `offset`.
template <class T>
requires std::is_trivially_copyable_v<T> std::optional<T> read_at(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

inline std::optional<Bytes> slice(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.subspan(offset, size);
}

}  // namespace kiln::binary
