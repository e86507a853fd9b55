// SPDX-License-Identifier: Apache-2.0
// What do the ops accept, and which path do they take?
#pragma once

#include <kiln/op.h>

#include "head_dims.h"

namespace fa {

inline void check_inputs(const kiln::Tensor& q, const kiln::Tensor& k, const kiln::Tensor& v,
                         bool enable_gqa) {
  KILN_CHECK(q.dtype() == kiln::Dtype::bf16 || q.dtype() == kiln::Dtype::f16,
             "q must be bf16 or f16, not ", q.dtype());
  KILN_CHECK(k.dtype() == q.dtype() && v.dtype() == q.dtype(),
             "q, k and v must have one dtype, not ", q.dtype(), ", ", k.dtype(), " and ",
             v.dtype());
  KILN_CHECK(k.device() == q.device() && v.device() == q.device(),
             "q, k and v must be on one device, not ", q.device(), ", ", k.device(), " and ",
             v.device());
  KILN_CHECK(q.ndim() == 4 && k.ndim() == 4 && v.ndim() == 4,
             "q, k and v must be [batch, heads, sequence, head dim], not ", q.sizes(), ", ",
             k.sizes(), " and ", v.sizes());
  KILN_CHECK(k.sizes() == v.sizes(), "k and v must have the same sizes, not ", k.sizes(), " and ",
             v.sizes());
  KILN_CHECK(q.size(0) == k.size(0) && q.size(3) == k.size(3),
             "q and k must agree in batch and head dim: ", q.sizes(), " and ", k.sizes());
  KILN_CHECK(has_head_dim(q.size(3)), "the head dim must be ", kHeadDims, ", not ", q.size(3));
  if (enable_gqa)
    KILN_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0,
               "the heads of q must be a multiple of those of k: ", q.size(1), " and ", k.size(1));
  else
    KILN_CHECK(q.size(1) == k.size(1), "q and k must have as many heads, not ", q.size(1), " and ",
               k.size(1), "; enable_gqa=True lets several heads of q share one of k");
  KILN_CHECK(k.size(2) > 0 || q.numel() == 0, "k and v have no rows");
}

// 1: CPU tensors take the Hopper path on the engine, which has TMA and wgmma too. For tests.
#ifndef FA_HOPPER_ON_ENGINE
#define FA_HOPPER_ON_ENGINE 0
#endif

// TMA and wgmma of the Hopper path exist on compute capability 9.0 alone. The engine runs what the
// CPU has.
inline bool has_hopper_path(const kiln::Tensor& q) {
  if (!q.is_cuda()) return FA_HOPPER_ON_ENGINE;
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, q.device().index);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, q.device().index);
  KILN_CHECK(major >= 8, "needs a GPU of compute capability 8.0 or newer, not ", major, ".", minor);
  return major == 9 && minor == 0;
}

inline double scale_of(const kiln::Tensor& q, kiln::Optional<double> scale) {
  const double factor = scale.value_or(1.0 / __builtin_sqrt(static_cast<double>(q.size(3))));
  KILN_CHECK(factor > 0 && factor < 1e30, "scale must be positive and finite, not ", factor);
  return factor;
}

}  // namespace fa
