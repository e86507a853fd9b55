// SPDX-License-Identifier: Apache-2.0
// How do cudaMalloc, cudaMemcpy and their kin run on the engine? Device memory is host memory that the engine knows.
#include <fmt/format.h>

#include <cstring>

#include "engine/fault.h"
#include "engine/runtime.h"
#include "engine/state.h"

namespace kiln::engine {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{80} << 30;  // what cudaMemGetInfo tells

int allocate(void** out, size_t bytes, AllocationKind kind) {
  if (!out) return fail(kInvalidValue, "cudaMalloc: the place for the pointer is null");
  *out = nullptr;
  if (bytes == 0) return kSuccess;
  *out = state().heap.allocate(bytes, kind);
  if (!*out) return fail(kMemoryAllocation, fmt::format("cudaMalloc: no memory for {} bytes", bytes));
  return kSuccess;
}

int release(void* at) {
  if (!at) return kSuccess;
  if (state().heap.release(at)) return kSuccess;
  return fail(kInvalidValue,
              fmt::format("cudaFree: 0x{:x} is no allocation of the engine", reinterpret_cast<uint64_t>(at)));
}

int cuda_malloc(void** out, size_t bytes) { return allocate(out, bytes, AllocationKind::Device); }
int cuda_malloc_async(void** out, size_t bytes, void*) { return allocate(out, bytes, AllocationKind::Device); }
int cuda_malloc_from_pool(void** out, size_t bytes, void*, void*) {
  return allocate(out, bytes, AllocationKind::Device);
}
int cuda_malloc_host(void** out, size_t bytes) { return allocate(out, bytes, AllocationKind::Host); }
int cuda_host_alloc(void** out, size_t bytes, unsigned) { return allocate(out, bytes, AllocationKind::Host); }
int cuda_malloc_managed(void** out, size_t bytes, unsigned) { return allocate(out, bytes, AllocationKind::Managed); }
int cuda_free(void* at) { return release(at); }
int cuda_free_async(void* at, void*) { return release(at); }

int cuda_malloc_pitch(void** out, size_t* pitch, size_t width, size_t height) {
  if (!pitch) return fail(kInvalidValue, "cudaMallocPitch: the place for the pitch is null");
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * height, AllocationKind::Device);
}

int cuda_host_register(void* at, size_t bytes, unsigned) {
  if (!at || !bytes) return fail(kInvalidValue, "cudaHostRegister: nothing to register");
  state().heap.adopt(at, bytes, AllocationKind::Host, "registered");
  return kSuccess;
}
int cuda_host_unregister(void* at) {
  return state().heap.forget(at) ? kSuccess : fail(kInvalidValue, "cudaHostUnregister: this memory is not registered");
}
int cuda_host_get_device_pointer(void** out, void* host, unsigned) {
  if (!out || !state().heap.find(reinterpret_cast<uint64_t>(host))) {
    return fail(kInvalidValue, "cudaHostGetDevicePointer: not memory of cudaHostAlloc or cudaHostRegister");
  }
  *out = host;
  return kSuccess;
}

// A device pointer must lie inside of one allocation of the engine, to its last byte.
int check_device(const char* what, const void* at, size_t bytes) {
  uint64_t address = reinterpret_cast<uint64_t>(at);
  auto allocation = state().heap.find(address);
  if (allocation && allocation->begin + allocation->bytes - address >= bytes) return kSuccess;
  if (allocation) {
    return fail(kInvalidValue, fmt::format("{}: {} bytes at 0x{:x} run over the end of an allocation of {} bytes", what,
                                           bytes, address, allocation->bytes));
  }
  return fail(kInvalidValue, fmt::format("{}: 0x{:x} is no device memory", what, address));
}

bool writes_device(int kind) { return kind == kHostToDevice || kind == kDeviceToDevice; }
bool reads_device(int kind) { return kind == kDeviceToHost || kind == kDeviceToDevice; }

