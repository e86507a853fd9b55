# SPDX-License-Identifier: Apache-2.0
"""Do further families of torch's C++ API behave as torch's? Memory that a deleter frees, storages,
names of dtypes, torch::nn::functional, inner ops, checks in glog's manner, names of the standard
library that no header of the source brings. The expected values are torch's own."""

from __future__ import annotations

import os
import subprocess
import sys

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)

SOURCE = r"""
#include <ATen/cuda/CUDABlas.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>
#include <torch/nn/functional.h>

int freed = 0;
torch::Tensor owned(int64_t n) {
  auto* data = new float[n];
  std::iota(data, data + n, 1.f);
  return torch::from_blob(data, {n}, [](void* p) { ++freed; delete[] static_cast<float*>(p); },
                          torch::kFloat);
}
torch::Tensor owned_strided(int64_t n) {
  auto* data = static_cast<float*>(malloc(n * n * sizeof(float)));
  for (int64_t i = 0; i < n * n; i++) data[i] = powf(static_cast<float>(i), 2.f);
  return at::from_blob(data, {n, n}, {1, n}, [](void* p) { ++freed; free(p); },
                       at::TensorOptions().dtype(at::kFloat));
}
int64_t count_freed() { return freed; }

std::vector<int64_t> memory(torch::Tensor x) {
  const auto storage = x.storage();
  const bool begins = static_cast<char*>(x.data_ptr()) ==
      static_cast<const char*>(storage.data()) + x.storage_offset() * x.element_size();
  return {static_cast<int64_t>(storage.nbytes()), begins, x.storage().data_ptr().get() != nullptr,
          x.storage().is_alias_of(x.view(-1).storage())};
}
std::vector<std::string> names() {
  return {c10::toString(torch::kFloat8_e8m0fnu), c10::toString(at::kFloat4_e2m1fn_x2),
          c10::toString(c10::kQUInt4x2), c10::toString(torch::kUInt7)};
}
torch::Tensor like(torch::Tensor x, torch::Tensor y) { return x.to(y.device(), y.dtype()); }
torch::Tensor padded(torch::Tensor x) {
  namespace F = torch::nn::functional;
  auto wide = F::pad(x, F::PadFuncOptions({1, 2}).value(3));
  return F::softmax(F::pad(wide, F::PadFuncOptions({1, 1}).mode(torch::kReflect)), 1);
}
torch::Tensor normalized(torch::Tensor x) {
  namespace F = torch::nn::functional;
  return F::normalize(x, F::NormalizeFuncOptions().p(2).dim(1));
}
torch::Tensor inner_ops(torch::Tensor x) {
  auto found = torch::_unique(at::_cast_Long(x));
  auto moved = std::get<0>(found).__lshift__(2).__rshift__(1);
  return at::_foreach_add({moved}, 1)[0];
}
int64_t checked(int64_t n) {
  CHECK(n > 0) << "n is " << n;
  LOG_IF(INFO, n > 5) << "large";
  return std::max({n, int64_t(2), int64_t(3)});
}
double mixed(std::vector<double> values) {
  std::multimap<int, double> sorted;
  for (double v : values) sorted.emplace(static_cast<int>(lround(v)), v);
  return hypot(sorted.begin()->second, std::numeric_limits<float>::max() > 0 ? 4. : 0.);
}
int64_t guarded(torch::Tensor x) {
  c10::cuda::CUDAGuard guard(x.device());
  return x.numel();
}
int64_t guarded_maybe(torch::Tensor x) {
  at::cuda::OptionalCUDAGuard guard(device_of(x));
  return x.numel();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("owned", &owned);
  m.def("owned_strided", &owned_strided);
  m.def("count_freed", &count_freed);
  m.def("memory", &memory);
  m.def("names", &names);
  m.def("like", &like);
  m.def("padded", &padded);
  m.def("normalized", &normalized);
  m.def("inner_ops", &inner_ops);
  m.def("checked", &checked);
  m.def("mixed", &mixed);
  m.def("guarded", &guarded);
  m.def("guarded_maybe", &guarded_maybe);
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("more") / "more_ext.cpp"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def more(command, source, monkeypatch_module):
    monkeypatch_module.setenv("KILN_COMPAT", "require")
    return kiln.load("more_ext", [source])


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def test_a_deleter_frees_the_memory(more):
    before = more.count_freed()
    x = more.owned(5)
    view = x[2:]
    del x
    assert more.count_freed() == before
    assert view.tolist() == [3.0, 4.0, 5.0]
    del view
    assert more.count_freed() == before + 1
    y = more.owned_strided(3)
    assert y.stride() == (1, 3) and y[2, 1].item() == 25.0
    del y
    assert more.count_freed() == before + 2


def test_no_reference_stays(more):
    """What a call took, gave back, or handed to an op of torch goes when its last owner goes."""
    before = more.count_freed()
    x = more.owned(6).view(2, 3)
    result = more.normalized(more.like(x, x))
    assert more.memory(x)[0] == 24
    del x
    assert more.count_freed() == before + 1
    assert result.shape == (2, 3)


def test_storages(more):
    x = torch.arange(12, dtype=torch.float64)[4:]
    assert more.memory(x) == [x.untyped_storage().nbytes(), 1, 1, 1]


def test_names_of_dtypes(more):
    assert more.names() == ["Float8_e8m0fnu", "Float4_e2m1fn_x2", "QUInt4x2", "UInt7"]
    assert more.like(torch.ones(2), torch.ones(2, dtype=torch.int16)).dtype == torch.int16


def test_functional(more):
    x = torch.randn(3, 4)
    wide = torch.nn.functional.pad(x, (1, 2), value=3.0)
    expected = torch.softmax(torch.nn.functional.pad(wide, (1, 1), mode="reflect"), 1)
    assert torch.equal(more.padded(x), expected)
    torch.testing.assert_close(more.normalized(x), torch.nn.functional.normalize(x))


def test_inner_ops(more):
    assert more.inner_ops(torch.tensor([2.7, 1.2, 2.1])).tolist() == [3, 5]


def test_checks(more):
    assert more.checked(7) == 7
    with pytest.raises(RuntimeError, match=r"Check failed: n > 0 n is -1"):
        more.checked(-1)


def test_names_of_the_standard_library(more):
    assert more.mixed([9.0, 3.0, 5.0]) == 5.0


@pytest.mark.parametrize("function", ["guarded", "guarded_maybe"])
def test_a_guard_of_cuda_refuses_a_cpu_device(command, source, function):
    """As torch's, where a call runs on a GPU; the engine takes CPU tensors for CUDA tensors."""
    program = (
        "import kiln, torch\n"
        f"ext = kiln.load('more_ext', [{str(source)!r}])\n"
        f"try: print(ext.{function}(torch.ones(3)))\n"
        "except RuntimeError as error: print(error)\n"
    )
    said = {
        device: subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "KILN_DEVICE": device, "KILN_COMPAT": "require"},
        ).stdout.strip()
        for device in ("engine", "cuda")
    }
    assert said["engine"] == "3"
    assert said["cuda"].startswith("CUDAGuardImpl initialized with non-CUDA DeviceType: cpu")
