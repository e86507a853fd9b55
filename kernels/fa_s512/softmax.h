// SPDX-License-Identifier: Apache-2.0
// What does a thread keep of the softmax of its two rows, and what does a step do to it? The online
// softmax: the maximum so far and the sum so far, in units of 2^x so that an element costs one FFMA
// and one ex2.
#pragma once

#include <stdint.h>

namespace fa {

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr float kMinusInfinity = -__builtin_huge_valf();

// Of four neighbouring lanes, which together hold a row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Row 0 is lane / 4 of the warp's rows, row 1 is 8 further down: scores[4i + 2 r + {0, 1}].
struct Softmax {
  float max[2];  // of the unscaled scores
  float sum[2];  // of this thread's columns only
  float scale_log2;

  // Scores become weights relative to the maximum so far; returns in `decay` what earlier weights
  // must be multiplied by.
  template <bool kFirst, int N>
  __device__ __forceinline__ void step(float (&scores)[N], float (&decay)[2]) {
    float now[2];
#pragma unroll
    for (int r = 0; r < 2; r++) now[r] = kFirst ? scores[2 * r] : max[r];
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      now[0] = fmaxf(now[0], fmaxf(scores[i], scores[i + 1]));
      now[1] = fmaxf(now[1], fmaxf(scores[i + 2], scores[i + 3]));
    }
    float offset[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      now[r] = quad_max(now[r]);
      // A row all masked so far: its weights are 2^(-inf - 0) = 0, not 2^(-inf + inf).
      offset[r] = now[r] == kMinusInfinity ? 0.0f : now[r] * scale_log2;
      if constexpr (kFirst) {
        decay[r] = 1.0f;
      } else {
        decay[r] = exp2_approx(max[r] * scale_log2 - offset[r]);
        sum[r] *= decay[r];
      }
      max[r] = now[r];
    }
    float added[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < N; i += 4) {
#pragma unroll
      for (int r = 0; r < 2; r++) {
        scores[i + 2 * r] = exp2_approx(__fmaf_rn(scores[i + 2 * r], scale_log2, -offset[r]));
        scores[i + 2 * r + 1] =
            exp2_approx(__fmaf_rn(scores[i + 2 * r + 1], scale_log2, -offset[r]));
        added[r] += scores[i + 2 * r] + scores[i + 2 * r + 1];
      }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) sum[r] = kFirst ? added[r] : sum[r] + added[r];
  }

  // Keeps the exponentials ahead of a wait for wgmma that follows. ptxas moves the wait up to right
  // behind the maximum, since no register depends on it, and then nothing runs under the product;
  // it does not move it over a store. A sum of exponentials is never negative, so nothing is
  // stored. (A trap in place of the store: spills and serialised wgmma.)
  __device__ __forceinline__ void finish_before_wait() const {
    asm volatile(
        "{\n"
        ".reg .pred negative;\n"
        "setp.lt.f32 negative, %0, 0f00000000;\n"
        "@negative st.volatile.shared.u32 [%1], 0;\n"
        "}" ::"f"(sum[0] + sum[1]),
        "r"(0)
        : "memory");
  }

  // After the last step: what the output must be multiplied by, and the logarithm of the sum of
  // exponentials.
  __device__ __forceinline__ void finish(float (&factor)[2], float (&lse)[2]) const {
    constexpr float kLn2 = 0.693147180559945309f;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const float total = quad_sum(sum[r]);
      factor[r] = total == 0.0f ? 0.0f : reciprocal_approx(total);
      lse[r] = total == 0.0f ? kMinusInfinity : (max[r] * scale_log2 + log2_approx(total)) * kLn2;
    }
  }
};

// Scores at or beyond a row's limit become -inf. `column` is the thread's first column, `limit`
// counts the keys a row sees.
template <int N>
__device__ __forceinline__ void mask_scores(float (&scores)[N], int column, const int (&limit)[2]) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (column + 2 * i + e >= limit[r]) scores[i + 2 * r + e] = kMinusInfinity;
    }
  }
}

template <int N>
__device__ __forceinline__ void scale_rows(float (&out)[N], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      out[i + 2 * r] *= factor[r];
      out[i + 2 * r + 1] *= factor[r];
    }
  }
}

}  // namespace fa
