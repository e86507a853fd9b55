// SPDX-License-Identifier: Apache-2.0
// Where is machine code stored? In pages of its own, which are first writable and then executable,
// never both at once.
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
  // Returns false if there is no memory or the system forbids executable pages.
  bool fill(std::span<const std::byte> code);
  const void* begin() const { return begin_; }

 private:
  class Pages;
  std::shared_ptr<Pages> pages_;
  const void* begin_ = nullptr;
};

}  // namespace kiln::engine
