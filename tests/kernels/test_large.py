# SPDX-License-Identifier: Apache-2.0
"""Do the kernels serve more than 2^31 elements? On a GPU only: the engine would take hours."""

import kiln
import pytest
import torch

pytestmark = pytest.mark.skipif(kiln.device() != "cuda", reason="skipped, no GPU")

MANY = (1 << 31) + 3
WIDE = (1 << 16, 32769)  # more still


def equal(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """torch.equal by pieces: it needs no memory of the size of the tensors."""
    if (got.dtype, got.shape, got.stride()) != (expected.dtype, expected.shape, expected.stride()):
        return False
    got, expected = got.reshape(-1), expected.reshape(-1)
    return all(torch.equal(a, b) for a, b in zip(got.split(1 << 28), expected.split(1 << 28)))


@pytest.fixture(scope="module")
def many():
    x = torch.empty(WIDE[0] * WIDE[1], dtype=torch.uint8, device="cuda")
    for piece in x.split(1 << 28):
        piece.random_()
    yield x
    del x
    torch.cuda.empty_cache()


@pytest.mark.parametrize("op", ["my_add", "my_fast_add"])
def test_contiguous(kernels, many, op):
    a, b = many[:MANY], many[1 : MANY + 1]
    assert equal(getattr(kernels, op)(a, a), a + a)
    assert equal(getattr(kernels, op)(a, b), a + b)


@pytest.mark.parametrize("op", ["my_add", "my_fast_add"])
def test_strided_broadcast_and_transposed(kernels, many, op):
    f = getattr(kernels, op)
    wide = many.view(WIDE)
    row = many[: WIDE[1]]
    assert equal(f(wide, row), wide + row)
    assert equal(f(wide, wide[:, :1]), wide + wide[:, :1])
    turned = many.view(WIDE[::-1]).t()
    assert equal(f(wide, turned), wide + turned)
    every_second = many[::2]
    assert equal(f(every_second, every_second), every_second + every_second)


def test_conversion(kernels, many):
    a, b = many[:MANY], many[:MANY].view(torch.int8)
    assert equal(kernels.my_fast_add(a, b), a + b)


def test_cust_add_and_fused_abs(kernels, many):
    assert equal(kernels.cust_add(many[1:], 7), many[1:] + 7)
    assert equal(kernels.fused_abs(many[:MANY]), torch.sqrt(many[:MANY] * many[:MANY]))


def test_streams(kernels):
    """The kernel runs on the current stream: behind a long fill on it, it must see the filled
    values."""
    x = torch.zeros(1 << 26, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for value in range(20):
            x.fill_(value)
        got = kernels.my_fast_add(x, x)
    stream.synchronize()
    assert bool((got == 38).all())


def test_cuda_graph(kernels):
    x = torch.ones(5000, device="cuda")
    kernels.my_fast_add(x, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = kernels.cust_add(kernels.my_fast_add(x, x), 1.5)
    x.fill_(10)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((y == 21.5).all())
