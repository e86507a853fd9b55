// SPDX-License-Identifier: Apache-2.0
// Kernels under keys at which torch.compile, export and opcheck call them with fake tensors.
#include <torch/extension.h>

using torch::Tensor;

Tensor scaled(const Tensor& x, double by) {
  Tensor y = torch::empty_like(x);
  const Tensor from = x.contiguous();
  for (int64_t i = 0; i < x.numel(); i++) y.data_ptr<float>()[i] = from.data_ptr<float>()[i] * by;
  return y;
}
Tensor scaled_meta(const Tensor& x, double by) {
  TORCH_CHECK(x.scalar_type() == torch::kFloat, "scaled takes float32");
  return torch::empty(x.sizes(), x.options());
}

// Made of other ops: torch traces through it.
Tensor centered(const Tensor& x, int64_t dim) {
  const Tensor mean = x.mean(dim, /*keepdim=*/true);
  return (x - mean) / (x.var({dim}, /*unbiased=*/false, /*keepdim=*/true) + 0.1).sqrt();
}

class Cubed : public torch::autograd::Function<Cubed> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    at::AutoDispatchBelowADInplaceOrView below;
    return x * x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * 3 * x * x};
  }
};
Tensor cubed_autograd(const Tensor& x) { return Cubed::apply(x); }
Tensor cubed(const Tensor& x) { return x * x * x; }

// Asks a fake tensor for its memory: an error in words, not a crash.
Tensor reads_memory(const Tensor& x) {
  return torch::full({}, x.data_ptr<float>()[0], x.options());
}

TORCH_LIBRARY(torch_traced, m) {
  m.def("scaled(Tensor x, float by) -> Tensor");
  m.def("centered(Tensor x, int dim) -> Tensor");
  m.def("cubed(Tensor x) -> Tensor");
  m.def("reads_memory(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(torch_traced, CPU, m) {
  m.impl("scaled", &scaled);
  m.impl("cubed", &cubed);
}
TORCH_LIBRARY_IMPL(torch_traced, Meta, m) {
  m.impl("scaled", &scaled_meta);
  m.impl("cubed", &cubed);
}
TORCH_LIBRARY_IMPL(torch_traced, Autograd, m) { m.impl("cubed", &cubed_autograd); }
TORCH_LIBRARY_IMPL(torch_traced, CompositeImplicitAutograd, m) {
  m.impl("centered", &centered);
  m.impl("reads_memory", &reads_memory);
}