int cuda_memcpy(void* to, const void* from, size_t bytes, int kind) {
  if (kind < kHostToHost || kind > kDefault)
    return fail(kInvalidMemcpyDirection, fmt::format("cudaMemcpy: no direction {}", kind));
  if (bytes == 0) return kSuccess;
  if (!to || !from) return fail(kInvalidValue, "cudaMemcpy: a pointer is null");
  if (writes_device(kind)) {
    if (int code = check_device("cudaMemcpy to device", to, bytes)) return code;
  }
  if (reads_device(kind)) {
    if (int code = check_device("cudaMemcpy from device", from, bytes)) return code;
  }
  std::memmove(to, from, bytes);
  return kSuccess;
}
int cuda_memcpy_async(void* to, const void* from, size_t bytes, int kind, void*) {
  return cuda_memcpy(to, from, bytes, kind);
}
int cuda_memcpy_peer(void* to, int, const void* from, int, size_t bytes) {
  return cuda_memcpy(to, from, bytes, kDeviceToDevice);
}
int cuda_memcpy_peer_async(void* to, int, const void* from, int, size_t bytes, void*) {
  return cuda_memcpy(to, from, bytes, kDeviceToDevice);
}

int cuda_memcpy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   int kind) {
  if (width > to_pitch || width > from_pitch)
    return fail(kInvalidPitchValue, "cudaMemcpy2D: a row is wider than the pitch");
  for (size_t row = 0; row < height; ++row) {
    auto* to_row = static_cast<std::byte*>(to) + row * to_pitch;
    auto* from_row = static_cast<const std::byte*>(from) + row * from_pitch;
    if (int code = cuda_memcpy(to_row, from_row, width, kind)) return code;
  }
  return kSuccess;
}
int cuda_memcpy_2d_async(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         int kind, void*) {
  return cuda_memcpy_2d(to, to_pitch, from, from_pitch, width, height, kind);
}

int cuda_memset(void* to, int value, size_t bytes) {
  if (bytes == 0) return kSuccess;
  if (int code = check_device("cudaMemset", to, bytes)) return code;
  std::memset(to, value, bytes);
  return kSuccess;
}
int cuda_memset_async(void* to, int value, size_t bytes, void*) { return cuda_memset(to, value, bytes); }
int cuda_memset_2d(void* to, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) return fail(kInvalidPitchValue, "cudaMemset2D: a row is wider than the pitch");
  for (size_t row = 0; row < height; ++row) {
    if (int code = cuda_memset(static_cast<std::byte*>(to) + row * pitch, value, width)) return code;
  }
  return kSuccess;
}
int cuda_memset_2d_async(void* to, size_t pitch, int value, size_t width, size_t height, void*) {
  return cuda_memset_2d(to, pitch, value, width, height);
}

int symbol_memory(const void* symbol, size_t bytes, size_t offset, std::byte** at) {
  int code = 0;
  std::string text;
  const Image::VariableMemory* memory = resolved_variable(symbol, &code, &text);
  if (!memory) return fail(code, std::move(text));
  if (offset > memory->bytes || memory->bytes - offset < bytes) {
    return fail(kInvalidValue,
                fmt::format("{} bytes at offset {} of a variable of {} bytes", bytes, offset, memory->bytes));
  }
  *at = static_cast<std::byte*>(memory->at) + offset;
  return kSuccess;
}
int cuda_memcpy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, int) {
  std::byte* at = nullptr;
  if (int code = symbol_memory(symbol, bytes, offset, &at)) return code;
  if (bytes) std::memmove(at, from, bytes);
  return kSuccess;
}
int cuda_memcpy_to_symbol_async(const void* symbol, const void* from, size_t bytes, size_t offset, int kind, void*) {
  return cuda_memcpy_to_symbol(symbol, from, bytes, offset, kind);
}
int cuda_memcpy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, int) {
  std::byte* at = nullptr;
  if (int code = symbol_memory(symbol, bytes, offset, &at)) return code;
  if (bytes) std::memmove(to, at, bytes);
  return kSuccess;
}
int cuda_memcpy_from_symbol_async(void* to, const void* symbol, size_t bytes, size_t offset, int kind, void*) {
  return cuda_memcpy_from_symbol(to, symbol, bytes, offset, kind);
}
int cuda_get_symbol_address(void** out, const void* symbol) {
  std::byte* at = nullptr;
  if (int code = symbol_memory(symbol, 0, 0, &at)) return code;
  *out = at;
  return kSuccess;
}
int cuda_get_symbol_size(size_t* out, const void* symbol) {
  int code = 0;
  std::string text;
  const Image::VariableMemory* memory = resolved_variable(symbol, &code, &text);
  if (!memory) return fail(code, std::move(text));
  *out = memory->bytes;
  return kSuccess;
}

