// SPDX-License-Identifier: Apache-2.0
//
// Do arguments and results of every shape pass a trampoline unharmed? Plain C++ without a test
// framework, since the same calls run under an emulator for the other CPU. Includes the fake front:
// its kiln_front_target ruins every register that a callee may ruin before it returns.
#ifndef KILN_TEST_TRAMPOLINE_CALLS_H
#define KILN_TEST_TRAMPOLINE_CALLS_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "front_entry.h"

namespace trampoline_calls {

struct FakeFront {
  void* next_target =
      nullptr;  // where the next call goes; null: by the entry's rule, as on libcudart 12
  KilnFrontEntry* last_entry = nullptr;
  bool throw_from_target = false;
  uintptr_t stack_misalignment = 0;
};
inline FakeFront front;
struct Refused {};

inline void ruin_registers() {
#if defined(__x86_64__)
  asm volatile(
      "movq $-1, %%rax; movq %%rax, %%rdi; movq %%rax, %%rsi; movq %%rax, %%rdx; movq %%rax, "
      "%%rcx; movq %%rax, %%r8;"
      "movq %%rax, %%r9; movq %%rax, %%r10; movq %%rax, %%r11;"
      "pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm1, %%xmm1; pcmpeqd %%xmm2, %%xmm2; pcmpeqd %%xmm3, "
      "%%xmm3;"
      "pcmpeqd %%xmm4, %%xmm4; pcmpeqd %%xmm5, %%xmm5; pcmpeqd %%xmm6, %%xmm6; pcmpeqd %%xmm7, "
      "%%xmm7" ::
          : "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
            "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc");
#else
  asm volatile(
      "mov x0, #-1; mov x1, #-1; mov x2, #-1; mov x3, #-1; mov x4, #-1; mov x5, #-1; mov x6, #-1; "
      "mov x7, #-1;"
      "mov x8, #-1; mov x9, #-1; mov x10, #-1; mov x16, #-1; mov x17, #-1;"
      "movi v0.16b, #255; movi v1.16b, #255; movi v2.16b, #255; movi v3.16b, #255; movi v4.16b, "
      "#255;"
      "movi v5.16b, #255; movi v6.16b, #255; movi v7.16b, #255" ::
          : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x16", "x17", "v0",
            "v1", "v2", "v3", "v4", "v5", "v6", "v7");
#endif
}

struct Location {
  int type, id;
};
struct Extent {  // cudaExtent: 24 bytes, so in memory (x86_64) or by reference (aarch64)
  size_t width, height, depth;
};
struct Pitched {  // cudaPitchedPtr: 32 bytes
  void* pointer;
  size_t pitch, xsize, ysize;
};
struct Dim3 {  // 12 bytes: in two registers, the second half full
  unsigned x, y, z;
};
struct ChannelDesc {  // 20 bytes: returned through memory
  int x, y, z, w, f;
};
struct Doubles {  // a homogeneous aggregate: in d registers on aarch64
  double a, b, c;
};

}  // namespace trampoline_calls

// The trampolines know no signature, so that any name serves for any of these.
extern "C" {
uint64_t cudaMalloc(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t, uint64_t, uint64_t, uint64_t);
double cudaMallocHost(double, double, double, double, double, double, double, double, double,
                      double);
int cudaMemPrefetchAsync(const void*, size_t, trampoline_calls::Location, unsigned, void*);
int cudaMemset3D(trampoline_calls::Pitched, int, trampoline_calls::Extent);
int cudaOccupancyMaxActiveClusters(trampoline_calls::Dim3, float, trampoline_calls::Dim3, int,
                                   trampoline_calls::Doubles);
trampoline_calls::ChannelDesc cudaCreateChannelDesc(int, int, int, int, int);
__int128 cudaStreamQuery(__int128, long double);
double cudaDeviceReset(int count, ...);
int cudaDeviceSynchronize();

void* kiln_front_target(KilnFrontEntry* entry) {
  using namespace trampoline_calls;
  front.last_entry = entry;
  front.stack_misalignment = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) % 16;
  if (front.throw_from_target) throw Refused{};
  void* target = front.next_target ? front.next_target : entry->convert_on_12;
  ruin_registers();
  return target;
}
}

