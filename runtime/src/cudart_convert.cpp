// SPDX-License-Identifier: Apache-2.0
//
// How does a call with the ABI of the CUDA 13 runtime become one of libcudart 12, where neither the
// name nor a new name will do? docs/design/cudart.md has the differences.
#include "cudart_convert.h"

#include <string.h>

#include "front_entry.h"

namespace kiln::front {

void device_prop_13_from_12(const DeviceProp12& from, DeviceProp13* to) {
  memset(to, 0, sizeof *to);
#define DEVICE_PROP(type, name, array, offset_12, offset_13) \
  memcpy(&to->name, &from.name, sizeof to->name);
#define DEVICE_PROP_ONLY_12(type, name, array, offset_12)
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13)
#include "cudart_device_prop.def"
#undef DEVICE_PROP
}

void device_prop_12_from_13(const DeviceProp13& from, DeviceProp12* to) {
  memset(to, 0, sizeof *to);
#define DEVICE_PROP(type, name, array, offset_12, offset_13) \
  memcpy(&to->name, &from.name, sizeof to->name);
#include "cudart_device_prop.def"
#undef DEVICE_PROP
#undef DEVICE_PROP_ONLY_12
#undef DEVICE_PROP_ONLY_13
}

}  // namespace kiln::front

using namespace kiln::front;

// The trampolines' entries: the front has put the function of 12 into real_on_12 before it sends a
// call here.
#define ENTRY(name) \
  extern "C" __attribute__((visibility("hidden"))) KilnFrontEntry kiln_front_entry_##name
ENTRY(cudaGetDeviceProperties);
ENTRY(cudaChooseDevice);
ENTRY(cudaPointerGetAttributes);
ENTRY(cudaGetTextureObjectResourceDesc);
ENTRY(cudaGetSurfaceObjectResourceDesc);
ENTRY(cudaGetTextureObjectResourceViewDesc);
ENTRY(cudaMemcpyBatchAsync);
ENTRY(cudaMemcpyBatchAsync_ptsz);
ENTRY(cudaMemcpy3DBatchAsync);
ENTRY(cudaMemcpy3DBatchAsync_ptsz);
ENTRY(cudaGetDriverEntryPoint);
ENTRY(cudaGetDriverEntryPoint_ptsz);
ENTRY(cudaGetDriverEntryPointByVersion);
ENTRY(cudaGetDriverEntryPointByVersion_ptsz);
#undef ENTRY

