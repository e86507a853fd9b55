// SPDX-License-Identifier: Apache-2.0
// An op whose variants go wrong in every way that tuning must survive, by -D MODE.
#include <kiln/op.h>

#include <cstdlib>

#ifndef BLOCK
#define BLOCK 64
#endif
#define RIGHT 0
#define WRONG 1
#define FAULT 2
#define HANG 3
#define ABORT 4
#define SPILL 5
#define BROKEN 6
#define LARGE 7
#ifndef MODE
#define MODE RIGHT
#endif
#if MODE == BROKEN
#error "this variant does not compile"
#endif

#if MODE == SPILL
__global__ void __launch_bounds__(1024, 2)
#else
__global__ void __launch_bounds__(BLOCK)
#endif
    shift_kernel(const float* x, float* out, int64_t n, float by) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
#if MODE == SPILL
  float held[64];
  for (int k = 0; k < 64; k++) held[k] = x[(i + k * 7) % n];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 64; k++) sum += held[k] * held[63 - k];
  if (sum == 12345.0f) by = sum;
#endif
  if (i >= n) return;
#if MODE == WRONG
  by += 1;
#elif MODE == HANG
  while (*static_cast<const volatile float*>(x) < 1e30f) {
  }
#elif MODE == FAULT
  out = reinterpret_cast<float*>(16);
#endif
  out[i] = x[i] + by;
}

kiln::Tensor shift(const kiln::Tensor& x, double by) {
#if MODE == ABORT
  abort();
#endif
  kiln::Tensor out = kiln::empty_like(x);
  const int64_t n = x.numel();
  shift_kernel<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, kiln::stream(x)>>>(
      x.data<const float>(), out.data<float>(), n, static_cast<float>(by));
  return out;
}

KILN_OP(shift, "x, by").fake("like(x)");
