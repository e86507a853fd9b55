# SPDX-License-Identifier: Apache-2.0
"""What do the tests of the kernels share? The built library, the device, and how two results are compared."""

from pathlib import Path

import pytest
import torch

import kiln
from samples import bits_of

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def device() -> str:
    return kiln.device()


@pytest.fixture(scope="session")
def kernels():
    return kiln.load(HERE.parents[1] / "kernels")


@pytest.fixture(scope="session")
def author():
    """Ops that use kiln/elementwise.h as an author would."""
    return kiln.load(HERE / "elementwise_author.cu")


@pytest.fixture(scope="session")
def assert_same():
    """strides: those expected, where they are not those of `expected`."""

    def check(got: torch.Tensor, expected: torch.Tensor, what: str = "", strides: tuple = ()) -> None:
        assert got.dtype == expected.dtype, what
        assert got.shape == expected.shape, what
        assert got.stride() == (strides or expected.stride()), what
        different = bits_of(got) != bits_of(expected)
        if got.is_complex():
            different &= ~nan_of_alpha(got, expected)[..., None]
        if bool(different.any()):
            at = tuple(different.nonzero()[0].tolist())[: got.ndim]
            raise AssertionError(f"{what}: {int(different.sum())} differ, first at {at}: {got[at]} and not {expected[at]}")

    return check


def nan_of_alpha(got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Where torch.add multiplied what is not finite by its alpha = 1 + 0j, and so has a "not a number" in both parts."""
    got, expected = torch.view_as_real(got), torch.view_as_real(expected)
    return (~got.isfinite()).any(-1) & (~expected.isfinite()).any(-1)