int cuda_mem_get_info(size_t* free_bytes, size_t* total) {
  uint64_t used = state().heap.bytes_in_use();
  if (free_bytes) *free_bytes = used > kMemoryBytes ? 0 : kMemoryBytes - used;
  if (total) *total = kMemoryBytes;
  return kSuccess;
}

// cudaPointerAttributes of CUDA 11 and later.
struct PointerAttributes {
  int type;  // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
};
int cuda_pointer_get_attributes(PointerAttributes* out, const void* at) {
  if (!out) return fail(kInvalidValue, "cudaPointerGetAttributes: the place for the answer is null");
  auto allocation = state().heap.find(reinterpret_cast<uint64_t>(at));
  void* pointer = const_cast<void*>(at);
  if (!allocation) {
    *out = {0, -2, nullptr, pointer};
    return kSuccess;
  }
  bool host = allocation->kind == AllocationKind::Host, managed = allocation->kind == AllocationKind::Managed;
  *out = {managed ? 3 : host ? 1 : 2, 0, pointer, host || managed ? pointer : nullptr};
  return kSuccess;
}

int cuda_mem_advise(const void*, size_t, int, ...) { return kSuccess; }

constexpr auto address = [](auto* function) { return reinterpret_cast<void*>(function); };

}  // namespace

std::span<const RuntimeFunction> runtime_memory() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaMalloc", address(cuda_malloc)},
      {"cudaMallocAsync", address(cuda_malloc_async)},
      {"cudaMallocFromPoolAsync", address(cuda_malloc_from_pool)},
      {"cudaMallocHost", address(cuda_malloc_host)},
      {"cudaHostAlloc", address(cuda_host_alloc)},
      {"cudaMallocManaged", address(cuda_malloc_managed)},
      {"cudaMallocPitch", address(cuda_malloc_pitch)},
      {"cudaFree", address(cuda_free)},
      {"cudaFreeAsync", address(cuda_free_async)},
      {"cudaFreeHost", address(cuda_free)},
      {"cudaHostRegister", address(cuda_host_register)},
      {"cudaHostUnregister", address(cuda_host_unregister)},
      {"cudaHostGetDevicePointer", address(cuda_host_get_device_pointer)},
      {"cudaMemcpy", address(cuda_memcpy)},
      {"cudaMemcpyAsync", address(cuda_memcpy_async)},
      {"cudaMemcpyPeer", address(cuda_memcpy_peer)},
      {"cudaMemcpyPeerAsync", address(cuda_memcpy_peer_async)},
      {"cudaMemcpy2D", address(cuda_memcpy_2d)},
      {"cudaMemcpy2DAsync", address(cuda_memcpy_2d_async)},
      {"cudaMemset", address(cuda_memset)},
      {"cudaMemsetAsync", address(cuda_memset_async)},
      {"cudaMemset2D", address(cuda_memset_2d)},
      {"cudaMemset2DAsync", address(cuda_memset_2d_async)},
      {"cudaMemcpyToSymbol", address(cuda_memcpy_to_symbol)},
      {"cudaMemcpyToSymbolAsync", address(cuda_memcpy_to_symbol_async)},
      {"cudaMemcpyFromSymbol", address(cuda_memcpy_from_symbol)},
      {"cudaMemcpyFromSymbolAsync", address(cuda_memcpy_from_symbol_async)},
      {"cudaGetSymbolAddress", address(cuda_get_symbol_address)},
      {"cudaGetSymbolSize", address(cuda_get_symbol_size)},
      {"cudaMemGetInfo", address(cuda_mem_get_info)},
      {"cudaPointerGetAttributes", address(cuda_pointer_get_attributes)},
      {"cudaMemAdvise", address(cuda_mem_advise)},
      {"cudaMemPrefetchAsync", address(cuda_mem_advise)},
  };
  return kFunctions;
}

}  // namespace kiln::engine
