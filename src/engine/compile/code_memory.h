// SPDX-License-Identifier: Apache-2.0
// Where does machine code lie? In pages of its own that are first written and then executed, never
// both at once.
#pragma once

#include <cstddef>
#include <span>

namespace kiln::engine {

class CodeMemory {
 public:
  CodeMemory() = default;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  ~CodeMemory();
  // False: there is no memory, or the system forbids to execute what was written.
  bool fill(std::span<const std::byte> code);
  const void* begin() const { return pages_; }

 private:
  void* pages_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace kiln::engine
