// SPDX-License-Identifier: Apache-2.0
// forward(q, k, v): attention as torch's scaled_dot_product_attention, with the logarithm of the
// sum of exponentials. Here are the checks and the launches; the kernels are in forward.h (Hopper)
// and portable.h.
#include "forward.h"
#include "portable.h"
#include "report.h"
#include "tensor_map.h"

namespace {

using kiln::Tensor;

void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, bool enable_gqa) {
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
  KILN_CHECK(fa::has_head_dim(q.size(3)), "the head dim must be ", fa::kHeadDims, ", not ",
             q.size(3));
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
bool has_hopper_path(const Tensor& q) {
  if (!q.is_cuda()) return FA_HOPPER_ON_ENGINE;
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, q.device().index);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, q.device().index);
  KILN_CHECK(major >= 8, "needs a GPU of compute capability 8.0 or newer, not ", major, ".", minor);
  return major == 9 && minor == 0;
}

double scale_of(const Tensor& q, kiln::Optional<double> scale) {
  const double factor = scale.value_or(1.0 / __builtin_sqrt(static_cast<double>(q.size(3))));
  KILN_CHECK(factor > 0 && factor < 1e30, "scale must be positive and finite, not ", factor);
  return factor;
}

void run_hopper(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out, Tensor& lse,
                bool is_causal, double scale) {
  int processors = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                         q.is_cuda() ? q.device().index : 0);
  const fa::Plan plan =
      fa::plan_for(q.size(3), is_causal, q.size(0) * q.size(1) * q.size(2), processors);
  const int64_t tiles_per_head = (q.size(2) + plan.m - 1) / plan.m;
  const int64_t tiles = q.size(0) * q.size(1) * tiles_per_head;
  // Tile numbers and rows are 32 bits wide, with room for one more step beyond the end.
  KILN_CHECK(tiles < (int64_t{1} << 30), "too large: ", q.sizes());
  fa::Report report(q);
  fa::Work work{};
  work.query = fa::tensor_map(q, "q", fa::kRowsPerWarpgroup);
  work.key = fa::tensor_map(k, "k", plan.n);
  work.value = fa::tensor_map(v, "v", plan.n);
  work.out = fa::tensor_map(out, "the output", fa::kRowsPerWarpgroup);
  work.lse = lse.data<float>();
  work.queries = static_cast<int>(q.size(2));
  work.keys = static_cast<int>(k.size(2));
  work.heads = fa::Divisor::of(static_cast<uint32_t>(q.size(1)));
  work.heads_per_key = fa::Divisor::of(static_cast<uint32_t>(q.size(1) / k.size(1)));
  work.tiles_per_head = fa::Divisor::of(static_cast<uint32_t>(tiles_per_head));
  work.tiles = static_cast<int>(tiles);
  work.scale = static_cast<float>(scale);
  work.report = report.words();
  const int64_t blocks = tiles < processors ? tiles : processors;
  if (q.dtype() == kiln::Dtype::bf16)
    fa::forward_bf16(work, plan, blocks, kiln::stream(q));
  else
    fa::forward_f16(work, plan, blocks, kiln::stream(q));
  report.check(q);
}

// Rows are copied 16 bytes at a time.
fa::PortableTensor portable_tensor(const Tensor& x, const char* name) {
  KILN_CHECK(x.stride(3) == 1, name, " must have stride 1 in its last dimension, not ",
             x.stride(3));
  KILN_CHECK(reinterpret_cast<uintptr_t>(x.raw()) % 16 == 0, name,
             " must start at a multiple of 16 bytes");
  for (int i = 0; i < 3; i++)
    KILN_CHECK(x.size(i) == 1 || x.stride(i) % 8 == 0, name, " has strides ", x.strides(),
               "; each must be a multiple of 8 elements (16 bytes)");
  KILN_CHECK(x.size(2) == 1 || x.stride(2) < (int64_t{1} << 24), name, " has rows ", x.stride(2),
             " elements apart; they must be less than 2^24");
  return {const_cast<void*>(x.raw()), x.stride(0), x.stride(1), x.stride(2)};
}

void run_portable(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out, Tensor& lse,
                  bool is_causal, double scale) {
  fa::PortableWork work{};
  work.query = portable_tensor(q, "q");
  work.key = portable_tensor(k, "k");
  work.value = portable_tensor(v, "v");
  work.out = portable_tensor(out, "the output");
  work.lse = lse.data<float>();
  work.queries = static_cast<int>(q.size(2));
  work.keys = static_cast<int>(k.size(2));
  work.heads = fa::Divisor::of(static_cast<uint32_t>(q.size(1)));
  work.heads_per_key = fa::Divisor::of(static_cast<uint32_t>(q.size(1) / k.size(1)));
  work.scale_log2 = static_cast<float>(scale * 1.44269504088896341);
  if (q.dtype() == kiln::Dtype::bf16)
    fa::portable_bf16(work, q.size(3), is_causal, q.size(0), kiln::stream(q));
  else
    fa::portable_f16(work, q.size(3), is_causal, q.size(0), kiln::stream(q));
}

kiln::Tensors<2> run(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal,
                     kiln::Optional<double> scale, bool enable_gqa, bool portable) {
  check_inputs(q, k, v, enable_gqa);
  const double factor = scale_of(q, scale);
  const bool hopper = has_hopper_path(q) && !portable;
  Tensor out = kiln::empty_like(q);
  Tensor lse = kiln::empty({q.size(0), q.size(1), q.size(2)}, kiln::Dtype::f32, q.device());
  if (q.numel() == 0) return {out, lse};
  KILN_CHECK(q.size(2) < (int64_t{1} << 30) && k.size(2) < (int64_t{1} << 30),
             "too large: ", q.sizes(), " and ", k.sizes());
  if (hopper)
    run_hopper(q, k, v, out, lse, is_causal, factor);
  else
    run_portable(q, k, v, out, lse, is_causal, factor);
  return {out, lse};
}

kiln::Tensors<2> forward(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal,
                         kiln::Optional<double> scale, bool enable_gqa) {
  return run(q, k, v, is_causal, scale, enable_gqa, false);
}

kiln::Tensors<2> forward_portable(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal,
                                  kiln::Optional<double> scale, bool enable_gqa) {
  return run(q, k, v, is_causal, scale, enable_gqa, true);
}

}  // namespace

KILN_OP(forward, "q, k, v, is_causal=False, *, scale=None, enable_gqa=False")
    .fake("like(q), f32[q.shape[0], q.shape[1], q.shape[2]]")
    .doc(
        "Attention of [batch, heads, sequence, head dim], and the logarithm of the sum of "
        "exponentials of each row.");
KILN_OP(forward_portable, "q, k, v, is_causal=False, *, scale=None, enable_gqa=False")
    .fake("like(q), f32[q.shape[0], q.shape[1], q.shape[2]]")
    .doc("The same by the path that every GPU from compute capability 8.0 on has.");
