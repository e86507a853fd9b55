# SPDX-License-Identifier: Apache-2.0
"""What do the tests of the kernels share? The built library, the device, and how two results are
compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import kiln
import pytest

if TYPE_CHECKING:  # slow to import, and the process that only hands out tests does not need it
    import torch

HERE = Path(__file__).resolve().parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:ComplexHalf support is experimental")


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
    from samples import bits_of

    def check(
        got: torch.Tensor, expected: torch.Tensor, what: str = "", strides: tuple = ()
    ) -> None:
        assert got.dtype == expected.dtype, what
        assert got.shape == expected.shape, what
        assert got.stride() == (strides or expected.stride()), what
        different = bits_of(got) != bits_of(expected)
        if bool(different.any()):
            at = tuple(different.nonzero()[0].tolist())[: got.ndim]
            count = int(different.sum())
            raise AssertionError(
                f"{what}: {count} differ, first at {at}: {got[at]} and not {expected[at]}"
            )

    return check
