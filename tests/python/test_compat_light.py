# SPDX-License-Identifier: Apache-2.0
"""Do torch's own light headers work beside the compat headers? The stable API, helpers for
kernels, and torch/cuda.h, which Python answers."""

from __future__ import annotations

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)

STABLE = r"""
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

using torch::stable::Tensor;

Tensor plus_one(Tensor x, double scale) {
  STD_TORCH_CHECK(x.scalar_type() == torch::headeronly::ScalarType::Float, "floats, please");
  Tensor out = torch::stable::empty_like(x);
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < x.numel(); i++) to[i] = from[i] * static_cast<float>(scale) + 1;
  return out;
}
STABLE_TORCH_LIBRARY(kiln_stable_api, m) {
  m.def("plus_one(Tensor x, float scale) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(kiln_stable_api, CPU, m) {
  m.impl("plus_one", TORCH_BOX(&plus_one));
}
"""

LIGHT = r"""
#include <ATen/Config.h>
#include <ATen/NumericUtils.h>
#include <ATen/TensorMeta.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Enumerate.h>
#include <torch/extension.h>

int64_t enumerated(torch::Tensor x) {
  int64_t odd = 0;
  std::vector<double> values = {1, std::nan(""), 2, HUGE_VAL};
  for (const auto& [i, value] : c10::enumerate(values))
    if (at::_isnan(value) || at::_isinf(c10::Half(value))) odd += i;
  return odd + at::_isnan(x.item<int64_t>());
}
std::vector<int64_t> seen_by_torch() {
  return {torch::cuda::is_available(), static_cast<int64_t>(torch::cuda::device_count()),
          torch::cuda::cudnn_is_available()};
}
torch::Tensor drawn(int64_t seed) {
  torch::manual_seed(seed);
  return torch::rand({3});
}
std::string cases(torch::Tensor x) {
  std::string name = "none";
  AT_DISPATCH_SWITCH(
      x.scalar_type(), "cases",
      AT_DISPATCH_CASE_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, [&] {
        name = std::to_string(sizeof(scalar_t));
      }) AT_DISPATCH_CASE_COMPLEX_TYPES([&] { name = "complex"; }));
  return name;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("enumerated", &enumerated);
  m.def("seen_by_torch", &seen_by_torch);
  m.def("drawn", &drawn);
  m.def("cases", &cases);
  m.def("synchronize", [] { torch::cuda::synchronize(); });
}
"""

KERNEL = r"""
#include <ATen/NumericUtils.h>
#include <ATen/cuda/CUDADataType.h>
#include <ATen/cuda/ThrustAllocator.h>
#include <ATen/native/cuda/LaunchUtils.h>
#include <torch/extension.h>

__global__ void twice(float* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = at::_isnan(x[i]) ? 0 : x[i] * 2;
}
int64_t launched(torch::Tensor x) {
  const int threads = at::native::lastPow2(static_cast<int>(x.numel()));
  twice<<<1, threads>>>(x.data_ptr<float>(), static_cast<int>(x.numel()));
  static_assert(sizeof(at::cuda::ThrustAllocator) > 0, "");
  TORCH_CHECK(torch::cuda::device_count() < 1000 && at::cuda::warp_size() == 32, "GPUs");
  return threads + (at::cuda::getCudaDataType<float>() == CUDA_R_32F ? 1000 : 0);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launched", &launched); }
"""


@pytest.fixture
def no_fallback(monkeypatch):
    monkeypatch.setenv("KILN_COMPAT", "require")


def test_the_stable_api(command, tmp_path, no_fallback):
    path = tmp_path / "stable.cpp"
    path.write_text(STABLE)
    kiln.load("kiln_stable_api", [path], is_python_module=False)
    x = torch.randn(5)
    assert torch.allclose(torch.ops.kiln_stable_api.plus_one(x, 3.0), x * 3 + 1)
    with pytest.raises(RuntimeError, match="floats, please"):
        torch.ops.kiln_stable_api.plus_one(x.double(), 1.0)


def test_light_headers(command, tmp_path, no_fallback):
    path = tmp_path / "light.cpp"
    path.write_text(LIGHT)
    light = kiln.load("light_ext", [path])
    assert light.enumerated(torch.tensor(3)) == 1 + 3
    has_gpu = torch.cuda.is_available()
    assert light.seen_by_torch() == [
        has_gpu,
        torch.cuda.device_count(),
        has_gpu and torch.backends.cudnn.is_available(),
    ]
    expected = torch.manual_seed(11) and torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(light.drawn(11), expected)
    for dtype, name in ((torch.half, "2"), (torch.bool, "1"), (torch.complex64, "complex")):
        assert light.cases(torch.zeros(1, dtype=dtype)) == name
    if not has_gpu:
        with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
            light.synchronize()


def test_a_version_header_whose_names_nobody_uses(command, tmp_path, no_fallback):
    path = tmp_path / "versioned.cpp"
    path.write_text(
        "#include <torch/library.h>\n#include <torch/version.h>\n"
        "int64_t three() { return 3; }\n"
        'TORCH_LIBRARY(kiln_versioned, m) { m.def("three() -> int", &three); }\n'
    )
    kiln.load("kiln_versioned", [path], is_python_module=False)
    assert torch.ops.kiln_versioned.three() == 3


def test_light_headers_of_kernels(command, tmp_path, no_fallback):
    path = tmp_path / "kernel.cu"
    path.write_text(KERNEL)
    kernel = kiln.load("light_kernel_ext", [path])
    x = torch.ones(5)
    assert kernel.launched(x) == 1004 and x.tolist() == [2.0] * 5


def test_what_ptxas_refuses_is_not_lacking(command, tmp_path, capfd):
    """An instruction of another architecture: torch's headers would not help, and are not tried."""
    path = tmp_path / "refused.cu"
    text = KERNEL.replace("x[i] * 2;\n", 'x[i] * 2;\n  asm volatile("no.such.instruction;");\n')
    path.write_text(text)
    with pytest.raises(kiln.BuildError, match="ptxas") as error:
        kiln.load("refused_ext", [path])
    assert "compat headers" not in str(error.value) + capfd.readouterr().err
