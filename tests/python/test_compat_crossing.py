# SPDX-License-Identifier: Apache-2.0
"""Do ops whose types torch's C shim lacks reach the dispatcher: Scalar, Dict, Generator, tuples in
lists? What is c10::Dict? And do names of the headers stay out of a source's way? The expected
values are torch's: with KILN_COMPAT=never the same tests run on torch's own headers."""

from __future__ import annotations

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/core/Dict.h>

using Names = c10::Dict<std::string, torch::Tensor>;
using Pair = std::tuple<std::string, int64_t>;

torch::Tensor scaled(const torch::Tensor& x, const at::Scalar& by) { return x * by; }
std::tuple<Names, int64_t> doubled(const Names& given,
                                   const c10::Dict<int64_t, std::vector<int64_t>>& lists,
                                   const std::vector<Pair>& pairs) {
  Names out;
  for (const auto& one : given) out.insert(one.key() + "2", one.value() * 2);
  int64_t sum = 0;
  for (const auto& one : lists)
    for (int64_t i : one.value()) sum += one.key() * i;
  for (const auto& one : pairs) sum += std::get<1>(one);
  return {out, sum};
}
torch::Tensor shifted(const torch::Tensor& x, const at::Scalar& by, int64_t times) {
  TORCH_CHECK(times >= 0, "times is negative");
  return x + by.toDouble() * times;
}
TORCH_LIBRARY(KILN_CROSSING, m) {
  m.def("scaled", &scaled);
  m.def("doubled", &doubled);
  m.def("shifted(Tensor x, Scalar by=1.5, *, int times=2) -> Tensor", &shifted);
}

std::string entries(const c10::Dict<std::string, int64_t>& dict) {
  std::string text;
  for (const auto& one : dict) text += one.key() + "=" + std::to_string(one.value()) + ";";
  return text;
}
std::vector<std::string> dict_of_torch() {
  c10::Dict<std::string, int64_t> a;
  a.insert("z", 1);
  a.insert("y", 2);
  const bool again = a.insert("z", 7).second;
  a.insert_or_assign("y", 5);
  a.insert("x", 3);
  auto shared = a;
  auto own = a.copy();
  a.erase("z");
  a.find("x")->setValue(9);
  std::string lacking;
  try {
    a.at("none");
  } catch (const std::out_of_range& e) {
    lacking = e.what();
  }
  return {entries(a), entries(own), std::to_string(again), std::to_string(shared.is(a)),
          std::to_string(own == a), std::to_string(a.contains("z")), lacking,
          std::to_string(a.size())};
}
std::vector<int64_t> kinds(torch::Tensor x) { return {x.is_meta(), x.is_quantized()}; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("dict_of_torch", &dict_of_torch);
  m.def("kinds", &kinds);
}
"""

# The names of a source beside those of the headers: nvcc takes one in an inline namespace
# for the source's own.
KERNELS = r"""
#include <ATen/ATen.h>
#include <torch/extension.h>
using namespace at;
namespace detail {
template <class T> T twice(T x) { return x + x; }
template <class T> struct Kept { using type = T; };
}
template <class T> using kept = typename detail::Kept<T>::type;
namespace impl { inline int threads() { return 4; } }
// With the rest of the ops within reach, C's functions keep one meaning.
int64_t kinds(const torch::Tensor& x) { return std::get<0>(torch::_unique(x)).numel(); }
double signs(double a) { return copysign(2.0, a) + acosh(1.0) + ldexp(a, 1) + lgamma(1.0); }
__global__ void add(float* x, float by) { x[threadIdx.x] += by; }
torch::Tensor added(torch::Tensor x) {
  add<<<1, ::impl::threads()>>>(x.data_ptr<float>(), detail::twice<kept<float>>(1.5f));
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("added", &added);
  m.def("kinds", &kinds);
  m.def("signs", &signs);
}
"""

# CUDA's own operators of __half are there too, in a C++ source.
HALVES = r"""
#include <cuda_fp16.h>
#include <torch/extension.h>
bool larger(double a, double b) {
  return c10::Half(static_cast<float>(a)) > c10::Half(static_cast<float>(b));
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("larger", &larger); }
"""


@pytest.fixture(scope="session")
def crossing(command, tmp_path_factory):
    path = tmp_path_factory.mktemp("crossing") / "kiln_crossing.cpp"
    path.write_text(SOURCE.replace("KILN_CROSSING", "kiln_crossing"))
    return kiln.load("kiln_crossing_module", [str(path)])


def test_an_op_with_a_scalar(crossing):
    x = torch.arange(4)
    assert torch.equal(torch.ops.kiln_crossing.scaled(x, 3), x * 3)
    assert torch.equal(torch.ops.kiln_crossing.scaled(x, 0.5), x * 0.5)


def test_an_op_with_dicts_and_tuples(crossing):
    x = torch.ones(2)
    given = {"b": x, "a": x + 1}
    out, total = torch.ops.kiln_crossing.doubled(given, {2: [1, 2], 3: [4]}, [("n", 5), ("m", 1)])
    assert list(out) == ["b2", "a2"] and torch.equal(out["a2"], 2 * (x + 1)) and total == 24


def test_an_op_with_a_dict_in_torchscript(crossing):
    @torch.jit.script
    def scripted(x: torch.Tensor) -> int:
        out, total = torch.ops.kiln_crossing.doubled({"a": x}, {1: [1, 2]}, [("n", 5)])
        return total + len(out)

    assert scripted(torch.ones(2)) == 9


def test_defaults_and_keywords(crossing):
    x, op = torch.zeros(2), torch.ops.kiln_crossing.shifted
    assert op(x).tolist() == [3, 3] and op(x, 2).tolist() == [4, 4]
    assert op(x, 2, times=5).tolist() == [10, 10] and op(x, times=1).tolist() == [1.5, 1.5]
    with pytest.raises(RuntimeError, match="times is negative"):
        op(x, times=-1)


def test_dict_is_torchs(crossing):
    assert crossing.dict_of_torch() == [
        "y=5;x=9;", "z=1;y=5;x=3;", "0", "1", "0", "0",
        "Argument passed to at() was not in the map.", "2",
    ]  # fmt: skip


def test_kinds_of_tensors(crossing):
    x = torch.ones(2)
    assert crossing.kinds(x) == [False, False]
    assert crossing.kinds(x.to("meta")) == [True, False]
    assert crossing.kinds(torch.quantize_per_tensor(x, 1.0, 0, torch.qint8)) == [False, True]


def test_names_of_a_source(command, tmp_path, kiln_device):
    (tmp_path / "kiln_names.cu").write_text(KERNELS)
    x = torch.arange(4.0, device=kiln_device)
    ext = kiln.load(tmp_path / "kiln_names.cu")
    assert ext.added(x).tolist() == [3, 4, 5, 6]
    assert ext.kinds(torch.tensor([1, 1, 2])) == 2 and ext.signs(-3.0) == -8.0


def test_halves_compare_beside_cudas(command, tmp_path):
    (tmp_path / "kiln_halves.cpp").write_text(HALVES)
    ext = kiln.load(tmp_path / "kiln_halves.cpp")
    assert ext.larger(2, 1) and not ext.larger(1, 2)


def test_a_count_that_is_not_known_is_not_told(command, tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_COMPAT", "require")
    source = tmp_path / "kiln_counts.cpp"
    source.write_text(
        "#include <torch/extension.h>\n"
        "int64_t count(torch::Tensor x) { return x.use_count(); }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("count", &count); }\n'
    )
    with pytest.raises(kiln.BuildError, match="lack use_count"):
        kiln.load(source)
