# SPDX-License-Identifier: Apache-2.0
"""Does an op that writes to an argument do so through a conjugated or negated view, and is a number
refused that the parameter's type cannot hold?"""

from __future__ import annotations

import kiln
import pytest
import torch

THIRD = 1 / 3


@pytest.fixture(scope="module")
def ops(command, sources):
    return kiln.load(sources / "transformed.cu")


def values(device, dtype=torch.float32):
    return torch.tensor([0.1, THIRD, -1.7], dtype=dtype, device=device)


@pytest.mark.parametrize("times", [1, 100])
def test_a_negated_view_is_written_through(ops, kiln_device, times):
    base = values(kiln_device)
    view = torch._neg_view(base)
    before, version = base.clone(), base._version
    for _ in range(times):
        ops.add_to(torch.ones_like(base), view)
    torch.testing.assert_close(base, before - times)
    assert view.is_neg() and view._version > version


def test_a_conjugated_view_is_written_through(ops, kiln_device):
    base = torch.complex(values(kiln_device), values(kiln_device) * 3)
    before = base.clone()
    for _ in range(100):
        ops.add_to(torch.full_like(base, 0.1j), base.conj())
    torch.testing.assert_close(base, before - 10j)


def test_the_imaginary_part_of_a_conjugated_tensor(ops, kiln_device):
    base = torch.complex(values(kiln_device), values(kiln_device) * 3)
    part = base.conj().imag
    assert part.is_neg()
    with pytest.raises(RuntimeError, match="sizes differ"):  # the op's own words, not torch's
        ops.add_to(torch.ones(2, device=kiln_device), part)
    contiguous = torch._neg_view(base.imag.contiguous())
    ops.add_to(contiguous, torch.zeros_like(contiguous).neg_())


def test_a_view_that_is_only_read(ops, kiln_device):
    target = torch.zeros(3, dtype=torch.complex64, device=kiln_device)
    read = torch.complex(values(kiln_device), values(kiln_device) * 3).conj()
    for _ in range(100):
        ops.add_to(read, target)
    torch.testing.assert_close(target, read.resolve_conj() * 100)


def test_other_views(ops, kiln_device):
    both = torch._neg_view(torch.complex(values(kiln_device), values(kiln_device)).conj())
    assert both.is_neg() and both.is_conj()
    wanted = both.clone() + 1
    ops.add_to(torch.ones(3, dtype=torch.complex64, device=kiln_device), both)
    torch.testing.assert_close(both.clone(), wanted)


def test_numbers_that_do_not_fit_are_refused_by_name(ops):
    for real in (1e300, -1e300, 3.4028236e38):
        with pytest.raises(
            RuntimeError,
            match=r"narrow: the argument real = -?(1e\+300|3\.40.*) "
            r"does not fit\n(.|\n)*float(.|\n)*fix: ",
        ):
            ops.narrow(real)
    for whole in (2**40, -(2**31) - 1, 2**53 + 1):
        with pytest.raises(RuntimeError, match=rf"the argument whole = {whole} does not fit"):
            ops.narrow(THIRD, whole)


def test_numbers_that_fit_are_taken(ops):
    float32 = lambda value: torch.tensor(value, dtype=torch.float32).item()  # noqa: E731
    for real in (0.1, THIRD, 1e-300, 3.4028234663852886e38, float("inf"), -(2.0**127)):
        assert ops.narrow(real) == float32(real)
    assert ops.narrow(3.4028235677e38) == 3.4028234663852886e38, "it rounds to the largest"
    assert ops.narrow(float("nan")) != ops.narrow(float("nan"))
    assert ops.narrow(0.0, 2**31 - 1) == float(2**31 - 1)
    assert ops.narrow(0.0, 0, 1e300) == 1e300
