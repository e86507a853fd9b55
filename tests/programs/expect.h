// SPDX-License-Identifier: Apache-2.0
// How does a test program say what failed? Every expectation that does not hold is printed;
// finish() is the exit code.
#pragma once

#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

inline int g_failures = 0;

inline void expect(bool holds, const char* what, int line) {
  if (holds) return;
  std::printf("line %d: %s does not hold\n", line, what);
  ++g_failures;
}
inline void expect_code(cudaError_t got, cudaError_t wanted, const char* what, int line) {
  if (got == wanted) return;
  std::printf("line %d: %s gave %s, not %s\n", line, what, cudaGetErrorName(got),
              cudaGetErrorName(wanted));
  ++g_failures;
}
// Where versions of CUDA differ.
inline void expect_either(cudaError_t got, cudaError_t one, cudaError_t other, const char* what,
                          int line) {
  expect_code(got, got == other ? other : one, what, line);
}
#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__, __LINE__)
#define EXPECT_CODE(wanted, ...) expect_code((__VA_ARGS__), wanted, #__VA_ARGS__, __LINE__)
#define EXPECT_EITHER(one, other, ...) \
  expect_either((__VA_ARGS__), one, other, #__VA_ARGS__, __LINE__)
#define EXPECT_OK(...) EXPECT_CODE(cudaSuccess, __VA_ARGS__)

// What CUDA leaves open and the engine promises is asked of the engine alone.
inline bool on_the_engine() {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess &&
         std::strstr(properties.name, "kiln engine");
}

// A fault ends a GPU's context for good, so a test of one has a process of its own; the parent must
// not have used CUDA.
template <class Test>
void in_a_child(Test test) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    g_failures = 0;
    test();
    std::fflush(stdout);
    _exit(g_failures != 0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status)) std::printf("a child was ended by signal %d\n", WTERMSIG(status));
  ++g_failures;
}

inline int finish() {
  if (g_failures == 0) std::printf("all is well\n");
  return g_failures != 0;
}
