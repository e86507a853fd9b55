// SPDX-License-Identifier: Apache-2.0
// What does the virtual device say about itself, and how do errors read?
#include <fmt/format.h>

#include <cstring>
#include <new>

#include "engine/device_properties.h"
#include "engine/fault.h"
#include "engine/runtime.h"
#include "engine/state.h"

namespace kiln::engine {
namespace {

constexpr int kRuntimeVersion = 13000;
constexpr uint64_t kGlobalBytes = uint64_t{80} << 30;
constexpr int kRegisters = 65536;
constexpr int kL2Bytes = 32 << 20;

}  // namespace

DeviceProperties device_properties() {
  DeviceProperties p;
  std::memset(&p, 0, sizeof p);
  std::strcpy(p.name, "kiln engine (CPU)");
  std::memcpy(p.uuid, "kiln-engine-cpu", 16);
  p.global_bytes = kGlobalBytes;
  p.shared_per_block = kDefaultSharedBytes;
  p.registers_per_block = p.registers_per_multiprocessor = kRegisters;
  p.warp_size = 32;
  p.pitch = 0x7fffffff;
  p.max_threads_per_block = 1024;
  p.max_threads_dim[0] = p.max_threads_dim[1] = 1024;
  p.max_threads_dim[2] = 64;
  p.max_grid[0] = 0x7fffffff;
  p.max_grid[1] = p.max_grid[2] = 65535;
  p.const_bytes = 65536;
  p.major = 9;
  p.minor = 0;
  p.texture_alignment = 512;
  p.texture_pitch_alignment = 32;
  p.surface_alignment = 512;
  p.multiprocessors = kMultiprocessors;
  p.can_map_host = p.concurrent_kernels = p.unified_addressing = p.managed_memory = p.concurrent_managed = 1;
  p.async_engines = 1;
  p.memory_bus_width = 512;
  p.l2_bytes = kL2Bytes;
  p.max_threads_per_multiprocessor = kMaxThreadsPerMultiprocessor;
  p.stream_priorities = p.global_l1 = p.local_l1 = p.preemption = p.cooperative_launch = 1;
  p.shared_per_multiprocessor = kSharedBytesPerMultiprocessor;
  p.host_native_atomics = p.host_pointer_for_registered = p.host_register = p.memory_pools = 1;
  p.shared_per_block_optin = kMaxSharedBytesOptIn;
  p.max_blocks_per_multiprocessor = kMaxBlocksPerMultiprocessor;
  p.reserved_shared_per_block = kReservedSharedBytes;
  p.unified_function_pointers = 1;
  return p;
}

namespace {

int check_device(int device) {
  return device == 0 ? kSuccess
                     : fail(kInvalidDevice, fmt::format("there is no device {}: the engine is device 0", device));
}

int get_device_count(int* count) {
  *count = 1;
  return kSuccess;
}
int get_device(int* device) {
  *device = 0;
  return kSuccess;
}
int set_device(int device) { return check_device(device); }
int get_properties(DeviceProperties* out, int device) {
  if (int code = check_device(device)) return code;
  *out = device_properties();
  return kSuccess;
}

// Numbers of cudaDeviceAttr.
int get_attribute(int* value, int attribute, int device) {
  if (int code = check_device(device)) return code;
  const DeviceProperties p = device_properties();
  auto bytes = [](size_t n) { return static_cast<int>(n > 0x7fffffff ? 0x7fffffff : n); };
  switch (attribute) {
    case 1:
      *value = p.max_threads_per_block;
      break;
    case 2:
      *value = p.max_threads_dim[0];
      break;
    case 3:
      *value = p.max_threads_dim[1];
      break;
    case 4:
      *value = p.max_threads_dim[2];
      break;
    case 5:
      *value = p.max_grid[0];
      break;
    case 6:
      *value = p.max_grid[1];
      break;
    case 7:
      *value = p.max_grid[2];
      break;
    case 8:
      *value = bytes(p.shared_per_block);
      break;
    case 9:
      *value = bytes(p.const_bytes);
      break;
    case 10:
      *value = p.warp_size;
      break;
    case 11:
      *value = bytes(p.pitch);
      break;
    case 12:
      *value = p.registers_per_block;
      break;
    case 13:
      *value = 1000000;
      break;  // kHz
    case 14:
      *value = bytes(p.texture_alignment);
      break;
    case 15:
      *value = 1;
      break;
    case 16:
      *value = p.multiprocessors;
      break;
    case 19:
      *value = p.can_map_host;
      break;
    case 30:
      *value = bytes(p.surface_alignment);
      break;
    case 31:
      *value = p.concurrent_kernels;
      break;
    case 36:
      *value = 1000000;
      break;
    case 37:
      *value = p.memory_bus_width;
      break;
    case 38:
      *value = p.l2_bytes;
      break;
    case 39:
      *value = p.max_threads_per_multiprocessor;
      break;
    case 40:
      *value = p.async_engines;
      break;
    case 41:
      *value = p.unified_addressing;
      break;
    case 51:
      *value = bytes(p.texture_pitch_alignment);
      break;
    case 75:
      *value = p.major;
      break;
    case 76:
      *value = p.minor;
      break;
    case 78:
      *value = p.stream_priorities;
      break;
    case 79:
      *value = p.global_l1;
      break;
    case 80:
      *value = p.local_l1;
      break;
    case 81:
      *value = bytes(p.shared_per_multiprocessor);
      break;
    case 82:
      *value = p.registers_per_multiprocessor;
      break;
    case 83:
      *value = p.managed_memory;
      break;
    case 86:
      *value = p.host_native_atomics;
      break;
    case 87:
      *value = 2;
      break;
    case 89:
      *value = p.concurrent_managed;
      break;
    case 90:
      *value = p.preemption;
      break;
    case 91:
      *value = p.host_pointer_for_registered;
      break;
    case 95:
      *value = p.cooperative_launch;
      break;
    case 97:
      *value = bytes(p.shared_per_block_optin);
      break;
    case 99:
      *value = p.host_register;
      break;
    case 106:
      *value = p.max_blocks_per_multiprocessor;
      break;
    case 111:
      *value = bytes(p.reserved_shared_per_block);
      break;
    case 115:
      *value = p.memory_pools;
      break;
    default:
      *value = 0;  // a feature the virtual device has not
  }
  return attribute >= 1 && attribute <= 200 ? kSuccess
                                            : fail(kInvalidValue, fmt::format("no device attribute {}", attribute));
}

int runtime_version(int* version) {
  *version = kRuntimeVersion;
  return kSuccess;
}
int synchronize() { return kSuccess; }
int reset() { return kSuccess; }
int set_flags(unsigned) { return kSuccess; }
int get_flags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
int set_limit(int, size_t) { return kSuccess; }
int get_limit(size_t* value, int limit) {
  constexpr size_t kLimits[] = {1 << 20, 1 << 20, 8 << 20, 2, 2048, 0, 128};
  if (limit < 0 || limit >= static_cast<int>(std::size(kLimits)))
    return fail(kInvalidValue, fmt::format("no limit {}", limit));
  *value = kLimits[limit];
  return kSuccess;
}
int set_cache(int) { return kSuccess; }
int priority_range(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return kSuccess;
}
int can_access_peer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
int no_peer(int, unsigned) { return fail(kInvalidDevice, "there is one device: it has no peer"); }
int default_pool(void** pool, int device) {
  if (int code = check_device(device)) return code;
  static int the_pool;
  *pool = &the_pool;
  return kSuccess;
}
int pool_set_attribute(void*, int, void*) { return kSuccess; }
int pool_get_attribute(void*, int, void* value) {
  std::memset(value, 0, 8);
  return kSuccess;
}

int get_last_error() {
  int code = thread_errors().last;
  thread_errors().last = kSuccess;
  return code;
}
int peek_last_error() { return thread_errors().last; }

struct ErrorRow {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorRow kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {35, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {715, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {717, "cudaErrorInvalidAddressSpace", "operation not supported on global/shared address space"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {800, "cudaErrorNotPermitted", "operation not permitted"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {999, "cudaErrorUnknown", "unknown error"},
};

const char* error_name(int code) {
  for (const ErrorRow& row : kErrors) {
    if (row.code == code) return row.name;
  }
  return "unrecognized error code";
}
const char* error_string(int code) {
  for (const ErrorRow& row : kErrors) {
    if (row.code == code) return row.text;
  }
  return "unrecognized error code";
}

constexpr auto address = [](auto* function) { return reinterpret_cast<void*>(function); };

}  // namespace

std::span<const RuntimeFunction> runtime_device() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaGetDeviceCount", address(get_device_count)},
      {"cudaGetDevice", address(get_device)},
      {"cudaSetDevice", address(set_device)},
      {"cudaInitDevice", address(+[](int device, unsigned, unsigned) { return check_device(device); })},
      {"cudaGetDeviceProperties", address(get_properties)},
      {"cudaDeviceGetAttribute", address(get_attribute)},
      {"cudaRuntimeGetVersion", address(runtime_version)},
      {"cudaDriverGetVersion", address(runtime_version)},
      {"cudaDeviceSynchronize", address(synchronize)},
      {"cudaThreadSynchronize", address(synchronize)},
      {"cudaDeviceReset", address(reset)},
      {"cudaSetDeviceFlags", address(set_flags)},
      {"cudaGetDeviceFlags", address(get_flags)},
      {"cudaDeviceSetLimit", address(set_limit)},
      {"cudaDeviceGetLimit", address(get_limit)},
      {"cudaDeviceSetCacheConfig", address(set_cache)},
      {"cudaDeviceGetStreamPriorityRange", address(priority_range)},
      {"cudaDeviceCanAccessPeer", address(can_access_peer)},
      {"cudaDeviceEnablePeerAccess", address(no_peer)},
      {"cudaDeviceGetDefaultMemPool", address(default_pool)},
      {"cudaDeviceGetMemPool", address(default_pool)},
      {"cudaMemPoolSetAttribute", address(pool_set_attribute)},
      {"cudaMemPoolGetAttribute", address(pool_get_attribute)},
      {"cudaGetLastError", address(get_last_error)},
      {"cudaPeekAtLastError", address(peek_last_error)},
      {"cudaGetErrorName", address(error_name)},
      {"cudaGetErrorString", address(error_string)},
      {"cudaProfilerStart", address(synchronize)},
      {"cudaProfilerStop", address(synchronize)},
  };
  return kFunctions;
}

}  // namespace kiln::engine
