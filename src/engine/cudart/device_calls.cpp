// SPDX-License-Identifier: Apache-2.0
// What does the virtual device report about itself?
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine/cuda/device_properties.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

constexpr int kRuntimeVersion = 13000;
constexpr uint64_t kGlobalBytes = uint64_t{80} << 30;
constexpr int kRegisters = 65536;
constexpr int kL2Bytes = 32 << 20;
constexpr int kClockKhz = 1000000;

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
  p.can_map_host = p.concurrent_kernels = p.unified_addressing = p.managed_memory =
      p.concurrent_managed = 1;
  p.async_engines = 1;
  p.memory_bus_width = 512;
  p.l2_bytes = kL2Bytes;
  p.persisting_l2_bytes = kL2Bytes / 2;
  p.access_policy_window = kL2Bytes;
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
                     : fail(kInvalidDevice,
                            fmt::format("there is no device {}: the engine is device 0", device));
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

// The number of a cudaDeviceAttr, and its value.
struct AttributeRow {
  int number;
  int64_t (*value)(const DeviceProperties&);
};
#define ATTRIBUTE(number, value)                       \
  {                                                    \
    number, [](const DeviceProperties& p) -> int64_t { \
      (void)p;                                         \
      return static_cast<int64_t>(value);              \
    }                                                  \
  }
constexpr AttributeRow kAttributes[] = {
    ATTRIBUTE(1, p.max_threads_per_block),
    ATTRIBUTE(2, p.max_threads_dim[0]),
    ATTRIBUTE(3, p.max_threads_dim[1]),
    ATTRIBUTE(4, p.max_threads_dim[2]),
    ATTRIBUTE(5, p.max_grid[0]),
    ATTRIBUTE(6, p.max_grid[1]),
    ATTRIBUTE(7, p.max_grid[2]),
    ATTRIBUTE(8, p.shared_per_block),
    ATTRIBUTE(9, p.const_bytes),
    ATTRIBUTE(10, p.warp_size),
    ATTRIBUTE(11, p.pitch),
    ATTRIBUTE(12, p.registers_per_block),
    ATTRIBUTE(13, kClockKhz),
    ATTRIBUTE(14, p.texture_alignment),
    ATTRIBUTE(15, 1),
    ATTRIBUTE(16, p.multiprocessors),
    ATTRIBUTE(19, p.can_map_host),
    ATTRIBUTE(30, p.surface_alignment),
    ATTRIBUTE(31, p.concurrent_kernels),
    ATTRIBUTE(36, kClockKhz),
    ATTRIBUTE(37, p.memory_bus_width),
    ATTRIBUTE(38, p.l2_bytes),
    ATTRIBUTE(39, p.max_threads_per_multiprocessor),
    ATTRIBUTE(40, p.async_engines),
    ATTRIBUTE(41, p.unified_addressing),
    ATTRIBUTE(51, p.texture_pitch_alignment),
    ATTRIBUTE(75, p.major),
    ATTRIBUTE(76, p.minor),
    ATTRIBUTE(78, p.stream_priorities),
    ATTRIBUTE(79, p.global_l1),
    ATTRIBUTE(80, p.local_l1),
    ATTRIBUTE(81, p.shared_per_multiprocessor),
    ATTRIBUTE(82, p.registers_per_multiprocessor),
    ATTRIBUTE(83, p.managed_memory),
    ATTRIBUTE(86, p.host_native_atomics),
    ATTRIBUTE(87, 2),
    ATTRIBUTE(89, p.concurrent_managed),
    ATTRIBUTE(90, p.preemption),
    ATTRIBUTE(91, p.host_pointer_for_registered),
    ATTRIBUTE(95, p.cooperative_launch),
    ATTRIBUTE(97, p.shared_per_block_optin),
    ATTRIBUTE(99, p.host_register),
    ATTRIBUTE(106, p.max_blocks_per_multiprocessor),
    ATTRIBUTE(108, p.persisting_l2_bytes),
    ATTRIBUTE(109, p.access_policy_window),
    ATTRIBUTE(111, p.reserved_shared_per_block),
    ATTRIBUTE(115, p.memory_pools),
};
#undef ATTRIBUTE

int get_attribute(int* value, int attribute, int device) {
  if (int code = check_device(device)) return code;
  if (!value) return fail(kInvalidValue, "the output pointer for the attribute is null");
  if (attribute < 1 || attribute > 200)
    return fail(kInvalidValue, fmt::format("unknown device attribute {}", attribute));
  *value = 0;  // a feature that the virtual device lacks
  for (const AttributeRow& row : kAttributes) {
    if (row.number == attribute)
      *value = static_cast<int>(std::min<int64_t>(row.value(device_properties()), 0x7fffffff));
  }
  return kSuccess;
}

