// SPDX-License-Identifier: Apache-2.0
// How is a product of tiles given to the tensor cores of a warpgroup? wgmma m64nNk16 with fp32
// accumulators: the descriptor of a tile in shared memory, the instruction in the two forms that
// attention needs, and the waits around it.
//
// Accumulators: d[4i + 0, 1] are row lane / 4 of the warp's 16 rows, columns 8i + 2 (lane % 4) +
// {0, 1}; d[4i + 2, 3] the same columns 8 rows down. A from registers has that order too, packed in
// pairs: no shuffle between softmax and P V.
#pragma once

#include <stdint.h>

namespace fa {

struct Bf16 {};
struct Half {};

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most kPending of the groups committed last are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The compiler does not know that a wait gives registers their values: without this it may read
// them before the wait.
template <int N>
__device__ __forceinline__ void pin(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N>
__device__ __forceinline__ void pin(uint32_t (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+r"(r[i])::"memory");
}

// Bits 0-13 the address, 16-29 the leading and 32-45 the stride offset, each in units of 16 bytes;
// bit 62 the 128-byte swizzle. The tile is aligned to 1024 bytes, so the base offset (bits 49-51)
// is 0.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t address, uint32_t leading_bytes,
                                                    uint32_t stride_bytes) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) |
         static_cast<uint64_t>(leading_bytes >> 4) << 16 |
         static_cast<uint64_t>(stride_bytes >> 4) << 32 | uint64_t{1} << 62;
}
// Rows of the product's k dimension (Q and K): 8 rows are 1024 bytes; a swizzled row has no leading
// offset.
__device__ __forceinline__ uint64_t k_major_descriptor(uint32_t address) {
  return tile_descriptor(address, 16, 1024);
}
// Rows of the product's n dimension (V): 64 columns further is the next slab, 8 rows of k are 1024
// bytes.
__device__ __forceinline__ uint64_t n_major_descriptor(uint32_t address, uint32_t slab_bytes) {
  return tile_descriptor(address, slab_bytes, 1024);
}

// d = a b + (accumulate ? d : 0), a: 64 x 16 at k_major_descriptor, b: N x 16 at
// k_major_descriptor.
template <class T, int N>
__device__ __forceinline__ void wgmma_shared(float (&d)[N / 2], uint64_t a, uint64_t b,
                                             int accumulate);
// The same with a from registers and b: 16 x N at n_major_descriptor.
template <class T, int N>
__device__ __forceinline__ void wgmma_registers(float (&d)[N / 2], const uint32_t* a, uint64_t b,
                                                int accumulate);

// One register list a shape, so that the two types and the two forms share it.
#define FA_D64                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FA_D64_OPERANDS                                                                           \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),  \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),  \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define FA_D128                                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FA_D128_OPERANDS                                                                          \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),  \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),  \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),  \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),  \
      "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),  \
      "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),  \
      "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])

template <>
__device__ __forceinline__ void wgmma_shared<Bf16, 64>(float (&d)[32], uint64_t a, uint64_t b,
                                                       int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FA_D64
      "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : FA_D64_OPERANDS
      : "l"(a), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_registers<Bf16, 64>(float (&d)[32], const uint32_t* a,
                                                          uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FA_D64
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : FA_D64_OPERANDS
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_shared<Half, 64>(float (&d)[32], uint64_t a, uint64_t b,
                                                       int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" FA_D64 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : FA_D64_OPERANDS
      : "l"(a), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_registers<Half, 64>(float (&d)[32], const uint32_t* a,
                                                          uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" FA_D64
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : FA_D64_OPERANDS
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_shared<Bf16, 128>(float (&d)[64], uint64_t a, uint64_t b,
                                                        int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FA_D128
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : FA_D128_OPERANDS
      : "l"(a), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_registers<Bf16, 128>(float (&d)[64], const uint32_t* a,
                                                           uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FA_D128
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : FA_D128_OPERANDS
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_shared<Half, 128>(float (&d)[64], uint64_t a, uint64_t b,
                                                        int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" FA_D128
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : FA_D128_OPERANDS
      : "l"(a), "l"(b), "r"(accumulate));
}
template <>
__device__ __forceinline__ void wgmma_registers<Half, 128>(float (&d)[64], const uint32_t* a,
                                                           uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" FA_D128
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : FA_D128_OPERANDS
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

#undef FA_D64
#undef FA_D64_OPERANDS
#undef FA_D128
#undef FA_D128_OPERANDS

// Two floats as 16-bit elements, the first in the low half.
template <class T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t both;
  if constexpr (__is_same(T, Bf16))
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

}  // namespace fa