namespace trampoline_calls {

inline uint64_t take_integers(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                              uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j,
                              uint64_t k, uint64_t l) {
  const uint64_t seen[] = {a, b, c, d, e, f, g, h, i, j, k, l};
  for (uint64_t n = 0; n < 12; ++n) {
    if (seen[n] != (n + 1) * 0x0101010101010101) return n + 1;
  }
  return 0x600d600d600d600d;
}
inline double take_doubles(double a, double b, double c, double d, double e, double f, double g,
                           double h, double i, double j) {
  const double seen[] = {a, b, c, d, e, f, g, h, i, j};
  for (int n = 0; n < 10; ++n) {
    if (seen[n] != n + 0.5) return n;
  }
  return -1234.5;
}
inline int take_location(const void* pointer, size_t count, Location location, unsigned flags,
                         void* stream) {
  return pointer == reinterpret_cast<void*>(0x1000) && count == 77 && location.type == 3 &&
         location.id == -4 && flags == 5 && stream == reinterpret_cast<void*>(0x2000);
}
inline int take_large_structs(Pitched pitched, int value, Extent extent) {
  return pitched.pointer == reinterpret_cast<void*>(0x3000) && pitched.pitch == 11 &&
         pitched.xsize == 12 && pitched.ysize == 13 && value == 14 && extent.width == 15 &&
         extent.height == 16 && extent.depth == 17;
}
inline int take_small_structs(Dim3 grid, float factor, Dim3 block, int last, Doubles doubles) {
  return grid.x == 1 && grid.y == 2 && grid.z == 3 && factor == 0.25f && block.x == 4 &&
         block.y == 5 && block.z == 6 && last == 7 && doubles.a == 8.5 && doubles.b == 9.5 &&
         doubles.c == 10.5;
}
inline ChannelDesc give_struct(int x, int y, int z, int w, int f) { return {x, y, z, w, f}; }
inline __int128 take_wide(__int128 value, long double real) {
  return value + static_cast<int>(real);
}
inline double take_variadic(int count, ...) {
  va_list rest;
  va_start(rest, count);
  double sum = 0;
  for (int n = 0; n < count; ++n) sum += va_arg(rest, double);
  va_end(rest);
  return sum;
}
struct FromTarget {
  int code;
};
inline int throw_from_real() { throw FromTarget{42}; }

template <class Function>
void send_to(Function* function) {
  front = FakeFront{};
  front.next_target = reinterpret_cast<void*>(function);
}

// Each returns "" or what went wrong.
using Text = const char*;

inline Text integers_pass() {
  send_to(take_integers);
  constexpr uint64_t one = 0x0101010101010101;
  const uint64_t result = cudaMalloc(one, 2 * one, 3 * one, 4 * one, 5 * one, 6 * one, 7 * one,
                                     8 * one, 9 * one, 10 * one, 11 * one, 12 * one);
  return result == 0x600d600d600d600d ? "" : "one of 12 integer arguments was lost";
}
inline Text doubles_pass() {
  send_to(take_doubles);
  return cudaMallocHost(0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5) == -1234.5
             ? ""
             : "one of 10 doubles was lost";
}
inline Text structs_pass() {
  send_to(take_location);
  if (!cudaMemPrefetchAsync(reinterpret_cast<void*>(0x1000), 77, Location{3, -4}, 5,
                            reinterpret_cast<void*>(0x2000))) {
    return "cudaMemLocation by value was lost";
  }
  send_to(take_large_structs);
  if (!cudaMemset3D({reinterpret_cast<void*>(0x3000), 11, 12, 13}, 14, {15, 16, 17}))
    return "structs over 16 bytes were lost";
  send_to(take_small_structs);
  if (!cudaOccupancyMaxActiveClusters({1, 2, 3}, 0.25f, {4, 5, 6}, 7, {8.5, 9.5, 10.5}))
    return "structs in registers were lost";
  return "";
}
inline Text results_pass() {
  send_to(give_struct);
  const ChannelDesc desc = cudaCreateChannelDesc(1, 2, 3, 4, 5);
  if (desc.x != 1 || desc.y != 2 || desc.z != 3 || desc.w != 4 || desc.f != 5)
    return "a result in memory was lost";
  send_to(take_wide);
  const __int128 wide = (static_cast<__int128>(0x1122334455667788) << 64) | 0x99;
  return cudaStreamQuery(wide, 3.0L) == wide + 3 ? "" : "a result in two registers was lost";
}
inline Text variadic_passes() {
  send_to(take_variadic);
  return cudaDeviceReset(3, 1.0, 2.0, 4.0) == 7.0 ? ""
                                                  : "variadic doubles were lost (al on x86_64)";
}
inline Text stack_is_aligned() {
  send_to(take_variadic);
  cudaDeviceReset(0);
  return front.stack_misalignment == 0
             ? ""
             : "kiln_front_target was called with a stack that is not aligned to 16";
}
inline Text exceptions_pass() {
  send_to(take_variadic);
  front.throw_from_target = true;
  bool caught = false;
  try {
    cudaDeviceSynchronize();
  } catch (const Refused&) {
    caught = true;
  }
  if (!caught) return "an exception of kiln_front_target did not arrive";
  send_to(throw_from_real);
  int code = 0;
  try {
    cudaDeviceSynchronize();
  } catch (const FromTarget& thrown) {
    code = thrown.code;
  }
  return code == 42 ? "" : "an exception of the target did not arrive";
}
inline Text entry_arrives() {
  send_to(take_variadic);
  cudaDeviceReset(0);
  if (strcmp(front.last_entry->name, "cudaDeviceReset") != 0)
    return "the entry of another name arrived";
  send_to(take_location);
  cudaMemPrefetchAsync(nullptr, 0, {0, 0}, 0, nullptr);
  if (strcmp(front.last_entry->name_on_12, "cudaMemPrefetchAsync_v2") != 0)
    return "name_on_12 is wrong";
  return "";
}

struct Case {
  const char* name;
  Text (*run)();
};
inline constexpr Case kCases[] = {
    {"integers_pass", integers_pass},     {"doubles_pass", doubles_pass},
    {"structs_pass", structs_pass},       {"results_pass", results_pass},
    {"variadic_passes", variadic_passes}, {"stack_is_aligned", stack_is_aligned},
    {"exceptions_pass", exceptions_pass}, {"entry_arrives", entry_arrives},
};

}  // namespace trampoline_calls

#endif
