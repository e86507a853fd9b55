// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "text.h"

namespace kiln::detail {
namespace {

constexpr int kCopyDefault = 4;  // cudaMemcpyDefault: the addresses tell the direction

void require(int code, const char* what) {
  if (code == 0) return;
  Text text;
  text.addf("error: %s\n  why: ", what);
  add_cuda_error(text, code);
  throw_text(static_cast<Text&&>(text));
}

template <class... A>
int cuda(const char* name, A... arguments) {
  auto function = reinterpret_cast<int (*)(A...)>(real_function(name));
  return function(arguments...);
}

// Freed blocks stay with the process: giving them back to the driver would wait for the device.
constexpr int kReleaseThreshold = 4;  // cudaMemPoolAttrReleaseThreshold

bool set_up_pool(int device) {
  auto get = reinterpret_cast<int (*)(void**, int)>(real_symbol("cudaDeviceGetDefaultMemPool"));
  auto set = reinterpret_cast<int (*)(void*, int, void*)>(real_symbol("cudaMemPoolSetAttribute"));
  void* pool = nullptr;
  unsigned long long all = ~0ull;
  if (!get || !set || !real_symbol("cudaMallocAsync") || !real_symbol("cudaFreeAsync"))
    return false;
  if (get(&pool, device) == 0 && set(pool, kReleaseThreshold, &all) == 0) return true;
  cuda("cudaGetLastError");  // a GPU without memory pools: the error is nobody's
  return false;
}

// Asked once a device: memory of one kind must be freed as the same kind.
bool has_pool(int device) {
  constexpr int kMostDevices = 64;
  static signed char known[kMostDevices];  // 0: not asked yet
  if (device < 0 || device >= kMostDevices) return false;
  signed char answer = __atomic_load_n(&known[device], __ATOMIC_ACQUIRE);
  if (!answer) {  // two threads may both ask, and get the same answer
    answer = set_up_pool(device) ? 1 : -1;
    __atomic_store_n(&known[device], answer, __ATOMIC_RELEASE);
  }
  return answer > 0;
}

thread_local cudaStream_t t_stream = nullptr;

}  // namespace

void use_stream(cudaStream_t stream) { t_stream = stream; }
cudaStream_t used_stream() { return t_stream; }

void* memory_allocate_result(Device device, size_t bytes) {
  if (device.type == DeviceType::cpu || !has_pool(device.index))
    return memory_allocate(device, bytes);
  void* data = nullptr;
  require(cuda("cudaMallocAsync", &data, bytes, t_stream), "cannot allocate memory on the GPU");
  return data;
}

// Work of the freeing thread's own stream may use the memory too: the free waits for it.
void memory_free_result(Device device, void* data, cudaStream_t stream) {
  if (device.type == DeviceType::cpu || !has_pool(device.index)) {
    memory_free(device, data);
    return;
  }
  constexpr unsigned kNoTiming = 2;  // cudaEventDisableTiming
  void* reached = nullptr;
  if (stream != t_stream && cuda("cudaEventCreateWithFlags", &reached, kNoTiming) == 0) {
    cuda("cudaEventRecord", reached, t_stream);
    cuda("cudaStreamWaitEvent", stream, reached, 0u);
    cuda("cudaEventDestroy", reached);
  }
  cuda("cudaFreeAsync", data, stream);
}

void* memory_allocate(Device device, size_t bytes) {
  void* data = nullptr;
  if (device.type == DeviceType::cpu) {
    data = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (data) return data;
    Text text;
    text.addf("error: cannot allocate %zu bytes\n  why: the host is out of memory", bytes);
    throw_text(static_cast<Text&&>(text));
  }
  require(cuda("cudaMalloc", &data, bytes), "cannot allocate memory on the GPU");
  return data;
}

void memory_free(Device device, void* data) {
  if (device.type == DeviceType::cpu)
    free(data);
  else
    cuda("cudaFree", data);  // waits for kernels that still use it
}

void memory_copy(void* to, DeviceType to_type, const void* from, DeviceType from_type,
                 size_t bytes) {
  if (bytes == 0) return;
  if (to_type == DeviceType::cpu && from_type == DeviceType::cpu)
    memcpy(to, from, bytes);
  else
    require(cuda("cudaMemcpy", to, from, bytes, kCopyDefault), "cannot copy between host and GPU");
}

void memory_copy_in_order(void* to, const void* from, Device device, size_t bytes) {
  if (device.type == DeviceType::cpu)
    memcpy(to, from, bytes);
  else
    require(cuda("cudaMemcpyAsync", to, from, bytes, kCopyDefault, t_stream),
            "cannot copy memory on the GPU");
}

void memory_zero(Device device, void* data, size_t bytes, cudaStream_t stream) {
  if (device.type == DeviceType::cpu)
    memset(data, 0, bytes);
  else
    require(cuda("cudaMemsetAsync", data, 0, bytes, stream), "cannot set memory on the GPU");
}

void memory_synchronize(Device device) {
  if (device.type == DeviceType::cuda)
    require(cuda("cudaDeviceSynchronize"), "the GPU reports an error");
}

}  // namespace kiln::detail
