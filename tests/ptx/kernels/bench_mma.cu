// SPDX-License-Identifier: Apache-2.0
// Which matrix kernels does the engine's benchmark run? bench_mma.ptx beside this file is made from
// it:
//   nvcc -arch=compute_90 -ptx -lineinfo bench_mma.cu
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace {

constexpr int kTile = 64, kStep = 32, kPad = 8;

__device__ uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

__device__ void load_a(uint32_t (&a)[4], const void* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(shared_address(at)));
}
__device__ void load_b(uint32_t (&b)[2], const void* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(shared_address(at)));
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c = a * b, all row-major, n a multiple of 64; 128 threads a block of 64 x 64 results, 32 x 32 of
// them a warp.
template <class T>
__device__ void matmul(const T* a, const T* b, float* c, int n) {
  __shared__ alignas(16) T a_tile[kTile][kStep + kPad], b_tile[kStep][kTile + kPad];
  int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float sums[2][4][4] = {};
  for (int k = 0; k < n; k += kStep) {
    for (int i = threadIdx.x; i < kTile * kStep / 8; i += 128) {
      int r = i / (kStep / 8), s = i % (kStep / 8) * 8;
      *reinterpret_cast<uint4*>(&a_tile[r][s]) =
          *reinterpret_cast<const uint4*>(&a[(row0 + r) * n + k + s]);
      int rb = i / (kTile / 8), sb = i % (kTile / 8) * 8;
      *reinterpret_cast<uint4*>(&b_tile[rb][sb]) =
          *reinterpret_cast<const uint4*>(&b[(k + rb) * n + column0 + sb]);
    }
    __syncthreads();
    for (int step = 0; step < kStep; step += 16) {
      uint32_t left[2][4], right[4][2];
      for (int m = 0; m < 2; ++m)
        load_a(left[m], &a_tile[warp_row + m * 16 + lane % 16][step + lane / 16 * 8]);
      for (int j = 0; j < 4; ++j) load_b(right[j], &b_tile[step + lane % 16][warp_column + j * 8]);
      for (int m = 0; m < 2; ++m) {
        for (int j = 0; j < 4; ++j) multiply(sums[m][j], left[m], right[j], T{});
      }
    }
    __syncthreads();
  }
  for (int m = 0; m < 2; ++m) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 4; ++i) {
        int row = row0 + warp_row + m * 16 + lane / 4 + i / 2 * 8;
        c[row * n + column0 + warp_column + j * 8 + lane % 4 * 2 + i % 2] = sums[m][j][i];
      }
    }
  }
}

}  // namespace

extern "C" __global__ void matmul_f16(const __half* a, const __half* b, float* c, int n) {
  matmul(a, b, c, n);
}
extern "C" __global__ void matmul_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c,
                                       int n) {
  matmul(a, b, c, n);
}
