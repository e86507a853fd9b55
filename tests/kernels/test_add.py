# SPDX-License-Identifier: Apache-2.0
"""Is my_add, and is my_fast_add, torch.add to the bit: dtype, shape, strides and values?"""

import random

import pytest
import samples
import torch

OPS = ["my_add", "my_fast_add"]
NAMES = list(samples.pairs(lambda *shape, seed: torch.zeros(shape)))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", samples.SUMMABLE, ids=str)
def test_layouts(kernels, device, assert_same, op, dtype):
    made = samples.pairs(lambda *shape, seed: samples.values(shape, dtype, device, seed))
    for name in NAMES:
        a, b = made[name]
        before = [samples.bits_of(x).clone() for x in (a, b)]
        assert_same(getattr(kernels, op)(a, b), torch.add(a, b), name)
        for x, bits in zip((a, b), before):
            assert torch.equal(samples.bits_of(x), bits), f"{name}: an input was written to"


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("left", [*samples.SUMMABLE, *samples.UNSIGNED], ids=str)
def test_promotion(kernels, device, assert_same, op, left):
    """Every pair of dtypes, with and without dimensions: torch's result, or a refusal where torch
    refuses."""
    for right in [*samples.SUMMABLE, *samples.UNSIGNED]:
        for shapes in (((37,), (37,)), ((5,), ()), ((), (5,)), ((), ())):
            a = samples.values(shapes[0], left, device, 1)
            b = samples.values(shapes[1], right, device, 2)
            what = f"{left} {shapes[0]} + {right} {shapes[1]}"
            try:
                expected = samples.sum_of(a, b)
            except RuntimeError:
                with pytest.raises(RuntimeError, match=r"no common dtype|no sum in"):
                    getattr(kernels, op)(a, b)
                continue
            assert_same(getattr(kernels, op)(a, b), expected, what, samples.strides_of_sum(a, b))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", range(8))
def test_random_views(kernels, device, assert_same, op, seed):
    choice = random.Random(seed)
    for case in range(50):
        a, b = samples.random_pair(
            choice, lambda shape, dtype, s: samples.values(shape, dtype, device, s)
        )
        what = (
            f"case {case}: {a.dtype} {tuple(a.shape)} {a.stride()} + {b.dtype} "
            f"{tuple(b.shape)} {b.stride()}"
        )
        expected = samples.sum_of(a, b)
        assert_same(getattr(kernels, op)(a, b), expected, what, samples.strides_of_sum(a, b))


@pytest.mark.parametrize("op", OPS)
def test_arange_of_int64(kernels, device, op):
    x = torch.arange(5, device=device)
    assert getattr(kernels, op)(x, x).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_special_values(kernels, device, assert_same, op, dtype):
    """Infinities, zeros of both signs, subnormals, overflow, ties of rounding, "not a number"."""
    limits = torch.finfo(dtype)
    few = [0.0, -0.0, 1.0, -1.0, limits.max, limits.min, limits.tiny, limits.tiny / 2, limits.eps,
           limits.eps / 2, 1 + limits.eps, float("inf"), -float("inf"), float("nan"), 2049.0,
           2051.0, 257.0, 259.0]  # fmt: skip
    a = torch.tensor(few, dtype=torch.float64).to(dtype).to(device)
    assert_same(getattr(kernels, op)(a[:, None], a[None, :]), a[:, None] + a[None, :])


@pytest.mark.parametrize("op", OPS)
def test_integers_wrap(kernels, device, assert_same, op):
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        limits = torch.iinfo(dtype)
        a = torch.tensor(
            [limits.max, limits.min, limits.max, -1 if limits.min else 255],
            dtype=dtype,
            device=device,
        )
        b = torch.tensor([1, -1 if limits.min else 255, limits.max, 1], dtype=dtype, device=device)
        assert_same(getattr(kernels, op)(a, b), a + b, str(dtype))


@pytest.mark.parametrize("op", OPS)
def test_any_byte_but_zero_is_true(kernels, device, op):
    a = torch.tensor([0, 1, 2, 255], dtype=torch.uint8, device=device).view(torch.bool)
    b = torch.zeros(4, dtype=torch.bool, device=device)
    assert getattr(kernels, op)(a, b).view(torch.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("op", OPS)
def test_the_result_is_new(kernels, device, op):
    x = torch.ones(100, device=device)
    assert getattr(kernels, op)(x, x).data_ptr() != x.data_ptr()


@pytest.mark.parametrize("op", OPS)
def test_refusals(kernels, device, op):
    f = getattr(kernels, op)
    with pytest.raises(RuntimeError, match=r"shapes \[2\] and \[3\] do not broadcast"):
        f(torch.ones(2, device=device), torch.ones(3, device=device))
    for dtype in [*samples.UNSIGNED, *samples.FLOAT8]:
        x = torch.ones(4, device=device).to(dtype)
        with pytest.raises(RuntimeError, match="no sum in"):
            f(x, x)
    with pytest.raises(RuntimeError, match="no common dtype for f8e4m3 and f32"):
        f(torch.ones(4, device=device).to(torch.float8_e4m3fn), torch.ones(4, device=device))


@pytest.mark.parametrize("op", OPS)
def test_sixteen_dimensions_and_no_more(kernels, device, assert_same, op):
    f = getattr(kernels, op)
    a = samples.values((2,) * 8 + (1, 2) * 4, torch.float32, device, 1)
    b = samples.values((2, 1) * 4 + (2,) * 8, torch.float32, device, 2)
    assert_same(f(a, b), a + b)
    x = torch.ones((1,) * 17, device=device)
    with pytest.raises(RuntimeError, match="at most 16"):
        f(x, x)


@pytest.mark.parametrize("op", OPS)
def test_fake_agrees_with_torch(kernels, op):
    """The rule of the op, on tensors without data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        for name, (a, b) in samples.pairs(lambda *shape, seed: torch.empty(shape)).items():
            got, expected = getattr(kernels, op)(a, b), torch.add(a, b)
            assert (got.dtype, got.shape, got.stride()) == (
                expected.dtype,
                expected.shape,
                expected.stride(),
            ), name
        mixed = getattr(kernels, op)(
            torch.empty(3, dtype=torch.int32), torch.empty((), dtype=torch.bfloat16)
        )
        assert mixed.dtype == torch.bfloat16


def test_opcheck(kernels, device):
    for op in OPS:
        torch.library.opcheck(
            getattr(torch.ops.kiln_kernels, op).default,
            (torch.ones(3, 4, device=device), torch.ones(4, device=device)),
        )
