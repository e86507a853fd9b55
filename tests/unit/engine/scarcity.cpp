// SPDX-License-Identifier: Apache-2.0
// How do operator new and pthread_create fail at will?
#include "scarcity.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> memory_left{kNever}, threads_left{kNever};
std::atomic<bool> all_after_fail{false}, memory_failed{false};
std::atomic<int64_t> threads_refused{0};

void* allocate(size_t bytes, size_t align) {
  if (memory_left.load(std::memory_order_relaxed) != kNever) {
    const int64_t left = memory_left.fetch_sub(1);
    if (left == 0 || (left < 0 && all_after_fail.load())) {
      memory_failed = true;
      return nullptr;
    }
  }
  bytes = bytes ? bytes : 1;
  return align <= 16 ? std::malloc(bytes)
                     : std::aligned_alloc(align, (bytes + align - 1) / align * align);
}

}  // namespace

void* operator new(size_t bytes) {
  if (void* memory = allocate(bytes, 16)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t align) {
  if (void* memory = allocate(bytes, static_cast<size_t>(align))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(align));
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 16); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                              void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left.load() != kNever && threads_left.fetch_sub(1) <= 0) {
    ++threads_refused;
    return EAGAIN;
  }
  return real(thread, how, run, argument);
}

namespace kiln::engine {

NoMemory::NoMemory(uint64_t first, bool all_after) {
  memory_failed = false;
  all_after_fail = all_after;
  memory_left = static_cast<int64_t>(first);
}
void NoMemory::lift() { memory_left = kNever; }
bool NoMemory::happened() const { return memory_failed; }

NoThreads::NoThreads(int64_t threads) { threads_left = threads; }
NoThreads::~NoThreads() { threads_left = kNever; }
int64_t NoThreads::refused() { return threads_refused; }

}  // namespace kiln::engine
