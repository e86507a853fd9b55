// SPDX-License-Identifier: Apache-2.0
#include <torch/extension.h>

torch::Tensor add_cuda(torch::Tensor a, torch::Tensor b, double alpha);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("add", &add_cuda, "a + alpha * b (CUDA)", py::arg("a"), py::arg("b"),
        py::arg("alpha") = 1.0);
}
