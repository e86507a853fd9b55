// SPDX-License-Identifier: Apache-2.0
// Ops of a TORCH_LIBRARY and functions of host tensors, for torch.utils.cpp_extension: nothing in
// it knows of kiln.
#include <torch/extension.h>

#include <vector>

at::Tensor muladd(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes(), "a is ", a.sizes(), ", b is ", b.sizes());
  TORCH_CHECK(a.dtype() == at::kFloat, "a is ", a.dtype());
  TORCH_INTERNAL_ASSERT(a.device().type() == at::DeviceType::CPU);
  at::Tensor x = a.contiguous(), y = b.contiguous(), out = at::empty(x.sizes(), x.options());
  const float *px = x.data_ptr<float>(), *py = y.data_ptr<float>();
  float* po = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); i++) po[i] = px[i] * py[i] + static_cast<float>(c);
  return out;
}
void add_one_(at::Tensor& x) { x.add_(1); }
std::tuple<at::Tensor, at::Tensor> both(const at::Tensor& x, int64_t n) { return {x * n, x + n}; }
at::Tensor pick(at::TensorList list, int64_t i, std::optional<at::Tensor> instead) {
  TORCH_CHECK_INDEX(i < static_cast<int64_t>(list.size()) || instead.has_value(), "no tensor ", i,
                    " of ", list.size());
  return i < static_cast<int64_t>(list.size()) ? list[i].clone() : instead->clone();
}
at::Tensor named(const at::Tensor& x, c10::string_view how, bool twice) {
  at::Tensor out = how == "sin" ? at::sin(x) : how == "neg" ? x.neg() : at::relu(x);
  return twice ? out * 2 : out;
}

TORCH_LIBRARY(torch_ops, m) {
  m.def("muladd(Tensor a, Tensor b, float c=1.0) -> Tensor");
  m.def("add_one_(Tensor(a!) x) -> ()");
  m.def("both(Tensor x, int n) -> (Tensor, Tensor)");
  m.def("pick(Tensor[] list, int i, Tensor? instead=None) -> Tensor");
  m.def("named(Tensor x, str how, bool twice=False) -> Tensor");
}
TORCH_LIBRARY_IMPL(torch_ops, CPU, m) {
  m.impl("muladd", &muladd);
  m.impl("add_one_", &add_one_);
  m.impl("both", &both);
  m.impl("pick", &pick);
  m.impl("named", &named);
}

// What crosses from Python and back, and what accessors say.
float corner(const at::Tensor& x) {
  auto a = x.accessor<float, 2>();
  return a[a.size(0) - 1][a.size(1) - 1];
}
double item_of(const at::Tensor& x) { return x.item<double>(); }
std::vector<std::vector<int64_t>> shapes(const std::vector<at::Tensor>& list) {
  std::vector<std::vector<int64_t>> out;
  for (const at::Tensor& one : list) out.push_back(one.sizes().vec());
  return out;
}
std::string said(const at::Tensor& x) {
  return c10::str(x.sizes(), " ", x.strides(), " ", x.scalar_type(), " ", x.device(), " ",
                  x.is_contiguous(), " ", x.dim());
}
at::Tensor arithmetic(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor z = (x + y) * 2 - x / 3;
  z += 1;
  z = at::where(z > 0, z, -z).to(at::kDouble);
  return at::cat({z.flatten(), z.sum().reshape({1}), z.max().unsqueeze(0),
                  at::linspace(0, 1, 3, z.options())});
}
at::Tensor made(std::vector<int64_t> shape, at::ScalarType type) {
  return at::ones(shape, at::TensorOptions().dtype(type)).mul(3).add(at::zeros(shape, type));
}
// Numbers of both signs in every place where an op takes one.
std::vector<at::Tensor> numbers(const at::Tensor& x) {
  at::Tensor filled = x.clone().fill_(-1), seen = x.clone();
  seen.masked_fill_(x > 2, -7);
  return {at::full({3}, -1, x.options()),
          torch::full(x.numel(), -2, x.options()),
          at::full_like(x, -3),
          at::full({2}, -1.5),
          at::full({2}, -4),
          x.new_full({2}, -5),
          filled,
          seen,
          at::clamp(x, -2, 2),
          at::add(x, x, -2),
          x - -3,
          x * -2,
          x == -1,
          x.ge(-1),
          x.remainder(-3),
          at::arange(-3, 4, 2, x.options()),
          at::scalar_tensor(-6, x.options()),
          at::zeros({2}, x.options()).add_(-9)};
}
int64_t at_index(const at::Tensor& x, int64_t i) { return x[i].item<int64_t>(); }
at::Tensor viewed(const at::Tensor& x) { return x.transpose(0, 1).slice(0, 1).select(1, 0); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("corner", &corner);
  m.def("item_of", &item_of);
  m.def("shapes", &shapes, py::arg("list"));
  m.def("said", &said);
  m.def("arithmetic", &arithmetic, py::arg("x"), py::arg("y"));
  m.def("made", &made);
  m.def("numbers", &numbers);
  m.def("at_index", &at_index);
  m.def("viewed", &viewed);
  m.def(
      "halved",
      [](std::optional<double> x) -> std::optional<double> {
        if (!x) return std::nullopt;
        return *x / 2;
      },
      py::arg("x") = py::none());
  m.def("swapped", [](std::tuple<int64_t, std::string> pair) {
    return std::make_tuple(std::get<1>(pair), std::get<0>(pair));
  });
}
