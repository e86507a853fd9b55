// SPDX-License-Identifier: Apache-2.0
//
// Does code with the ABI of CUDA 13 get from libcudart 12 what libcudart 13 would have given it?
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cudart_convert.h"
#include "fake_runtime_12.h"
#include "front_entry.h"

using namespace kiln::front;
using fake_runtime_12::add;

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

namespace {

// The byte at each offset of a 12 prop; prime length, so that a field copied from a wrong place
// differs.
unsigned char pattern(size_t offset) { return static_cast<unsigned char>(1 + offset % 251); }

template <class Function>
void set_real(KilnFrontEntry& entry, Function* function) {
  entry.real_on_12 = reinterpret_cast<void*>(function);
}

class Convert : public testing::Test {
 protected:
  void SetUp() override {
    fake_runtime_12::exports.clear();
    asked_attributes.clear();
  }
  static int runtime_version(int* version) { return *version = version_12, 0; }
  static int get_attribute(int* value, int attribute, int device) {
    asked_attributes.push_back(attribute);
    *value = 1000 * device + attribute;
    return 0;
  }
  static int get_properties(DeviceProp12* prop, int device) {
    if (!prop || device > 7) return 101;  // cudaErrorInvalidDevice
    for (size_t i = 0; i < sizeof *prop; ++i)
      reinterpret_cast<unsigned char*>(prop)[i] = pattern(i);
    return 0;
  }
  static inline int version_12 = 12090;
  static inline std::vector<int> asked_attributes;
};

}  // namespace

TEST_F(Convert, EveryCommonFieldOfDevicePropMoves) {
  DeviceProp12 from;
  ASSERT_EQ(get_properties(&from, 0), 0);
  DeviceProp13 to;
  memset(&to, 0xee, sizeof to);
  device_prop_13_from_12(from, &to);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&to);
  int fields = 0;
#define DEVICE_PROP(type, name, array, offset_12, offset_13) \
  ++fields;                                                  \
  for (size_t i = 0; i < sizeof to.name; ++i)                \
    EXPECT_EQ(bytes[offset_13 + i], pattern(offset_12 + i)) << #name << i;
#define DEVICE_PROP_ONLY_12(type, name, array, offset_12)
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13) \
  for (size_t i = 0; i < sizeof to.name; ++i) EXPECT_EQ(bytes[offset_13 + i], 0) << #name << i;
#include "cudart_device_prop.def"
#undef DEVICE_PROP
#undef DEVICE_PROP_ONLY_12
#undef DEVICE_PROP_ONLY_13
  EXPECT_EQ(fields, 85);
}

// By number, not through the table: the notes on the two majors say 388 and 384 for
// multiProcessorCount.
TEST_F(Convert, KnownFieldsLieWhereThe13CallerReadsThem) {
  DeviceProp12 from{};
  auto* bytes_12 = reinterpret_cast<char*>(&from);
  const int processors = 132, l2_bytes = 62914560, capability[2] = {9, 0};
  const size_t optin = 232448;
  memcpy(bytes_12 + 388, &processors, 4);
  memcpy(bytes_12 + 616, &l2_bytes, 4);
  memcpy(bytes_12 + 360, capability, 8);
  memcpy(bytes_12 + 696, &optin, 8);
  strcpy(bytes_12, "NVIDIA H200");
  DeviceProp13 to;
  device_prop_13_from_12(from, &to);
  const auto* bytes_13 = reinterpret_cast<const char*>(&to);
  EXPECT_STREQ(bytes_13, "NVIDIA H200");
  EXPECT_EQ(memcmp(bytes_13 + 384, &processors, 4), 0);
  EXPECT_EQ(memcmp(bytes_13 + 596, &l2_bytes, 4), 0);
  EXPECT_EQ(memcmp(bytes_13 + 360, capability, 8), 0);
  EXPECT_EQ(memcmp(bytes_13 + 672, &optin, 8), 0);
}

TEST_F(Convert, GetDevicePropertiesTakesNewFieldsFromAttributes) {
  set_real(kiln_front_entry_cudaGetDeviceProperties, get_properties);
  add("cudaRuntimeGetVersion", runtime_version);
  add("cudaDeviceGetAttribute", get_attribute);
  version_12 = 12090;
  struct {
    DeviceProp13 prop;
    unsigned char guard[64];
  } space;
  memset(&space, 0xcd, sizeof space);
  ASSERT_EQ(kiln_convert_cudaGetDeviceProperties(&space.prop, 2), 0);
  EXPECT_EQ(space.prop.deviceNumaConfig, 2130);
  EXPECT_EQ(space.prop.deviceNumaId, 2131);
  EXPECT_EQ(space.prop.mpsEnabled, 2133);
  EXPECT_EQ(space.prop.hostNumaId, 2134);
  EXPECT_EQ(space.prop.gpuPciDeviceID, 2139u);
  EXPECT_EQ(space.prop.gpuPciSubsystemID, 2140u);
  EXPECT_EQ(space.prop.hostNumaMultinodeIpcSupported, 2143);
  for (unsigned char byte : space.guard)
    EXPECT_EQ(byte, 0xcd) << "12's longer struct overran the caller's";
}

