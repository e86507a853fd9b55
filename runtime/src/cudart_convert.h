// SPDX-License-Identifier: Apache-2.0
//
// Which structs of the CUDA runtime have another layout in 12 than in 13, and how does one become
// the other? The layouts are facts of NVIDIA's headers; tests/unit/cudart compares them with the
// headers of the toolkit, tools/cudart-table with those of 12.
#ifndef KILN_CUDART_CONVERT_H
#define KILN_CUDART_CONVERT_H

#include <stddef.h>
#include <stdint.h>

namespace kiln::front {

struct DeviceUuid {
  char bytes[16];
};

struct DeviceProp12 {
#define DEVICE_PROP(type, name, array, offset_12, offset_13) type name array;
#define DEVICE_PROP_ONLY_12(type, name, array, offset_12) type name array;
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13)
#include "cudart_device_prop.def"
#undef DEVICE_PROP
#undef DEVICE_PROP_ONLY_12
#undef DEVICE_PROP_ONLY_13
};

struct DeviceProp13 {
#define DEVICE_PROP(type, name, array, offset_12, offset_13) type name array;
#define DEVICE_PROP_ONLY_12(type, name, array, offset_12)
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13) type name array;
#include "cudart_device_prop.def"
#undef DEVICE_PROP
#undef DEVICE_PROP_ONLY_12
#undef DEVICE_PROP_ONLY_13
};

#define DEVICE_PROP(type, name, array, offset_12, offset_13)              \
  static_assert(offsetof(DeviceProp12, name) == offset_12, "12: " #name); \
  static_assert(offsetof(DeviceProp13, name) == offset_13, "13: " #name);
#define DEVICE_PROP_ONLY_12(type, name, array, offset_12) \
  static_assert(offsetof(DeviceProp12, name) == offset_12, "12: " #name);
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13) \
  static_assert(offsetof(DeviceProp13, name) == offset_13, "13: " #name);
#include "cudart_device_prop.def"
#undef DEVICE_PROP
#undef DEVICE_PROP_ONLY_12
#undef DEVICE_PROP_ONLY_13
static_assert(sizeof(DeviceProp12) == 1032 && sizeof(DeviceProp13) == 1008,
              "sizes of cudaDeviceProp");

// Fields that the other major does not have become 0.
void device_prop_13_from_12(const DeviceProp12& from, DeviceProp13* to);
void device_prop_12_from_13(const DeviceProp13& from, DeviceProp12* to);

// Results that 13 made longer: 12 fills the first bytes, and the rest must read as 0, "not set".
struct GrownResult {
  size_t bytes_12;
  size_t bytes_13;
};
constexpr GrownResult kPointerAttributes{24, 88};
constexpr GrownResult kResourceDesc{64, 144};
constexpr GrownResult kResourceViewDesc{48, 112};

// The version that code compiled with CUDA 13 headers means when it asks for a driver function
// without naming one.
constexpr unsigned kCompiledForVersion = 13000;

}  // namespace kiln::front

// Are between code with the ABI of 13 and libcudart 12: one for each CUDART_CONVERT row, named
// kiln_convert_<name>.
#define KILN_CONVERT extern "C" __attribute__((visibility("hidden"))) int
KILN_CONVERT kiln_convert_cudaGetDeviceProperties(kiln::front::DeviceProp13* prop, int device);
KILN_CONVERT kiln_convert_cudaChooseDevice(int* device, const kiln::front::DeviceProp13* prop);
KILN_CONVERT kiln_convert_cudaPointerGetAttributes(void* attributes, const void* pointer);
KILN_CONVERT kiln_convert_cudaGetTextureObjectResourceDesc(void* desc, unsigned long long object);
KILN_CONVERT kiln_convert_cudaGetSurfaceObjectResourceDesc(void* desc, unsigned long long object);
KILN_CONVERT kiln_convert_cudaGetTextureObjectResourceViewDesc(void* desc,
                                                               unsigned long long object);
KILN_CONVERT kiln_convert_cudaMemcpyBatchAsync(void* const* to, const void* const* from,
                                               const size_t* sizes, size_t count, void* attributes,
                                               size_t* attribute_indices, size_t attribute_count,
                                               void* stream);
KILN_CONVERT kiln_convert_cudaMemcpyBatchAsync_ptsz(void* const* to, const void* const* from,
                                                    const size_t* sizes, size_t count,
                                                    void* attributes, size_t* attribute_indices,
                                                    size_t attribute_count, void* stream);
KILN_CONVERT kiln_convert_cudaMemcpy3DBatchAsync(size_t count, void* operations,
                                                 unsigned long long flags, void* stream);
KILN_CONVERT kiln_convert_cudaMemcpy3DBatchAsync_ptsz(size_t count, void* operations,
                                                      unsigned long long flags, void* stream);
KILN_CONVERT kiln_convert_cudaGetDriverEntryPoint(const char* symbol, void** function,
                                                  unsigned long long flags, int* status);
KILN_CONVERT kiln_convert_cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                                       unsigned long long flags, int* status);
KILN_CONVERT kiln_convert_cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                           unsigned version,
                                                           unsigned long long flags, int* status);
KILN_CONVERT kiln_convert_cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                                unsigned version,
                                                                unsigned long long flags,
                                                                int* status);
#undef KILN_CONVERT

// Answer a call that no back end can take, for the CUDART_RETURNS rows: programs print
// cudaGetErrorString(code) just then.
struct KilnChannelFormatDesc {
  int x, y, z, w, kind;
};
extern "C" {
__attribute__((visibility("hidden"))) const char* kiln_refuse_cudaGetErrorName(int error);
__attribute__((visibility("hidden"))) const char* kiln_refuse_cudaGetErrorString(int error);
__attribute__((visibility("hidden"))) KilnChannelFormatDesc kiln_refuse_cudaCreateChannelDesc(
    int x, int y, int z, int w, int kind);
}

#endif
