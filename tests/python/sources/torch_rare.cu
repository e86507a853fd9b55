// SPDX-License-Identifier: Apache-2.0
// A source for torch.utils.cpp_extension that uses what few do: autograd functions, named arguments
// in checks, elements by their number, lists and values of any kind, torch's settings. Nothing in
// it knows of kiln.
#include <ATen/cuda/CUDAContext.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/extension.h>
#include <torch/headeronly/util/Exception.h>

#include <ATen/cuda/detail/IndexUtils.cuh>
#include <ATen/cuda/detail/TensorInfo.cuh>

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

__global__ void scaled_kernel(at::cuda::detail::TensorInfo<const float, int> x, float* out,
                              float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = x.data[at::cuda::detail::IndexToOffset<const float, int, -1>::get(i, x)] * factor;
}

at::Tensor scaled(const at::Tensor& x, double factor) {
  const int n = static_cast<int>(x.numel());
  at::Tensor out = at::empty(x.sizes(), x.options());
  if (n)
    scaled_kernel<<<(n + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        at::cuda::detail::getTensorInfo<const float, int>(x), out.data_ptr<float>(),
        static_cast<float>(factor), n);
  return out;
}

// y = factor * x * weight; a kernel in both directions.
class Scaled : public torch::autograd::Function<Scaled> {
 public:
  static variable_list forward(AutogradContext* ctx, Variable x, double factor,
                               std::optional<Variable> weight) {
    TORCH_CHECK_VALUE(factor != 0, "a factor of 0 has no use");
    ctx->saved_data["factor"] = factor;
    ctx->saved_data["shape"] = x.sizes();
    ctx->saved_data["name"] = "scaled";
    ctx->saved_data["weighted"] = weight.has_value();
    ctx->save_for_backward({x, weight.value_or(torch::ones_like(x))});
    at::Tensor count = torch::full({1}, x.numel(), at::kLong);
    ctx->mark_non_differentiable({count});
    at::Tensor y = scaled(x, factor);
    return {weight ? y * *weight : y, count};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    variable_list saved = ctx->get_saved_variables();
    const double factor = ctx->saved_data["factor"].toDouble();
    const c10::List<int64_t> shape = ctx->saved_data["shape"].toIntList();
    TORCH_CHECK(ctx->saved_data["name"].toStringRef() == "scaled" &&
                shape.size() == size_t(saved[0].dim()));
    at::Tensor gradient = scaled(gradients[0].contiguous(), factor);
    const bool weighted = ctx->saved_data["weighted"].toBool() && ctx->needs_input_grad(1);
    at::Tensor of_weight = weighted ? gradient * saved[0] : at::Tensor();
    return {gradient * saved[1], Variable(), of_weight};
  }
};

class Doubled : public torch::autograd::Function<Doubled> {
 public:
  static at::Tensor forward(AutogradContext* ctx, at::Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * 2, Variable(),
            gradients[0]};  // more than there are arguments, and not all undefined
  }
};

std::tuple<at::Tensor, at::Tensor> scale(at::Tensor x, double factor,
                                         std::optional<at::Tensor> weight) {
  auto both = Scaled::apply(x, factor, weight);
  return {both[0], both[1]};
}
at::Tensor double_wrongly(at::Tensor x) { return Doubled::apply(x); }

void bump(const at::Tensor& x) { torch::autograd::increment_version(x); }

void check(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  at::TensorArg first{a, "a", 1}, second{b, "b", 0};
  at::CheckedFrom from = "check";
  if (what == "dim") at::checkDim(from, first, 2);
  if (what == "range") at::checkDimRange(from, first, 2, 4);
  if (what == "same dim") at::checkSameDim(from, first, second);
  if (what == "contiguous") at::checkAllContiguous(from, {first, second});
  if (what == "size") at::checkSize(from, first, {2, 3});
  if (what == "size at") at::checkSize(from, first, 1, 3);
  if (what == "same size") at::checkSameSize(from, first, second);
  if (what == "numel") at::checkNumel(from, first, 6);
  if (what == "same numel") at::checkAllSameNumel(from, {first, second});
  if (what == "type") at::checkScalarType(from, first, at::kLong);
  if (what == "types") at::checkScalarTypes(from, first, {at::kLong, at::kInt});
  if (what == "same type") at::checkAllSameType(from, {first, second});
  if (what == "GPU") at::checkAllSameGPU(from, {first, second});
  STD_TORCH_CHECK(what != "plain", "not ", 1, " of them");
}

int64_t collapsed(at::Tensor x, int kept) {
  auto info = at::cuda::detail::getTensorInfo<float, int>(x);
  const int now = info.collapseDims(kept);
  return info.dims * 10 + now;
}

bool deterministic() { return at::globalContext().deterministicAlgorithms(); }
void alert() { at::globalContext().alertNotDeterministic("alert"); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale", &scale, py::arg("x"), py::arg("factor"), py::arg("weight") = py::none());
  m.def("double_wrongly", &double_wrongly);
  m.def("bump", &bump);
  m.def("check", &check);
  m.def("collapsed", &collapsed);
  m.def("deterministic", &deterministic);
  m.def("alert", &alert);
}