TEST_F(Convert, GetDevicePropertiesAsksNoAttributeThatAnOldRuntimeLacks) {
  set_real(kiln_front_entry_cudaGetDeviceProperties, get_properties);
  add("cudaRuntimeGetVersion", runtime_version);
  add("cudaDeviceGetAttribute", get_attribute);
  DeviceProp13 prop;
  version_12 = 12010;
  ASSERT_EQ(kiln_convert_cudaGetDeviceProperties(&prop, 0), 0);
  EXPECT_TRUE(asked_attributes.empty());
  EXPECT_EQ(prop.hostNumaId, -1);
  EXPECT_EQ(prop.gpuPciDeviceID, 0u);
  version_12 = 12040;
  ASSERT_EQ(kiln_convert_cudaGetDeviceProperties(&prop, 0), 0);
  EXPECT_EQ(asked_attributes, (std::vector<int>{130, 131, 134, 133}));
}

TEST_F(Convert, GetDevicePropertiesPassesErrorsOnAndLeavesTheStruct) {
  set_real(kiln_front_entry_cudaGetDeviceProperties, get_properties);
  DeviceProp13 prop;
  memset(&prop, 0xab, sizeof prop);
  EXPECT_EQ(kiln_convert_cudaGetDeviceProperties(&prop, 8), 101);
  EXPECT_EQ(static_cast<unsigned char>(prop.name[0]), 0xab);
  EXPECT_EQ(kiln_convert_cudaGetDeviceProperties(nullptr, 0), 101);
}

TEST_F(Convert, ChooseDeviceGivesThe12Layout) {
  set_real(
      kiln_front_entry_cudaChooseDevice, +[](int* device, const DeviceProp12* wanted) {
        if (!wanted) return 1;
        *device = wanted->multiProcessorCount + wanted->clockRate +
                  static_cast<int>(wanted->sharedMemPerBlockOptin);
        return 0;
      });
  DeviceProp13 wanted{};
  wanted.multiProcessorCount = 132;
  wanted.sharedMemPerBlockOptin = 1000;
  int device = -1;
  EXPECT_EQ(kiln_convert_cudaChooseDevice(&device, &wanted), 0);
  EXPECT_EQ(device, 1132);
  EXPECT_EQ(kiln_convert_cudaChooseDevice(&device, nullptr), 1);
}

TEST_F(Convert, LongerResultsEndInZeros) {
  struct {
    unsigned char bytes[160];
  } result;
  const auto expect_tail = [&](GrownResult size) {
    for (size_t i = 0; i < sizeof result.bytes; ++i) {
      const int expected = i < size.bytes_12 ? 0x12 : i < size.bytes_13 ? 0 : 0xcd;
      ASSERT_EQ(result.bytes[i], expected) << "byte " << i;
    }
  };
  memset(&result, 0xcd, sizeof result);
  set_real(
      kiln_front_entry_cudaPointerGetAttributes, +[](void* to, const void* pointer) {
        if (!pointer) return 1;
        memset(to, 0x12, 24);
        return 0;
      });
  EXPECT_EQ(kiln_convert_cudaPointerGetAttributes(&result, nullptr), 1);
  EXPECT_EQ(result.bytes[87], 0xcd);
  EXPECT_EQ(kiln_convert_cudaPointerGetAttributes(&result, &result), 0);
  expect_tail({24, 88});

  const auto fill_64 = +[](void* to, unsigned long long) { return memset(to, 0x12, 64), 0; };
  memset(&result, 0xcd, sizeof result);
  set_real(kiln_front_entry_cudaGetTextureObjectResourceDesc, fill_64);
  EXPECT_EQ(kiln_convert_cudaGetTextureObjectResourceDesc(&result, 1), 0);
  expect_tail({64, 144});
  memset(&result, 0xcd, sizeof result);
  set_real(kiln_front_entry_cudaGetSurfaceObjectResourceDesc, fill_64);
  EXPECT_EQ(kiln_convert_cudaGetSurfaceObjectResourceDesc(&result, 1), 0);
  expect_tail({64, 144});
  memset(&result, 0xcd, sizeof result);
  set_real(
      kiln_front_entry_cudaGetTextureObjectResourceViewDesc,
      +[](void* to, unsigned long long) { return memset(to, 0x12, 48), 0; });
  EXPECT_EQ(kiln_convert_cudaGetTextureObjectResourceViewDesc(&result, 1), 0);
  expect_tail({48, 112});
}

