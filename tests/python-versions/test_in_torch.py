# SPDX-License-Identifier: Apache-2.0
"""Does kiln work with this Python's torch? One test for each way to use it, run by
tools/torch-matrix with one Python after the other. KILN_SAMPLE is a library that was built once,
for all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

import kiln

HERE = Path(__file__).resolve().parent
os.environ.setdefault("KILN_DEVICE", "engine")

MODULE = """
#include <torch/extension.h>
__global__ void scale_kernel(const float* x, float* out, float factor, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}
torch::Tensor scale(torch::Tensor x, double factor) {
  TORCH_CHECK(x.scalar_type() == torch::kFloat, "x must be float, got ", x.dtype());
  auto out = torch::empty_like(x);
  scale_kernel<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), factor,
                                                  x.numel());
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale, "factor * x"); }
"""
CLASS = """
#include <torch/extension.h>
struct Sum {
  torch::Tensor state;
  void add(const torch::Tensor& x) { state = state.defined() ? state + x : x.clone(); }
};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Sum>(m, "Sum")
      .def(py::init<>())
      .def("add", &Sum::add)
      .def_readonly("state", &Sum::state);
}
"""
# torch::nn's modules are not in the compat headers.
FALLBACK = """
#include <torch/extension.h>
torch::Tensor summed(torch::Tensor x) {
  torch::NoGradGuard guard;
  torch::nn::Linear layer(torch::nn::LinearOptions(x.size(-1), 1).bias(false));
  layer->weight.fill_(1);
  return layer->forward(x);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("summed", &summed); }
"""
SETUP = """
import torch
from setuptools import setup
from kiln import CUDA_HOME, BuildExtension, CUDAExtension, include_paths

setup(
    name="scaled",
    version="0.1",
    ext_modules=[CUDAExtension("scaled", ["scaled.cu"], include_dirs=include_paths(),
                               extra_compile_args={"cxx": ["-O2"], "nvcc": ["-O2"]})],
    cmdclass={"build_ext": BuildExtension},
)
"""


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def sample():
    return kiln.load(os.environ["KILN_SAMPLE"])


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_ops():
    """In a process of its own, as torch alone loads them, then through the package."""
    line = [sys.executable, HERE / "use_sample.py", os.environ["KILN_SAMPLE"]]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    Path(os.environ["KILN_RESULTS"]).write_text(
        json.dumps(json.loads(done.stdout.splitlines()[-1])["results"])
    )


def test_kiln_test(sample):
    x = torch.randn(300, dtype=torch.float64)
    reference = lambda x, y, factor=2.0: factor * x + y  # noqa: E731
    assert kiln.test(sample.axpy, x, x + 1, 1 / 3, reference=reference).passed


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(sample, backend):
    def step(x):
        return sample.axpy(x.sin(), x, 0.1) * 2

    torch.compiler.reset()
    x = torch.randn(33)
    compiled = torch.compile(step, backend=backend, fullgraph=True)
    assert torch.equal(compiled(x), step(x))


def test_compat(tmp_path):
    source = written(tmp_path, "scaled_compat.cu", MODULE)
    module = kiln.load("scaled_compat", [str(source)])
    x = torch.randn(1000, device=kiln.device())
    assert torch.equal(module.scale(x, 0.1), x * torch.tensor(0.1))
    with pytest.raises(RuntimeError, match="x must be float"):
        module.scale(x.double(), 2)


def test_compat_with_the_flag_that_a_newer_torch_refuses(tmp_path, capfd):
    source = written(tmp_path, "flagged.cu", MODULE)
    module = kiln.load(
        "flagged", [str(source)], extra_cuda_cflags=["-std=c++17"], extra_cflags=["-std=c++17"]
    )
    x = torch.ones(3, device=kiln.device())
    assert torch.equal(module.scale(x, 2.0), 2 * x)
    demand = (Path(torch.__file__).parent / "include/ATen/ATen.h").read_text()
    assert ("require C++20" in capfd.readouterr().err) == ("#error C++20" in demand)


def test_class_of_pybind11(tmp_path):
    source = written(tmp_path, "classy.cpp", CLASS)
    module = kiln.load("classy", [str(source)])
    total = module.Sum()
    for value in (1.0, 2.5):
        total.add(torch.full((2,), value))
    assert torch.equal(total.state, torch.full((2,), 3.5))


def test_torchs_own_headers(tmp_path, capfd):
    """A minute."""
    source = written(tmp_path, "own_headers.cpp", FALLBACK)
    module = kiln.load("own_headers", [str(source)])
    assert "torch's own headers" in capfd.readouterr().err
    assert module.summed(torch.tensor([[3.0, 4.5]])).item() == 7.5


def test_project_with_setup_py(tmp_path):
    written(tmp_path, "scaled.cu", MODULE)
    written(tmp_path, "setup.py", SETUP)
    line = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / f"scaled{sysconfig.get_config_var('EXT_SUFFIX')}").is_file()
    call = "import torch, kiln, scaled; x = torch.ones(3, device=kiln.device()); "
    call += "assert torch.equal(scaled.scale(x, 0.1), x * 0.1)"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
