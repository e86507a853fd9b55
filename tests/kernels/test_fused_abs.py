# SPDX-License-Identifier: Apache-2.0
"""Is fused_abs(x) torch.sqrt(x * x)?"""

import numpy
import pytest
import samples
import torch


def expected_of(x: torch.Tensor) -> torch.Tensor:
    if x.dtype == torch.complex32:  # torch has no such product and root on the CPU
        wide = x.to(torch.complex64)
        return torch.sqrt((wide * wide).to(x.dtype).to(torch.complex64)).to(x.dtype)
    if x.is_complex() or (
        x.is_cuda and x.dtype not in samples.UNSIGNED
    ):  # of which torch has no product on a GPU
        return torch.sqrt(x * x)
    # torch's root on an x86 CPU can be one off in the last place; numpy's is rounded rightly, as a
    # GPU's.
    square = x.cpu() * x.cpu()
    wide = square if square.dtype in (torch.float32, torch.float64) else square.float()
    return (
        torch.empty_like(torch.sqrt(square))
        .copy_(torch.from_numpy(numpy.asarray(numpy.sqrt(wide.numpy()))))
        .to(x.device)
    )


@pytest.mark.parametrize("dtype", [*samples.SUMMABLE, *samples.UNSIGNED], ids=str)
def test_layouts(kernels, device, assert_same, dtype):
    """Real results to the bit. A complex product may be fused differently: close."""
    made = samples.pairs(lambda *shape, seed: samples.values(shape, dtype, device, seed))
    for name, pair in made.items():
        for x in pair:
            got, expected = kernels.fused_abs(x), expected_of(x)
            if not dtype.is_complex:
                assert_same(got, expected, name)
                continue
            assert (got.dtype, got.shape, got.stride()) == (
                expected.dtype,
                expected.shape,
                expected.stride(),
            ), name
            wide = torch.complex64 if dtype == torch.complex32 else dtype
            # The product of a number near the imaginary axis is near the cut of sqrt: either root
            # is one.
            near = torch.minimum(
                (got.to(wide) - expected.to(wide)).abs(), (got.to(wide) + expected.to(wide)).abs()
            )
            scale = {torch.complex32: 4e-3, torch.complex64: 4e-6, torch.complex128: 1e-14}[dtype]
            assert bool((near <= scale * (1 + expected.to(wide).abs())).all()), name


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_special_values(kernels, device, assert_same, dtype):
    limits = torch.finfo(dtype)
    infinity, nan = float("inf"), float("nan")
    few = [
        0.0,
        -0.0,
        1.0,
        -3.0,
        limits.max,
        limits.tiny,
        -limits.tiny / 2,
        infinity,
        -infinity,
        nan,
        300.0,
        1e-4,
    ]
    x = torch.tensor(few, dtype=torch.float64).to(dtype).to(device)
    assert_same(kernels.fused_abs(x), torch.sqrt(x * x))


def test_roots_of_complex_numbers(kernels, device):
    """sqrt on its axes and at the ends of its range, seen through sqrt(z * z) = z for Re z > 0."""
    z = torch.tensor(
        [1 + 0j, 2 + 1j, 1e-18 + 1e-19j, 3e18 + 1e18j, 0 + 0j, 5 - 4j, 1e-3 + 7j],
        dtype=torch.complex64,
    )
    got = kernels.fused_abs(z.to(device)).cpu()
    assert torch.allclose(got, z, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", samples.FLOAT8, ids=str)
def test_float8_is_refused(kernels, device, dtype):
    with pytest.raises(RuntimeError, match="no square of"):
        kernels.fused_abs(torch.ones(4, device=device).to(dtype))


def test_fake_agrees_with_torch(kernels):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        for dtype in (
            torch.bool,
            torch.uint8,
            torch.int64,
            torch.float16,
            torch.float64,
            torch.complex64,
        ):
            x = torch.empty(4, 6, dtype=dtype).t()
            got, expected = kernels.fused_abs(x), torch.sqrt(x * x)
            assert (got.dtype, got.stride()) == (expected.dtype, expected.stride()), dtype


def test_opcheck(kernels, device):
    torch.library.opcheck(
        torch.ops.kiln_kernels.fused_abs.default, (torch.ones(3, 4, device=device),)
    )
