# SPDX-License-Identifier: Apache-2.0
"""Do Triton kernels give on the engine what they give on the GPU, in one process?"""

from __future__ import annotations

import sys
from pathlib import Path

import kiln
import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed")
import kiln.triton  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "triton"))
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(params=["sm_80", "sm_90"])
def kernels(request):
    import kernels as module

    kiln.triton.enable(request.param)
    yield module
    kiln.triton.enable("sm_90")


def both(function, *arguments):
    """The results on the GPU, then those of the engine."""
    moved = [one.cuda() if isinstance(one, torch.Tensor) else one for one in arguments]
    on_gpu, on_engine = function(*moved), function(*arguments)
    return on_gpu.cpu(), on_engine


def test_equal_bits(kernels):
    x, y = torch.randn(5000), torch.randn(5000)
    assert torch.equal(*both(kernels.add, x, y))


def test_dropout_keeps_the_same_elements(kernels):
    x = torch.randn(5000)
    on_gpu, on_engine = both(kernels.dropout, x, 0.3, 7)
    assert torch.equal(on_gpu == 0, on_engine == 0)
    # Triton divides by div.full, which a GPU may round up to two units off.
    torch.testing.assert_close(on_gpu, on_engine, rtol=2.5e-7, atol=0)


def test_close_results(kernels):
    x = torch.randn(37, 1000)
    torch.testing.assert_close(*both(kernels.softmax, x), rtol=1e-5, atol=1e-7)
    a, b = torch.randn(256, 256).half(), torch.randn(256, 256).half()
    torch.testing.assert_close(*both(kernels.matmul, a, b), rtol=2e-3, atol=2e-3)
    q, k, v = (torch.randn(2, 100, 64).half() for _ in range(3))
    torch.testing.assert_close(*both(kernels.attention, q, k, v), rtol=4e-3, atol=4e-3)
