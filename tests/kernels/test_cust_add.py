# SPDX-License-Identifier: Apache-2.0
"""Is cust_add(x, value) torch.add(x, value) to the bit?"""

import pytest
import samples
import torch

NUMBERS = [
    0,
    1,
    -1,
    300,
    2049,
    (1 << 40) + 1,
    -(1 << 63),
    0.0,
    -0.0,
    1.5,
    0.1001,
    -1e30,
    float("inf"),
    float("nan"),
]


@pytest.mark.parametrize("dtype", samples.SUMMABLE, ids=str)
def test_numbers(kernels, device, assert_same, dtype):
    for shape in ((), (0,), (1,), (5,), (777,)):
        x = samples.values(shape, dtype, device, 1)
        for value in NUMBERS:
            assert_same(
                kernels.cust_add(x, value), torch.add(x, value), f"{dtype} {shape} + {value}"
            )


@pytest.mark.parametrize("dtype", samples.SUMMABLE, ids=str)
def test_layouts(kernels, device, assert_same, dtype):
    made = samples.pairs(lambda *shape, seed: samples.values(shape, dtype, device, seed))
    for name, pair in made.items():
        for x in pair:
            assert_same(kernels.cust_add(x, 3), torch.add(x, 3), name)
            assert_same(kernels.cust_add(x, 2.5), torch.add(x, 2.5), name)


@pytest.mark.parametrize("dtype", samples.UNSIGNED, ids=str)
def test_unsigned_beside_a_float(kernels, device, assert_same, dtype):
    x = samples.values((9,), dtype, device, 1)
    assert_same(kernels.cust_add(x, 1.5), torch.add(x, 1.5))
    with pytest.raises(RuntimeError, match="no sum in"):
        kernels.cust_add(x, 1)


@pytest.mark.parametrize("dtype", samples.FLOAT8, ids=str)
def test_float8_is_refused(kernels, device, dtype):
    with pytest.raises(RuntimeError, match="no sum in"):
        kernels.cust_add(torch.ones(4, device=device).to(dtype), 1.5)


def test_an_int_is_not_taken_for_a_float(kernels, device):
    x = torch.arange(3, device=device)
    assert kernels.cust_add(x, 2).dtype == torch.int64
    assert kernels.cust_add(x, 2.0).dtype == torch.float32
    assert kernels.cust_add(x, value=2).tolist() == [2, 3, 4]
    assert torch.ops.kiln_kernels.cust_add.int(x, 2).tolist() == [2, 3, 4]
    assert torch.ops.kiln_kernels.cust_add.float(x, 2).dtype == torch.float32


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
            for value in (2, 2.5):
                x = torch.empty(4, 6, dtype=dtype).t()
                got, expected = kernels.cust_add(x, value), torch.add(x, value)
                assert (got.dtype, got.stride()) == (expected.dtype, expected.stride()), (
                    dtype,
                    value,
                )


def test_opcheck(kernels, device):
    torch.library.opcheck(torch.ops.kiln_kernels.cust_add.int, (torch.ones(3, 4, device=device), 2))
    torch.library.opcheck(
        torch.ops.kiln_kernels.cust_add.float, (torch.ones(3, 4, device=device), 2.5)
    )