int runtime_version(int* version) {
  if (!version) return fail(kInvalidValue, "the output pointer for the version is null");
  *version = kRuntimeVersion;
  return kSuccess;
}
int synchronize() {
  watch_host(HostKind::DeviceSynchronize, nullptr, [](HostEvent& event) { event.waits = true; });
  return kSuccess;
}
int nothing() { return kSuccess; }
// The fault of an earlier kernel goes away with its context.
int reset() {
  synchronize();
  forget_fault();
  return kSuccess;
}
int set_flags(unsigned) { return kSuccess; }
int get_flags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
int set_valid_devices(int* devices, int count) {
  for (int i = 0; i < count; ++i) {
    if (int code = check_device(devices[i])) return code;
  }
  return kSuccess;
}
int choose_device(int* device, const void*) {
  *device = 0;
  return kSuccess;
}
constexpr const char* kBusId = "0000:00:00.0";
int get_bus_id(char* out, int bytes, int device) {
  if (int code = check_device(device)) return code;
  if (!out || bytes <= static_cast<int>(std::strlen(kBusId)))
    return fail(kInvalidValue, "the buffer is too small for the PCI bus id");
  std::strcpy(out, kBusId);
  return kSuccess;
}
int device_by_bus_id(int* device, const char* text) {
  if (!device || !text || std::strcmp(text, kBusId) != 0)
    return fail(kInvalidDevice, "no device with this PCI bus id");
  *device = 0;
  return kSuccess;
}

// cudaLimit: stack of a thread, printf buffer, heap of device malloc, depth and launches of nested
// kernels, L2 fetch granularity, persisting L2 bytes. Stored so that a program reads back what it
// set; none of them limits the engine.
std::atomic<size_t> g_limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};
int set_limit(int limit, size_t value) {
  if (limit < 0 || limit >= static_cast<int>(std::size(g_limits)))
    return fail(kInvalidValue, fmt::format("unknown limit {}", limit));
  g_limits[limit] = value;
  return kSuccess;
}
int get_limit(size_t* value, int limit) {
  if (!value || limit < 0 || limit >= static_cast<int>(std::size(g_limits)))
    return fail(kInvalidValue, fmt::format("unknown limit {}", limit));
  *value = g_limits[limit];
  return kSuccess;
}
int set_cache(int) { return kSuccess; }
int get_cache(int* config) {
  *config = 0;
  return kSuccess;
}
int priority_range(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return kSuccess;
}
int can_access_peer(int* can, int device, int peer) {
  if (int code = check_device(device)) return code;
  if (int code = check_device(peer)) return code;
  *can = 0;
  return kSuccess;
}
int peer_attribute(int* value, int, int, int) {
  *value = 0;
  return fail(kInvalidDevice, "there is one device: it has no peer");
}
int no_peer(int, unsigned) { return fail(kInvalidDevice, "there is one device: it has no peer"); }
int no_peer_to_leave(int) { return fail(kInvalidDevice, "there is one device: it has no peer"); }
int init_device(int device, unsigned, unsigned) { return check_device(device); }

}  // namespace

std::span<const RuntimeFunction> runtime_device() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaGetDeviceCount", always<&get_device_count>()},
      {"cudaGetDevice", always<&get_device>()},
      {"cudaSetDevice", entry<&set_device>()},
      {"cudaInitDevice", entry<&init_device>()},
      {"cudaGetDeviceProperties", always<&get_properties>()},
      {"cudaDeviceGetAttribute", always<&get_attribute>()},
      {"cudaRuntimeGetVersion", always<&runtime_version>()},
      {"cudaDriverGetVersion", always<&runtime_version>()},
      {"cudaDeviceSynchronize", waits<&synchronize>()},
      {"cudaThreadSynchronize", waits<&synchronize>()},
      {"cudaDeviceReset", always<&reset>()},
      {"cudaThreadExit", always<&reset>()},
      {"cudaSetDeviceFlags", entry<&set_flags>()},
      {"cudaGetDeviceFlags", entry<&get_flags>()},
      {"cudaSetValidDevices", entry<&set_valid_devices>()},
      {"cudaChooseDevice", entry<&choose_device>()},
      {"cudaDeviceGetPCIBusId", entry<&get_bus_id>()},
      {"cudaDeviceGetByPCIBusId", entry<&device_by_bus_id>()},
      {"cudaDeviceSetLimit", entry<&set_limit>()},
      {"cudaDeviceGetLimit", entry<&get_limit>()},
      {"cudaDeviceSetCacheConfig", entry<&set_cache>()},
      {"cudaDeviceGetCacheConfig", entry<&get_cache>()},
      {"cudaDeviceSetSharedMemConfig", entry<&set_cache>()},
      {"cudaDeviceGetSharedMemConfig", entry<&get_cache>()},
      {"cudaCtxResetPersistingL2Cache", entry<&nothing>()},
      {"cudaDeviceGetStreamPriorityRange", entry<&priority_range>()},
      {"cudaDeviceCanAccessPeer", entry<&can_access_peer>()},
      {"cudaDeviceEnablePeerAccess", entry<&no_peer>()},
      {"cudaDeviceDisablePeerAccess", entry<&no_peer_to_leave>()},
      {"cudaDeviceGetP2PAttribute", entry<&peer_attribute>()},
      {"cudaProfilerStart", always<&nothing>()},
      {"cudaProfilerStop", always<&nothing>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