namespace {

template <class Function>
Function real(const KilnFrontEntry& entry) {
  return reinterpret_cast<Function>(__atomic_load_n(&entry.real_on_12, __ATOMIC_RELAXED));
}

template <class Function>
Function symbol_of(const char* name) {
  return reinterpret_cast<Function>(kiln_front_symbol(name));
}

// What 13 has as fields and 12 only as attributes. An attribute that the runtime does not know yet
// is not asked for, since the failure would stay behind for the caller's next cudaGetLastError.
void fill_new_device_fields(DeviceProp13* prop, int device) {
  constexpr int kNumaConfig = 130, kNumaId = 131, kMpsEnabled = 133, kHostNumaId = 134,
                kGpuPciDeviceId = 139, kGpuPciSubsystemId = 140,
                kHostNumaMultinodeIpcSupported = 143;  // enum cudaDeviceAttr
  prop->deviceNumaId = -1;                             // what NVIDIA returns for "no NUMA"
  prop->hostNumaId = -1;
  auto get_version = symbol_of<int (*)(int*)>("cudaRuntimeGetVersion");
  auto get_attribute = symbol_of<int (*)(int*, int, int)>("cudaDeviceGetAttribute");
  int version = 0;
  if (!get_version || !get_attribute || get_version(&version) != 0) return;
  const auto fill = [&](void* field, int attribute, int since) {
    int value = 0;
    if (version >= since && get_attribute(&value, attribute, device) == 0)
      memcpy(field, &value, sizeof value);
  };
  fill(&prop->deviceNumaConfig, kNumaConfig, 12020);
  fill(&prop->deviceNumaId, kNumaId, 12020);
  fill(&prop->hostNumaId, kHostNumaId, 12020);
  fill(&prop->mpsEnabled, kMpsEnabled, 12030);
  fill(&prop->gpuPciDeviceID, kGpuPciDeviceId, 12080);
  fill(&prop->gpuPciSubsystemID, kGpuPciSubsystemId, 12080);
  fill(&prop->hostNumaMultinodeIpcSupported, kHostNumaMultinodeIpcSupported, 12080);
}

template <class Key>
int get_grown_result(const KilnFrontEntry& entry, GrownResult size, void* result, Key key) {
  const int error = real<int (*)(void*, Key)>(entry)(result, key);
  if (error == 0)
    memset(static_cast<char*>(result) + size.bytes_12, 0, size.bytes_13 - size.bytes_12);
  return error;
}

// 12 has one more parameter, where it tells which copy failed; 13 dropped it.
int copy_batch(const KilnFrontEntry& entry, void* const* to, const void* const* from,
               const size_t* sizes, size_t count, void* attributes, size_t* attribute_indices,
               size_t attribute_count, void* stream) {
  size_t failed = 0;
  using Function = int (*)(void* const*, const void* const*, const size_t*, size_t, void*, size_t*,
                           size_t, size_t*, void*);
  return real<Function>(entry)(to, from, sizes, count, attributes, attribute_indices,
                               attribute_count, &failed, stream);
}

int copy_batch_3d(const KilnFrontEntry& entry, size_t count, void* operations,
                  unsigned long long flags, void* stream) {
  size_t failed = 0;
  using Function = int (*)(size_t, void*, size_t*, unsigned long long, void*);
  return real<Function>(entry)(count, operations, &failed, flags, stream);
}

// cudaGetDriverEntryPoint returns the driver function of the runtime's own version: asked of 12,
// "cuMemPrefetchAsync" has the ABI of 12, and the caller expects that of 13. So the version is
// always named. Before 12.5 the runtime has no function for that, and the driver's
// cuGetProcAddress, found through the runtime, takes its place.
int driver_function(const KilnFrontEntry& entry, const char* by_version_name,
                    unsigned long long default_flags, const char* symbol, void** function,
                    unsigned version, unsigned long long flags, int* status) {
  constexpr int kErrorInvalidValue = 1, kDriverNotFound = 500;
  using ByVersion = int (*)(const char*, void**, unsigned, unsigned long long, int*);
  if (auto by_version = symbol_of<ByVersion>(by_version_name)) {
    return by_version(symbol, function, version, flags, status);
  }
  if (!symbol || !function) return kErrorInvalidValue;
  using Plain = int (*)(const char*, void**, unsigned long long, int*);
  void* address = nullptr;
  if (int error = real<Plain>(entry)("cuGetProcAddress", &address, 0, nullptr)) return error;
  if (!address) return kErrorInvalidValue;
  using GetProcAddress = int (*)(const char*, void**, int, uint64_t, int*);  // cuGetProcAddress_v2
  int found = 0;
  *function = nullptr;
  const int error = reinterpret_cast<GetProcAddress>(address)(
      symbol, function, static_cast<int>(version), flags ? flags : default_flags, &found);
  if (status) *status = found;
  // The runtime reports "not found" through status and a null function, the driver also through its
  // result.
  return error == kDriverNotFound ? 0 : error;
}

constexpr unsigned long long kLegacyStream = 1, kPerThreadStream = 2;  // CU_GET_PROC_ADDRESS_*

// The codes that the front itself gives when there is nothing to ask.
struct OwnError {
  int code;
  const char* name;
  const char* text;
};
constexpr OwnError kOwnErrors[] = {
    {0, "cudaSuccess", "no error"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {801, "cudaErrorNotSupported", "operation not supported"},
};
constexpr OwnError kOtherError = {-1, "unrecognized error code", "unrecognized error code"};

const OwnError& own_error(int code) {
  for (const OwnError& each : kOwnErrors) {
    if (each.code == code) return each;
  }
  return kOtherError;
}

}  // namespace

extern "C" {

const char* kiln_refuse_cudaGetErrorName(int error) { return own_error(error).name; }
const char* kiln_refuse_cudaGetErrorString(int error) { return own_error(error).text; }

// All that the real one does.
KilnChannelFormatDesc kiln_refuse_cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

int kiln_convert_cudaGetDeviceProperties(DeviceProp13* prop, int device) {
  auto get = real<int (*)(DeviceProp12*, int)>(kiln_front_entry_cudaGetDeviceProperties);
  if (!prop) return get(nullptr, device);
  DeviceProp12 from;
  if (int error = get(&from, device)) return error;
  device_prop_13_from_12(from, prop);
  fill_new_device_fields(prop, device);
  return 0;
}

int kiln_convert_cudaChooseDevice(int* device, const DeviceProp13* prop) {
  auto choose = real<int (*)(int*, const DeviceProp12*)>(kiln_front_entry_cudaChooseDevice);
  if (!prop) return choose(device, nullptr);
  DeviceProp12 wanted;
  device_prop_12_from_13(*prop, &wanted);
  return choose(device, &wanted);
}

int kiln_convert_cudaPointerGetAttributes(void* attributes, const void* pointer) {
  return get_grown_result(kiln_front_entry_cudaPointerGetAttributes, kPointerAttributes, attributes,
                          pointer);
}

int kiln_convert_cudaGetTextureObjectResourceDesc(void* desc, unsigned long long object) {
  return get_grown_result(kiln_front_entry_cudaGetTextureObjectResourceDesc, kResourceDesc, desc,
                          object);
}

int kiln_convert_cudaGetSurfaceObjectResourceDesc(void* desc, unsigned long long object) {
  return get_grown_result(kiln_front_entry_cudaGetSurfaceObjectResourceDesc, kResourceDesc, desc,
                          object);
}

int kiln_convert_cudaGetTextureObjectResourceViewDesc(void* desc, unsigned long long object) {
  return get_grown_result(kiln_front_entry_cudaGetTextureObjectResourceViewDesc, kResourceViewDesc,
                          desc, object);
}

int kiln_convert_cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                      size_t count, void* attributes, size_t* attribute_indices,
                                      size_t attribute_count, void* stream) {
  return copy_batch(kiln_front_entry_cudaMemcpyBatchAsync, to, from, sizes, count, attributes,
                    attribute_indices, attribute_count, stream);
}

int kiln_convert_cudaMemcpyBatchAsync_ptsz(void* const* to, const void* const* from,
                                           const size_t* sizes, size_t count, void* attributes,
                                           size_t* attribute_indices, size_t attribute_count,
                                           void* stream) {
  return copy_batch(kiln_front_entry_cudaMemcpyBatchAsync_ptsz, to, from, sizes, count, attributes,
                    attribute_indices, attribute_count, stream);
}

int kiln_convert_cudaMemcpy3DBatchAsync(size_t count, void* operations, unsigned long long flags,
                                        void* stream) {
  return copy_batch_3d(kiln_front_entry_cudaMemcpy3DBatchAsync, count, operations, flags, stream);
}

int kiln_convert_cudaMemcpy3DBatchAsync_ptsz(size_t count, void* operations,
                                             unsigned long long flags, void* stream) {
  return copy_batch_3d(kiln_front_entry_cudaMemcpy3DBatchAsync_ptsz, count, operations, flags,
                       stream);
}

int kiln_convert_cudaGetDriverEntryPoint(const char* symbol, void** function,
                                         unsigned long long flags, int* status) {
  return driver_function(kiln_front_entry_cudaGetDriverEntryPoint,
                         "cudaGetDriverEntryPointByVersion", kLegacyStream, symbol, function,
                         kCompiledForVersion, flags, status);
}

int kiln_convert_cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                              unsigned long long flags, int* status) {
  return driver_function(kiln_front_entry_cudaGetDriverEntryPoint_ptsz,
                         "cudaGetDriverEntryPointByVersion_ptsz", kPerThreadStream, symbol,
                         function, kCompiledForVersion, flags, status);
}

int kiln_convert_cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                  unsigned version, unsigned long long flags,
                                                  int* status) {
  return driver_function(kiln_front_entry_cudaGetDriverEntryPointByVersion,
                         "cudaGetDriverEntryPointByVersion", kLegacyStream, symbol, function,
                         version, flags, status);
}

int kiln_convert_cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                       unsigned version, unsigned long long flags,
                                                       int* status) {
  return driver_function(kiln_front_entry_cudaGetDriverEntryPointByVersion_ptsz,
                         "cudaGetDriverEntryPointByVersion_ptsz", kPerThreadStream, symbol,
                         function, version, flags, status);
}

}  // extern "C"
