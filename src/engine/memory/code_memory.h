// SPDX-License-Identifier: Apache-2.0
// Where does machine code lie? In pages of its own that are first written and then executed, never
// both at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace kiln::engine {

class CodeMemory {
 public:
  CodeMemory() = default;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  // False: there is no memory, or the system forbids to execute what was written.
  bool fill(std::span<const std::byte> code);
  const void* begin() const { return begin_; }

 private:
  class Pages;
  std::shared_ptr<Pages> pages_;
  const void* begin_ = nullptr;
};

}  // namespace kiln::engine
