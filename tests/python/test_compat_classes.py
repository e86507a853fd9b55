# SPDX-License-Identifier: Apache-2.0
"""Does a source that binds classes and Python objects build with the pybind11 that torch ships, on
top of the compat headers, and behave as with torch's?"""

from __future__ import annotations

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)

SOURCE = r"""
#include <torch/extension.h>
#include <map>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>

enum class Mode { Sum, Product };

class Accumulator {
 public:
  Accumulator(torch::Tensor start, Mode mode) : state_(start.clone()), mode_(mode) {}
  Accumulator& add(const torch::Tensor& x) {
    TORCH_CHECK_VALUE(x.sizes() == state_.sizes(), "sizes differ: ", x.sizes());
    state_ = mode_ == Mode::Sum ? state_ + x : state_ * x;
    count++;
    return *this;
  }
  torch::Tensor state() const { return state_; }
  int64_t count = 0;

 private:
  torch::Tensor state_;
  Mode mode_;
};

torch::Tensor from_dict(const py::dict& values, const std::string& key) {
  if (!values.contains(key)) throw py::key_error(key);
  return values[key.c_str()].cast<torch::Tensor>();
}
py::tuple shape_and_type(const torch::Tensor& x) {
  py::list sizes;
  for (int64_t size : x.sizes()) sizes.append(size);
  return py::make_tuple(sizes, x.scalar_type(), x.device());
}
std::map<std::string, double> sums(const std::map<std::string, torch::Tensor>& all) {
  std::map<std::string, double> found;
  for (const auto& [name, tensor] : all) found[name] = tensor.sum().item<double>();
  return found;
}
torch::Tensor applied(const std::function<torch::Tensor(torch::Tensor)>& f, torch::Tensor x) {
  return f(x) + 1;
}
double total(py::array_t<double> values) {
  double sum = 0;
  for (py::ssize_t i = 0; i < values.size(); i++) sum += values.at(i);
  return sum;
}
torch::Tensor filled(std::vector<int64_t> sizes, py::object value,
                     c10::optional<at::ScalarType> type) {
  auto options = torch::TensorOptions().dtype(type.value_or(torch::kFloat));
  return torch::full(sizes, value.cast<double>(), options);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "classes";
  py::enum_<Mode>(m, "Mode")
      .value("Sum", Mode::Sum)
      .value("Product", Mode::Product)
      .export_values();
  py::class_<Accumulator>(m, "Accumulator", "adds up")
      .def(py::init<torch::Tensor, Mode>(), py::arg("start"), py::arg("mode") = Mode::Sum)
      .def("add", &Accumulator::add, py::return_value_policy::reference_internal)
      .def_property_readonly("state", &Accumulator::state)
      .def_readwrite("count", &Accumulator::count)
      .def("__len__", [](const Accumulator& a) { return a.count; });
  m.def("from_dict", &from_dict);
  m.def("shape_and_type", &shape_and_type);
  m.def("sums", &sums);
  m.def("applied", &applied);
  m.def("total", &total);
  m.def("filled", &filled, py::arg("sizes"), py::arg("value") = 1.5, py::arg("type") = py::none());
  m.def("same", [](torch::IntArrayRef sizes, std::vector<torch::Tensor> all) {
    return all.at(0).sizes() == sizes;
  }, py::call_guard<py::gil_scoped_release>());
  auto inner = m.def_submodule("inner", "more");
  inner.def("fail", [] { throw std::out_of_range("far out"); });
}
"""


@pytest.fixture(scope="module")
def classes(command, tmp_path_factory):
    path = tmp_path_factory.mktemp("classes") / "classes.cpp"
    path.write_text(SOURCE)
    return kiln.load("classes_ext", [path])


def test_a_class_keeps_its_state(classes):
    sums = classes.Accumulator(torch.ones(3))
    assert sums.add(torch.full((3,), 2.0)).add(torch.ones(3)) is sums
    assert sums.state.tolist() == [4.0, 4.0, 4.0] and sums.count == 2 and len(sums) == 2
    products = classes.Accumulator(start=torch.full((2,), 3.0), mode=classes.Mode.Product)
    assert products.add(torch.full((2,), 2.0)).state.tolist() == [6.0, 6.0]
    sums.count = 9
    assert len(sums) == 9 and classes.Sum == classes.Mode.Sum


def test_errors_have_their_types(classes):
    with pytest.raises(ValueError, match=r"sizes differ: \[2\]"):
        classes.Accumulator(torch.ones(3)).add(torch.ones(2))
    with pytest.raises(KeyError):
        classes.from_dict({}, "x")
    with pytest.raises(IndexError, match="far out"):
        classes.inner.fail()
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        classes.from_dict(3, "x")


def test_python_objects(classes):
    x = torch.arange(6.0).reshape(2, 3)
    assert classes.from_dict({"x": x}, "x") is x or torch.equal(classes.from_dict({"x": x}, "x"), x)
    assert classes.shape_and_type(x.double()) == ([2, 3], torch.float64, torch.device("cpu"))
    assert classes.sums({"a": x, "b": x + 1}) == {"a": 15.0, "b": 21.0}
    assert torch.equal(classes.applied(lambda t: t * 2, x), x * 2 + 1)
    assert classes.total([1.0, 2.5]) == 3.5
    assert torch.equal(classes.filled([2]), torch.full((2,), 1.5))
    assert classes.filled([1], 2, torch.int64).dtype == torch.int64
    assert classes.same([2, 3], [x])


@pytest.mark.long
def test_a_type_that_only_pybind11_converts(command, tmp_path):
    """Nothing in the text says so: the first attempt fails, and the second has pybind11."""
    path = tmp_path / "maps.cpp"
    path.write_text(
        """#include <torch/extension.h>
#include <map>
std::map<std::string, int> counted(const std::string& text) {
  std::map<std::string, int> found;
  for (char c : text) found[std::string(1, c)]++;
  return found;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("counted", &counted); }
"""
    )
    assert kiln.load("maps_ext", [path]).counted("aba") == {"a": 2, "b": 1}


def test_an_op_that_few_sources_use(command, tmp_path):
    """Its declaration comes with the second attempt, too."""
    path = tmp_path / "ops.cpp"
    path.write_text(
        """#include <torch/extension.h>
at::Tensor f(at::Tensor x) { return torch::linalg_svdvals(x.clip(-1.0, 1.0).fliplr()); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }
"""
    )
    x = torch.arange(6.0).reshape(2, 3) - 2
    expected = torch.linalg.svdvals(x.clip(-1, 1).fliplr())
    assert torch.allclose(kiln.load("few_ext", [path]).f(x), expected)
