// SPDX-License-Identifier: Apache-2.0
// A class bound by pybind11, with a tensor among its arguments: what such a source costs.
#include <torch/extension.h>

struct Adder {
  explicit Adder(int64_t start) : sum(start) {}
  int64_t add(int64_t more) { return sum += more; }
  torch::Tensor added(torch::Tensor x) const { return x + sum; }
  int64_t sum;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Adder>(m, "Adder")
      .def(py::init<int64_t>(), py::arg("start") = 0)
      .def("add", &Adder::add)
      .def("added", &Adder::added)
      .def_readwrite("sum", &Adder::sum);
}
