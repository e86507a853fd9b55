// SPDX-License-Identifier: Apache-2.0
// backward(grad_out, q, k, v, out, lse): the gradients of q, k and v, on Hopper. Here are the
// checks and the launches; the kernels are in backward.h.
#include "backward.h"
#include "inputs.h"
#include "report.h"
#include "tensor_map.h"

namespace {

using kiln::Tensor;

void check_results(const Tensor& grad_out, const Tensor& q, const Tensor& out, const Tensor& lse,
                   const kiln::Optional<Tensor>& grad_lse) {
  KILN_CHECK(grad_out.sizes() == q.sizes() && out.sizes() == q.sizes(),
             "grad_out and out must have the sizes of q, ", q.sizes(), ", not ", grad_out.sizes(),
             " and ", out.sizes());
  KILN_CHECK(grad_out.dtype() == q.dtype() && out.dtype() == q.dtype(),
             "grad_out and out must have the dtype of q, ", q.dtype(), ", not ", grad_out.dtype(),
             " and ", out.dtype());
  KILN_CHECK(
      grad_out.device() == q.device() && out.device() == q.device() && lse.device() == q.device(),
      "all tensors must be on one device, ", q.device());
  const auto check_rows = [&](const Tensor& x, const char* name) {
    KILN_CHECK(x.dtype() == kiln::Dtype::f32 && x.ndim() == 3 && x.size(0) == q.size(0) &&
                   x.size(1) == q.size(1) && x.size(2) == q.size(2) && x.is_contiguous() &&
                   x.device() == q.device(),
               name, " must be contiguous f32 [batch, heads, queries] on q's device, not ",
               x.dtype(), " ", x.sizes(), " with strides ", x.strides());
  };
  check_rows(lse, "lse");
  if (grad_lse) check_rows(*grad_lse, "grad_lse");
}

kiln::Tensors<3> backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& out, const Tensor& lse, bool is_causal,
                          kiln::Optional<double> scale, kiln::Optional<Tensor> grad_lse) {
  fa::check_inputs(q, k, v, q.ndim() == 4 && k.ndim() == 4 && q.size(1) != k.size(1));
  check_results(grad_out, q, out, lse, grad_lse);
  const double factor = fa::scale_of(q, scale);
  KILN_CHECK(fa::has_hopper_path(q),
             "the backward kernels need a GPU of compute capability 9.0; elsewhere torch has "
             "_scaled_dot_product_flash_attention_backward");
  if (q.numel() == 0)
    return {kiln::empty_like(q), kiln::zeros(k.sizes(), k.dtype(), k.device()),
            kiln::zeros(v.sizes(), v.dtype(), v.device())};
  KILN_CHECK(q.size(2) < (int64_t{1} << 30) && k.size(2) < (int64_t{1} << 30),
             "too large: ", q.sizes(), " and ", k.sizes());
  Tensor grad_q = kiln::empty_like(q), grad_k = kiln::empty_like(k), grad_v = kiln::empty_like(v);
  const int64_t padded = (q.size(2) + fa::kRowMultiple - 1) / fa::kRowMultiple * fa::kRowMultiple;
  const int64_t rows = q.size(0) * q.size(1) * padded;
  auto row_values = kiln::scratch<float>(2 * rows, q);

  fa::Report report(q);
  fa::BackwardWork work{};
  const auto map = [](const Tensor& x, const char* name) {
    return fa::tensor_map(x, name, fa::kRowsPerWarpgroup);
  };
  work.own[0] = map(q, "q");
  work.own[1] = map(grad_out, "grad_out");
  work.passing[0] = map(k, "k");
  work.passing[1] = map(v, "v");
  work.out = map(out, "out");
  work.gradients[0] = work.gradients[1] = map(grad_q, "the gradient of q");
  work.lse = lse.data<const float>();
  work.grad_lse = grad_lse ? grad_lse->data<const float>() : nullptr;
  work.row_lse = row_values.data();
  work.row_sum = row_values.data() + rows;
  work.queries = static_cast<int>(q.size(2));
  work.keys = static_cast<int>(k.size(2));
  work.padded = static_cast<int>(padded);
  work.heads = fa::Divisor::of(static_cast<uint32_t>(q.size(1)));
  work.heads_per_key = fa::Divisor::of(static_cast<uint32_t>(q.size(1) / k.size(1)));
  work.scale = static_cast<float>(factor);
  work.report = report.words();
  fa::BackwardWork of_keys = work;
  for (int i = 0; i < 2; i++) {
    of_keys.own[i] = work.passing[i];
    of_keys.passing[i] = work.own[i];
  }
  of_keys.gradients[0] = map(grad_k, "the gradient of k");
  of_keys.gradients[1] = map(grad_v, "the gradient of v");
  of_keys.heads = fa::Divisor::of(static_cast<uint32_t>(k.size(1)));

  fa::BackwardPlan plan{q.size(3), q.size(0), q.size(1), k.size(1), is_causal, 0};
  cudaDeviceGetAttribute(&plan.processors, cudaDevAttrMultiProcessorCount,
                         q.is_cuda() ? q.device().index : 0);
  if (q.dtype() == kiln::Dtype::bf16)
    fa::backward_bf16(work, of_keys, plan, kiln::stream(q));
  else
    fa::backward_f16(work, of_keys, plan, kiln::stream(q));
  report.check(q);
  return {grad_q, grad_k, grad_v};
}

}  // namespace

KILN_OP(backward, "grad_out, q, k, v, out, lse, is_causal=False, *, scale=None, grad_lse=None")
    .fake("like(q), like(k), like(v)")
    .doc(
        "The gradients of q, k and v from those of forward's results, on a GPU of compute "
        "capability "
        "9.0. The same bits in each run.");