TEST_F(Convert, BatchCopiesGetAPlaceForTheFailedIndex) {
  static size_t count_seen;
  static void* stream_seen;
  const auto copy = +[](void**, void**, size_t*, size_t count, void*, size_t*, size_t attributes,
                        size_t* failed, void* stream) {
    *failed = count_seen = count + attributes;
    stream_seen = stream;
    return 0;
  };
  int some_stream;
  for (auto [entry, convert] :
       {std::pair(&kiln_front_entry_cudaMemcpyBatchAsync, &kiln_convert_cudaMemcpyBatchAsync),
        std::pair(&kiln_front_entry_cudaMemcpyBatchAsync_ptsz,
                  &kiln_convert_cudaMemcpyBatchAsync_ptsz)}) {
    set_real(*entry, copy);
    stream_seen = nullptr;
    EXPECT_EQ(convert(nullptr, nullptr, nullptr, 5, nullptr, nullptr, 1, &some_stream), 0);
    EXPECT_EQ(count_seen, 6u);
    EXPECT_EQ(stream_seen, &some_stream);
  }
  const auto copy_3d =
      +[](size_t count, void*, size_t* failed, unsigned long long flags, void* stream) {
        *failed = count_seen = count + flags;
        stream_seen = stream;
        return 0;
      };
  for (auto [entry, convert] :
       {std::pair(&kiln_front_entry_cudaMemcpy3DBatchAsync, &kiln_convert_cudaMemcpy3DBatchAsync),
        std::pair(&kiln_front_entry_cudaMemcpy3DBatchAsync_ptsz,
                  &kiln_convert_cudaMemcpy3DBatchAsync_ptsz)}) {
    set_real(*entry, copy_3d);
    stream_seen = nullptr;
    EXPECT_EQ(convert(3, nullptr, 40, &some_stream), 0);
    EXPECT_EQ(count_seen, 43u);
    EXPECT_EQ(stream_seen, &some_stream);
  }
}

TEST(Refuse, ErrorTextsExistWithoutABackEnd) {
  EXPECT_STREQ(kiln_refuse_cudaGetErrorName(100), "cudaErrorNoDevice");
  EXPECT_STREQ(kiln_refuse_cudaGetErrorString(801), "operation not supported");
  EXPECT_STREQ(kiln_refuse_cudaGetErrorString(12345), "unrecognized error code");
  EXPECT_EQ(kiln_refuse_cudaCreateChannelDesc(1, 2, 3, 4, 5).w, 4);
}

namespace {
struct DriverQuery {
  std::string symbol;
  unsigned version;
  unsigned long long flags;
};
DriverQuery last_query;
int get_proc_address(const char* symbol, void** function, int version, uint64_t flags,
                     int* status) {
  last_query = {symbol, static_cast<unsigned>(version), flags};
  const bool known = std::string(symbol) == "cuMemAlloc";
  *function = known ? reinterpret_cast<void*>(0x77) : nullptr;
  *status = known ? 0 : 1;
  return known ? 0 : 500;
}
int entry_point_of_12(const char* symbol, void** function, unsigned long long, int*) {
  if (std::string(symbol) == "cuGetProcAddress")
    *function = reinterpret_cast<void*>(get_proc_address);
  return 0;
}
int entry_point_by_version(const char* symbol, void** function, unsigned version,
                           unsigned long long flags, int* status) {
  last_query = {symbol, version, flags};
  *function = reinterpret_cast<void*>(0x88);
  if (status) *status = 0;
  return 0;
}
}  // namespace

TEST_F(Convert, DriverFunctionsHaveTheAbiOfTheCompilersVersion) {
  void* function = nullptr;
  int status = -1;
  // Before 12.5: through the driver.
  set_real(kiln_front_entry_cudaGetDriverEntryPoint, entry_point_of_12);
  EXPECT_EQ(kiln_convert_cudaGetDriverEntryPoint("cuMemAlloc", &function, 0, &status), 0);
  EXPECT_EQ(function, reinterpret_cast<void*>(0x77));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(last_query.version, 13000u);
  EXPECT_EQ(last_query.flags, 1u);
  set_real(kiln_front_entry_cudaGetDriverEntryPoint_ptsz, entry_point_of_12);
  EXPECT_EQ(kiln_convert_cudaGetDriverEntryPoint_ptsz("cuNothing", &function, 0, &status), 0);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(last_query.flags, 2u);
  set_real(kiln_front_entry_cudaGetDriverEntryPointByVersion, entry_point_of_12);
  EXPECT_EQ(
      kiln_convert_cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12040, 2, nullptr), 0);
  EXPECT_EQ(last_query.version, 12040u);
  EXPECT_EQ(last_query.flags, 2u);
  EXPECT_EQ(kiln_convert_cudaGetDriverEntryPointByVersion(nullptr, &function, 12040, 2, nullptr),
            1);
  // From 12.5: the runtime's own.
  add("cudaGetDriverEntryPointByVersion", entry_point_by_version);
  EXPECT_EQ(kiln_convert_cudaGetDriverEntryPoint("cuMemAlloc", &function, 0, nullptr), 0);
  EXPECT_EQ(function, reinterpret_cast<void*>(0x88));
  EXPECT_EQ(last_query.version, 13000u);
  EXPECT_EQ(last_query.flags, 0u);
}
