# SPDX-License-Identifier: Apache-2.0
"""Do functions of complex numbers give what torch's give, in kernels and on the host? Do names that
no header of the source brings, only torch's own, have their header: OpenMP's functions, cuda::std?

With KILN_COMPAT=never the same tests run on torch's own headers (a minute).
"""

from __future__ import annotations

import kiln
import pytest
import torch

pytestmark = pytest.mark.one_in(2)

THREADS = r"""
#include <torch/extension.h>
int64_t most_threads() {
  int64_t most = 0;
#pragma omp parallel reduction(max : most)
  most = omp_get_thread_num() < omp_get_num_threads() ? omp_get_max_threads() : -1;
  return most;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("most_threads", &most_threads); }
"""


@pytest.fixture(scope="module")
def ext(command, sources):
    return kiln.load(sources / "torch_complex.cu")


def mixed(x: torch.Tensor) -> torch.Tensor:
    y = x.exp() * x.conj() + x.sqrt() / x.sin()
    real = x.abs() + x.real**2 + x.imag**2
    return (
        y ** (0.5 + 0.25j)
        + x**2
        + torch.complex(real, x.angle() + y.real * x.imag)
        + torch.polar(torch.full_like(real, 2), y.imag)
        + x.log() * x.tanh()
        + x.log2()
    )


@pytest.mark.parametrize("place", ["kernel", "host"])
def test_functions_of_complex_numbers(ext, kiln_device, place):
    x = torch.randn(100, dtype=torch.complex64)
    ours = ext.in_kernel(x.to(kiln_device)).cpu() if place == "kernel" else ext.on_host(x)
    torch.testing.assert_close(ours, mixed(x), rtol=1e-4, atol=1e-4)


def test_complex_numbers_move_between_lanes(ext, kiln_device):
    x = torch.randn(32, dtype=torch.complex64, device=kiln_device)
    torch.testing.assert_close(ext.summed(x), x.sum())


def test_a_half_is_cudas_too_beside_rare_ops(ext, kiln_device):
    x = torch.arange(5, dtype=torch.float16, device=kiln_device)
    assert torch.equal(ext.halves(x), x / 2)
    assert not ext.acceptable(x.cpu()) and not ext.acceptable_inside(x.cpu())


def test_tensor_types_of_old(ext):
    assert ext.of_old(3, False).tolist() == [1, 1, 1]
    assert ext.of_old(3, False).dtype == torch.int64


def test_functions_of_openmp_without_their_header(command):
    module = kiln.load_inline(
        "compat_threads", THREADS, extra_cflags=["-fopenmp"], extra_ldflags=["-fopenmp"]
    )
    assert module.most_threads() > 0


BY_HAND = r"""
#include <Python.h>
extern "C" PyObject* PyInit_compat_by_hand(void) {
  static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "compat_by_hand", NULL, -1, NULL};
  return PyModule_Create(&module);
}
"""
OPS = r"""
#include <torch/library.h>
#include <torch/torch.h>
at::Tensor plus_one(const at::Tensor& x) { return x + 1; }
TORCH_LIBRARY(compat_by_hand, m) { m.def("plus_one", &plus_one); }
"""


def test_a_module_by_hand_in_a_source_without_torch(command, tmp_path):
    """As in torch's tutorial; .c is compiled as C++ there too."""
    (tmp_path / "stub.c").write_text(BY_HAND)
    (tmp_path / "ops.cpp").write_text(OPS)
    sources = [str(tmp_path / name) for name in ("stub.c", "ops.cpp")]
    module = kiln.load("compat_by_hand", sources)
    assert module.__name__ == "compat_by_hand"
    assert torch.ops.compat_by_hand.plus_one(torch.zeros(2)).tolist() == [1, 1]
