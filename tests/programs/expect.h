// SPDX-License-Identifier: Apache-2.0
// How does a test program say what failed? Every expectation that does not hold is printed; finish() is the exit code.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>

inline int g_failures = 0;

inline void expect(bool holds, const char* what, int line) {
  if (holds) return;
  std::printf("line %d: %s does not hold\n", line, what);
  ++g_failures;
}
inline void expect_code(cudaError_t got, cudaError_t wanted, const char* what, int line) {
  if (got == wanted) return;
  std::printf("line %d: %s gave %s, not %s\n", line, what, cudaGetErrorName(got), cudaGetErrorName(wanted));
  ++g_failures;
}
#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__, __LINE__)
#define EXPECT_CODE(wanted, ...) expect_code((__VA_ARGS__), wanted, #__VA_ARGS__, __LINE__)
#define EXPECT_OK(...) EXPECT_CODE(cudaSuccess, __VA_ARGS__)

inline int finish() {
  if (g_failures == 0) std::printf("all is well\n");
  return g_failures != 0;
}
