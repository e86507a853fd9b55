// SPDX-License-Identifier: Apache-2.0
// How does a test hand PTX to the engine's C interface?
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// A fat binary as nvcc makes it, with the PTX not packed.
struct Fatbin {
  std::vector<std::byte> container;
  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* container = nullptr;
    const void* names = nullptr;
  } wrapper;

  explicit Fatbin(const std::string& text) {
    auto put = [&](size_t at, auto value) {
      std::memcpy(container.data() + at, &value, sizeof value);
    };
    uint64_t payload = (text.size() + 1 + 7) / 8 * 8;
    container.resize(16 + 64 + payload);
    put(0, uint32_t{0xBA55ED50});
    put(4, uint16_t{1});
    put(6, uint16_t{16});
    put(8, uint64_t{64 + payload});
    put(16, uint16_t{1});
    put(20, uint32_t{64});
    put(24, payload);
    put(16 + 0x1c, uint32_t{90});
    std::memcpy(container.data() + 80, text.data(), text.size());
    wrapper.container = container.data();
  }
};
