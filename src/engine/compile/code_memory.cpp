// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/code_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace kiln::engine {

CodeMemory::~CodeMemory() {
  if (pages_) munmap(pages_, bytes_);
}

bool CodeMemory::fill(std::span<const std::byte> code) {
  void* pages = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (pages == MAP_FAILED) return false;
  std::memcpy(pages, code.data(), code.size());
  if (mprotect(pages, code.size(), PROT_READ | PROT_EXEC) != 0) {
    munmap(pages, code.size());
    return false;
  }
  char* first = static_cast<char*>(pages);
  __builtin___clear_cache(first, first + code.size());
  pages_ = pages;
  bytes_ = code.size();
  return true;
}

}  // namespace kiln::engine
