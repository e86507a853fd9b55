// SPDX-License-Identifier: Apache-2.0
// Do matrix products by nvcuda::wmma and mma.sync give the right numbers for every type, with rows
// and columns in any order? All numbers are small integers, so every sum is exact.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>
#include <vector>

#include "expect.h"

namespace wmma = nvcuda::wmma;

constexpr int kSide = 64;

template <class T>
using StoredAs = std::conditional_t<std::is_same_v<T, wmma::precision::tf32>, float, T>;

// One warp for each tile of d.
template <class T, class Sum, int M, int N, int K, class RowsOfA, class RowsOfB>
__global__ void multiply(const StoredAs<T>* a, const StoredAs<T>* b, const Sum* c, Sum* d) {
  constexpr bool kAByRows = std::is_same_v<RowsOfA, wmma::row_major>;
  constexpr bool kBByRows = std::is_same_v<RowsOfB, wmma::row_major>;
  const int row = static_cast<int>(blockIdx.y) * M, column = static_cast<int>(blockIdx.x) * N;
  wmma::fragment<wmma::matrix_a, M, N, K, T, RowsOfA> left;
  wmma::fragment<wmma::matrix_b, M, N, K, T, RowsOfB> right;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
  wmma::load_matrix_sync(sum, c + row * kSide + column, kSide, wmma::mem_row_major);
  for (int k = 0; k < kSide; k += K) {
    wmma::load_matrix_sync(left, kAByRows ? a + row * kSide + k : a + k * kSide + row, kSide);
    wmma::load_matrix_sync(right, kBByRows ? b + k * kSide + column : b + column * kSide + k,
                           kSide);
    wmma::mma_sync(sum, left, right, sum);
  }
  // Once by rows, and behind that by columns.
  wmma::store_matrix_sync(d + row * kSide + column, sum, kSide, wmma::mem_row_major);
  wmma::store_matrix_sync(d + kSide * kSide + column * kSide + row, sum, kSide,
                          wmma::mem_col_major);
}

template <class T>
T* managed() {
  T* out = nullptr;
  EXPECT_OK(cudaMallocManaged(&out, 2 * kSide * kSide * sizeof(T)));
  return out;
}

int small(int i, int seed, bool is_signed) {
  const int value = (i * 7 + i / kSide * 3 + seed) % 5;
  return is_signed ? value - 2 : value;
}

template <class T, class Sum, int M, int N, int K, bool kSigned = true,
          class RowsOfA = wmma::row_major, class RowsOfB = wmma::col_major>
void test(const char* name) {
  constexpr bool kAByRows = std::is_same_v<RowsOfA, wmma::row_major>;
  constexpr bool kBByRows = std::is_same_v<RowsOfB, wmma::row_major>;
  auto *a = managed<StoredAs<T>>(), *b = managed<StoredAs<T>>();
  auto *c = managed<Sum>(), *d = managed<Sum>();
  for (int i = 0; i < kSide * kSide; ++i) {
    a[i] = static_cast<StoredAs<T>>(static_cast<float>(small(i, 1, kSigned)));
    b[i] = static_cast<StoredAs<T>>(static_cast<float>(small(i, 3, kSigned)));
    c[i] = static_cast<Sum>(static_cast<float>(small(i, 2, true)));
  }
  const dim3 tiles(kSide / N, kSide / M);
  multiply<T, Sum, M, N, K, RowsOfA, RowsOfB><<<tiles, 32>>>(a, b, c, d);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      float wanted = static_cast<float>(c[row * kSide + column]);
      for (int k = 0; k < kSide; ++k)
        wanted += static_cast<float>(a[kAByRows ? row * kSide + k : k * kSide + row]) *
                  static_cast<float>(b[kBByRows ? k * kSide + column : column * kSide + k]);
      wrong += static_cast<float>(d[row * kSide + column]) != wanted;
      wrong += static_cast<float>(d[kSide * kSide + column * kSide + row]) != wanted;
    }
  }
  if (wrong) std::printf("%s: %d sums are wrong\n", name, wrong);
  EXPECT(wrong == 0);
  cudaFree(a), cudaFree(b), cudaFree(c), cudaFree(d);
}

// Integers of 8 bits whose sum leaves 32 bits: it stays at the end of the range.
__global__ void saturate(int* out) {
  const unsigned a = 0x7f7f7f7f, b = 0x7f7f7f7f;
  int d[4], c = 0x7fffff00;
  asm("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %4}, {%5}, "
      "{%6, %6, %6, %6};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a), "r"(b), "r"(c));
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}

// One bit for each element: of a ^ b, and of a & b.
__global__ void bits(int* out) {
  const unsigned a = 0x12345678u * (threadIdx.x / 4 + 1), b = 0x9abcdef1u * (threadIdx.x / 4 + 3);
  int d[2] = {3, 3};
  asm("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a), "r"(b));
  out[threadIdx.x * 2] = d[0], out[threadIdx.x * 2 + 1] = d[1];
}

void test_integers() {
  int* out = managed<int>();
  saturate<<<1, 32>>>(out);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 128; ++i) EXPECT(out[i] == 0x7fffffff);
  bits<<<1, 32>>>(out);
  EXPECT_OK(cudaDeviceSynchronize());
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned a = 0x12345678u * (lane / 4 + 1), b = 0x9abcdef1u * (lane % 4 * 2 + i + 3);
      EXPECT(out[lane * 2 + i] == 3 + 4 * __builtin_popcount(a ^ b));
    }
  }
  cudaFree(out);
}

int main() {
  using Half = __half;
  using Bf16 = __nv_bfloat16;
  using Row = wmma::row_major;
  using Column = wmma::col_major;
  test<Half, float, 16, 16, 16>("f16");
  test<Half, float, 16, 16, 16, true, Column, Row>("f16, a by columns, b by rows");
  test<Half, float, 32, 8, 16, true, Row, Row>("f16, 32 x 8");
  test<Half, Half, 8, 32, 16, true, Column, Column>("f16, sums too");
  test<Bf16, float, 16, 16, 16>("bf16");
  test<Bf16, float, 8, 32, 16, true, Column, Row>("bf16, 8 x 32");
  test<wmma::precision::tf32, float, 16, 16, 8>("tf32");
  test<wmma::precision::tf32, float, 16, 16, 8, true, Column, Row>("tf32, a by columns");
  test<signed char, int, 16, 16, 16>("s8");
  test<signed char, int, 32, 8, 16, true, Column, Row>("s8, 32 x 8");
  test<unsigned char, int, 8, 32, 16, false>("u8");
  test<double, double, 8, 8, 4>("f64");
  test<double, double, 8, 8, 4, true, Column, Row>("f64, a by columns");
  test_integers();
  return finish();
}
