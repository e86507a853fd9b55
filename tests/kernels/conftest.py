# SPDX-License-Identifier: Apache-2.0
"""What do the tests of the kernels share? The built library, the device, and how two results are compared."""

from pathlib import Path

import pytest
import torch

import kiln

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


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """The values as integers, with every "not a number" alike: its bits are not part of a sum's contract."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    tensor = tensor.contiguous()
    if not tensor.is_floating_point():
        return tensor
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return torch.where(torch.isnan(tensor), torch.full((), -1, dtype=integers, device=tensor.device), tensor.view(integers))


@pytest.fixture(scope="session")
def assert_same():
    def check(got: torch.Tensor, expected: torch.Tensor, what: str = "") -> None:
        assert got.dtype == expected.dtype, what
        assert got.shape == expected.shape, what
        assert got.stride() == expected.stride(), what
        different = (bits_of(got) != bits_of(expected)).nonzero()
        if len(different):
            at = tuple(different[0].tolist())[: got.ndim]
            raise AssertionError(f"{what}: {len(different)} differ, first at {at}: {got[at]} and not {expected[at]}")

    return check
