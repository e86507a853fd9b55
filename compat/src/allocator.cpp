// SPDX-License-Identifier: Apache-2.0
// How does a source take memory from torch's allocator without a tensor? On a GPU from torch's
// caching allocator, through Python; without one from the engine, whose kernels access it.
#include <kiln/compat/allocator.h>
#include <kiln/compat/storage.h>
#include <stdlib.h>

#include <new>

#include "call.h"
#include "convert.h"
#include "shim.h"

extern "C" {
int cudaMalloc(void**, size_t);
int cudaFree(void*);
}

namespace c10 {
inline namespace kc {

namespace {

using namespace kiln::compat;

bool on_gpu() {
  const kiln::detail::Call* call = kiln::detail::current_call();
  return (call ? call->backend : kiln::detail::default_backend()) == kiln::detail::Backend::real;
}

PyObject* number(uint64_t value) { return checked(PyLong_FromUnsignedLongLong(value)).take(); }

}  // namespace

Storage::Storage(const at::Tensor& tensor) : tensor_(tensor) {
  static const auto size = shim<int (*)(void*, int64_t*)>("aoti_torch_get_storage_size");
  auto* rep = static_cast<kiln::detail::Rep*>(
      reinterpret_cast<kiln::detail::TensorRep*>(tensor.unsafe_rep()));
  int64_t bytes = 0;
  if (!tensor.defined() || size(rep->handle, &bytes))
    throw Error("a tensor without memory has no storage");
  bytes_ = static_cast<size_t>(bytes);
  data_ = static_cast<char*>(tensor.data_ptr()) - tensor.storage_offset() * tensor.element_size();
}

}  // namespace kc

namespace cuda {
inline namespace kc {
namespace CUDACachingAllocator {

void* raw_alloc(size_t bytes) {
  return raw_alloc_with_stream(bytes, c10::cuda::getCurrentCUDAStream().stream());
}

void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) {
  if (!bytes) return nullptr;
  if (!on_gpu()) {
    void* data = nullptr;
    if (const int code = cudaMalloc(&data, bytes)) c10::cuda::impl::throw_cuda_error(code);
    return data;
  }
  WithGil gil;
  Ref arguments = checked(PyTuple_New(2));
  PyTuple_SetItem(arguments.get(), 0, number(bytes));
  PyTuple_SetItem(arguments.get(), 1, number(reinterpret_cast<uint64_t>(stream)));
  Ref made = checked(PyObject_CallObject(
      torch_attribute("torch._C", "_cuda_cudaCachingAllocator_raw_alloc").get(), arguments.get()));
  void* data = reinterpret_cast<void*>(PyLong_AsUnsignedLongLong(made.get()));
  if (PyErr_Occurred()) throw_python_error();
  return data;
}

void raw_delete(void* data) {
  if (!data) return;
  if (!on_gpu()) {
    cudaFree(data);
    return;
  }
  WithGil gil;
  Ref arguments = checked(PyTuple_New(1));
  PyTuple_SetItem(arguments.get(), 0, number(reinterpret_cast<uint64_t>(data)));
  checked(PyObject_CallObject(
      torch_attribute("torch._C", "_cuda_cudaCachingAllocator_raw_delete").get(), arguments.get()));
}

void emptyCache() {
  if (!on_gpu()) return;
  WithGil gil;
  Ref none = checked(PyTuple_New(0));
  checked(PyObject_CallObject(torch_attribute("torch.cuda", "empty_cache").get(), none.get()));
}

}  // namespace CUDACachingAllocator
}  // namespace kc
}  // namespace cuda

inline namespace kc {
namespace {

class CpuAllocator : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    constexpr size_t kAlignment = 64;
    void* data = nullptr;
    if (bytes && posix_memalign(&data, kAlignment, bytes)) throw std::bad_alloc();
    return {data, data, &free, Device(kCPU)};
  }
  DeleterFnPtr raw_deleter() const override { return &free; }
};

class CudaAllocator : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    void* data = bytes ? cuda::CUDACachingAllocator::raw_alloc(bytes) : nullptr;
    const DeviceIndex device = on_gpu() ? c10::cuda::current_device() : DeviceIndex(0);
    return {data, data, &cuda::CUDACachingAllocator::raw_delete, Device(kCUDA, device)};
  }
  DeleterFnPtr raw_deleter() const override { return &cuda::CUDACachingAllocator::raw_delete; }
};

}  // namespace

Allocator* GetCPUAllocator() {
  static CpuAllocator one;
  return &one;
}

}  // namespace kc

namespace cuda {
inline namespace kc {
namespace CUDACachingAllocator {
Allocator* get() {
  static CudaAllocator one;
  return &one;
}
}  // namespace CUDACachingAllocator
}  // namespace kc
}  // namespace cuda
}  // namespace c10
