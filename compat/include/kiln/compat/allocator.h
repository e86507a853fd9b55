// SPDX-License-Identifier: Apache-2.0
// How does a source take memory from torch's allocator without a tensor? raw_alloc, raw_delete, and
// allocate(), whose memory lives as long as its DataPtr.
#pragma once

#include <kiln/compat/cuda.h>

#include <memory>

namespace c10 {
inline namespace kc {
using DeleterFnPtr = void (*)(void*);

class DataPtr {
 public:
  DataPtr() : DataPtr(nullptr, Device(kCPU)) {}
  DataPtr(void* data, Device device) : data_(data), owner_(nullptr, &keep), device_(device) {}
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device)
      : data_(data), owner_(context, deleter ? deleter : &keep), device_(device) {}
  void* get() const { return data_; }
  void* mutable_get() { return data_; }
  void* get_context() const { return owner_.get(); }
  void* release_context() { return owner_.release(); }
  void* operator->() const { return data_; }
  operator bool() const { return data_ || owner_; }
  Device device() const { return device_; }
  void clear() {
    owner_.reset();
    data_ = nullptr;
  }

 private:
  static void keep(void*) {}
  void* data_;
  std::unique_ptr<void, DeleterFnPtr> owner_;
  Device device_;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t bytes) = 0;
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }
  void* raw_allocate(size_t bytes) {
    DataPtr made = allocate(bytes);
    return made.release_context();
  }
  void raw_deallocate(void* data) { raw_deleter()(data); }
};
Allocator* GetCPUAllocator();
inline Allocator* GetDefaultCPUAllocator() { return GetCPUAllocator(); }

}  // namespace kc

namespace cuda {
inline namespace kc {
namespace CUDACachingAllocator {
void* raw_alloc(size_t bytes);
void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream);
void raw_delete(void* data);
void emptyCache();
Allocator* get();
}  // namespace CUDACachingAllocator
}  // namespace kc
}  // namespace cuda
}  // namespace c10
namespace at {
namespace cuda {
inline c10::Allocator* getCUDADeviceAllocator() { return c10::cuda::CUDACachingAllocator::get(); }
}  // namespace cuda
inline c10::Allocator* getCPUAllocator() { return c10::GetCPUAllocator(); }
}  // namespace at
