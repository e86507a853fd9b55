// SPDX-License-Identifier: Apache-2.0
//
// Are the layouts that the conversions assume those of NVIDIA's headers? Compiled against the
// toolkit that is there.
#include <gtest/gtest.h>

#include "cudart_convert.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#define CUDART_VERSION 0
#endif

TEST(Headers, DevicePropOf13) {
#if CUDART_VERSION / 1000 == 13
  using kiln::front::DeviceProp13, kiln::front::DeviceUuid;
  EXPECT_EQ(sizeof(cudaDeviceProp), sizeof(DeviceProp13));
#define reserved_13 reserved
#define DEVICE_PROP_ONLY_12(type, name, array, offset_12)
#define DEVICE_PROP(type, name, array, offset_12, offset_13) \
  DEVICE_PROP_ONLY_13(type, name, array, offset_13)
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13)                             \
  EXPECT_EQ(offsetof(cudaDeviceProp, name), static_cast<size_t>(offset_13)) << #name; \
  EXPECT_EQ(sizeof(cudaDeviceProp::name), sizeof(type array)) << #name;
#include "cudart_device_prop.def"
#else
  GTEST_SKIP() << "no CUDA 13 headers";
#endif
}

TEST(Headers, DevicePropOf12) {
#if CUDART_VERSION / 1000 == 12
  using kiln::front::DeviceProp12, kiln::front::DeviceUuid;
  EXPECT_EQ(sizeof(cudaDeviceProp), sizeof(DeviceProp12));
#define DEVICE_PROP_ONLY_13(type, name, array, offset_13)
#define DEVICE_PROP(type, name, array, offset_12, offset_13)                          \
  EXPECT_EQ(offsetof(cudaDeviceProp, name), static_cast<size_t>(offset_12)) << #name; \
  EXPECT_EQ(sizeof(cudaDeviceProp::name), sizeof(type array)) << #name;
#define DEVICE_PROP_ONLY_12(type, name, array, \
                            offset_12)  // `reserved` is cut differently from minor to minor
#include "cudart_device_prop.def"
#else
  GTEST_SKIP() << "no CUDA 12 headers";
#endif
}

TEST(Headers, LongerResultsOf13) {
#if CUDART_VERSION / 1000 == 13
  EXPECT_EQ(sizeof(cudaPointerAttributes), kiln::front::kPointerAttributes.bytes_13);
  EXPECT_EQ(sizeof(cudaResourceDesc), kiln::front::kResourceDesc.bytes_13);
  EXPECT_EQ(sizeof(cudaResourceViewDesc), kiln::front::kResourceViewDesc.bytes_13);
#elif CUDART_VERSION / 1000 == 12
  EXPECT_EQ(sizeof(cudaPointerAttributes), kiln::front::kPointerAttributes.bytes_12);
  EXPECT_EQ(sizeof(cudaResourceDesc), kiln::front::kResourceDesc.bytes_12);
  EXPECT_EQ(sizeof(cudaResourceViewDesc), kiln::front::kResourceViewDesc.bytes_12);
#else
  GTEST_SKIP() << "no CUDA headers";
#endif
}
