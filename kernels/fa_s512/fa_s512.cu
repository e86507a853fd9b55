// SPDX-License-Identifier: Apache-2.0
// forward(q, k, v): attention as torch's scaled_dot_product_attention, with the logarithm of the
// sum of exponentials. Here are the checks and the launches; the kernels are in forward.h (Hopper)
// and portable.h.
#include "forward.h"
#include "inputs.h"
#include "portable.h"
#include "report.h"
#include "tensor_map.h"

namespace {

using kiln::Tensor;

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
  work.order = fa::Order::of(q.size(0) * q.size(1), tiles_per_head, k.size(2) * k.size(3) * 4,
                             processors, is_causal);
  work.scale = static_cast<float>(scale);
  work.report = report.words();
  const int64_t blocks = work.order.count < processors ? work.order.count : processors;
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
  fa::check_inputs(q, k, v, enable_gqa);
  const double factor = fa::scale_of(q, scale);
  const bool hopper = fa::has_hopper_path(q) && !portable;
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
