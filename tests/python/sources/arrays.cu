// SPDX-License-Identifier: Apache-2.0
// Ops for callers that are not torch: results in memory of the caller, with and without a rule.
#include <kiln/op.h>

using kiln::Tensor;

__global__ void scaled_sum(const float* a, const float* b, float* c, int64_t n, float alpha) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) c[i] = a[i] + alpha * __expf(b[i]);
}

void launch(const Tensor& a, const Tensor& b, Tensor& c, double alpha) {
  const int64_t n = a.numel();
  scaled_sum<<<unsigned((n + 127) / 128), 128, 0, kiln::stream(a)>>>(
      a.data<const float>(), b.data<const float>(), c.data<float>(), n, float(alpha));
}

Tensor mixed(const Tensor& a, const Tensor& b, double alpha) {
  KILN_CHECK(a.numel() == b.numel(), "a and b differ in size");
  Tensor c = kiln::empty_like(a);
  launch(a, b, c, alpha);
  return c;
}
KILN_OP(mixed, "a, b, *, alpha=1.0").fake("like(a)").doc("a + alpha exp(b)");

// The results are allocated in the other order than they are returned.
kiln::Tensors<2> swapped(const Tensor& a, const Tensor& b) {
  Tensor second = mixed(a, b, -1.0);
  Tensor first = mixed(a, b, 1.0);
  return {first, second};
}
KILN_OP(swapped, "swapped(Tensor a, Tensor b) -> (Tensor, Tensor)").fake("like(a), like(b)");

Tensor without_rule(const Tensor& a) { return mixed(a, a, 1.0); }
KILN_OP(without_rule, "a");

void into(Tensor& to, const Tensor& from) { launch(from, from, to, 0.0); }
KILN_OP(into, "to, from_");

Tensor scaled(const Tensor& a, double factor, const Tensor& b) { return mixed(a, b, factor); }
KILN_OP(scaled, "scaled.between(Tensor a, float factor, Tensor b) -> Tensor").fake("like(a)");
Tensor scaled_by(const Tensor& a, kiln::Str how, const Tensor& b) {
  return mixed(a, b, how == "double" ? 2.0 : 1.0);
}
KILN_OP(scaled_by, "scaled.by(Tensor a, str how, Tensor b) -> Tensor").fake("like(a)");

int64_t count(kiln::TensorList tensors, kiln::Span<const int64_t> numbers, bool twice,
              kiln::Str s) {
  int64_t total = int64_t(s.size());
  for (const Tensor& one : tensors) total += one.numel();
  for (int64_t one : numbers) total += one;
  return twice ? 2 * total : total;
}
KILN_OP(count, "tensors, numbers=[1, 2], twice=False, s='abc'");

Tensor untouched(const Tensor& a, const Tensor& b) {
  (void)b;
  return kiln::empty_like(a);
}
KILN_OP(untouched, "a, b").fake("like(a)");
