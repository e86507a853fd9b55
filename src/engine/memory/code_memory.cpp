// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/memory/spare.h"

namespace kiln::engine {

// A few pages that are mapped at once and filled with several pieces of code, because the system
// takes longer to find a place for a page than to fill it. Each page is writable before it is
// executable, and never again.
class CodeMemory::Pages {
 public:
  Pages() = default;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (all_) munmap(all_, bytes_);
  }
  bool map(size_t bytes) {
    void* all = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED) return false;
    all_ = static_cast<std::byte*>(all);
    bytes_ = bytes;
    return true;
  }
  size_t bytes() const { return bytes_; }
  size_t left() const { return bytes_ - used_; }
  // Fills whole pages. Returns null if the system forbids it.
  const void* fill(std::span<const std::byte> code, size_t bytes) {
    std::byte* const begin = all_ + used_;
    std::memcpy(begin, code.data(), code.size());
    if (mprotect(begin, bytes, PROT_READ | PROT_EXEC) != 0) return nullptr;
    char* const first = reinterpret_cast<char*>(begin);
    __builtin___clear_cache(first, first + code.size());
    used_ += bytes;
    return begin;
  }

 private:
  std::byte* all_ = nullptr;
  size_t bytes_ = 0, used_ = 0;
};

bool CodeMemory::fill(std::span<const std::byte> code) {
  using Some = std::shared_ptr<Pages>;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (code.size() + page - 1) / page * page;
  constexpr size_t kFirst = 2, kMost = 16;  // doubles each time
  std::unique_ptr<Some> pages = Spare<Some>::take();
  if (!*pages || (*pages)->left() < bytes) {
    const size_t before = *pages ? (*pages)->bytes() / page : kFirst / 2;
    *pages = std::make_shared<Pages>();
    if (!(*pages)->map(std::max(bytes, std::min(before * 2, kMost) * page))) return false;
  }
  begin_ = (*pages)->fill(code, bytes);
  if (!begin_) return false;
  pages_ = *pages;
  Spare<Some>::give_back(std::move(pages));
  return true;
}

}  // namespace kiln::engine
