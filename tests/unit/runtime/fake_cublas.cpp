// SPDX-License-Identifier: Apache-2.0
// Stands for libcublas where a test asks which function a call reaches.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) int cublasCreate_v2(void** handle) {
  *handle = reinterpret_cast<void*>(uintptr_t{0xb1a5});
  return 0;
}
