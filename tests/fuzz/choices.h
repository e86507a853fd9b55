// SPDX-License-Identifier: Apache-2.0
// How do bytes steer a generator? Each decision takes a byte or two, so that libFuzzer changes one
// decision when it changes one byte. Behind the last byte every choice is the first one: generators
// put the plainest there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::fuzz {

class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool left() const { return at_ != end_; }
  // From 0 to count - 1.
  uint32_t below(uint32_t count) {
    if (count < 2) return 0;
    uint32_t value = byte();
    if (count > 256) value = value << 8 | byte();
    return value % count;
  }
  bool once_in(uint32_t count) { return below(count) == count - 1; }
  uint64_t bits() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  template <class List>
  const auto& of(const List& list) {
    return list[below(static_cast<uint32_t>(std::size(list)))];
  }

 private:
  uint8_t byte() { return at_ == end_ ? 0 : *at_++; }

  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace kiln::fuzz
