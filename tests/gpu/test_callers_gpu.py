# SPDX-License-Identifier: Apache-2.0
"""Do ops take arrays of CuPy and JAX on a GPU, with the bits that torch gets?"""

from __future__ import annotations

from pathlib import Path

import kiln
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
SOURCE = Path(__file__).resolve().parents[1] / "python" / "sources" / "arrays.cu"


@pytest.fixture(scope="module")
def ops():
    return kiln.load(SOURCE)


@pytest.fixture
def tensors():
    torch.manual_seed(7)
    return torch.randn(5000, device="cuda"), torch.randn(5000, device="cuda")


def test_cupy(ops, tensors):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    expected = ops.mixed(*tensors, alpha=0.5).cpu().numpy()
    a, b = (cupy.from_dlpack(one) for one in tensors)
    found = ops.mixed(a, b, alpha=0.5)
    assert isinstance(found, cupy.ndarray)
    assert (found.get() == expected).all()
    out = cupy.empty_like(a)
    with cupy.cuda.Stream(non_blocking=True):
        assert ops.mixed(a, b, alpha=0.5, out=out) is out
    cupy.cuda.Device().synchronize()
    assert (out.get() == expected).all()


def test_a_numpy_array_beside_a_gpu_is_refused(ops, tensors):
    array = tensors[0].cpu().numpy()
    with pytest.raises(kiln.KilnError, match=r"(?s)CPU tensor on a machine with a GPU.*CuPy"):
        ops.mixed(array, array)


def test_counters_take_cpu_tensors_beside_a_gpu(ops, tensors):
    on_cpu = [one.cpu() for one in tensors]
    assert len(kiln.counters(ops.mixed, *on_cpu).launches) == 1
    with pytest.raises(RuntimeError, match=r"(?s)CPU tensor on a machine with a GPU.*\.cuda\(\)"):
        ops.mixed(*on_cpu)


def test_two_devices_are_refused(ops, tensors):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    with pytest.raises(kiln.KilnError, match="two devices"):
        ops.mixed(cupy.from_dlpack(tensors[0]), tensors[1].cpu().numpy())


def test_jax(ops, tensors):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    pytest.importorskip("jax_tvm_ffi", reason="jax-tvm-ffi is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("this jax has no GPU")
    expected = ops.mixed(*tensors, alpha=0.5).cpu().numpy()
    a, b = (jax.numpy.array(one.cpu().numpy()) for one in tensors)
    function = jax.jit(lambda x, y: ops.mixed(x, y, alpha=0.5))
    assert (jax.device_get(function(a, b)) == expected).all()
    first, second = jax.jit(ops.swapped)(a, b)
    assert (jax.device_get(first) == ops.mixed(*tensors).cpu().numpy()).all()
    assert (jax.device_get(second) == ops.mixed(*tensors, alpha=-1.0).cpu().numpy()).all()
