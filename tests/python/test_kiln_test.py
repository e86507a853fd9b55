# SPDX-License-Identifier: Apache-2.0
"""Does kiln.test find each kind of fault, and pass an op that has none?"""

from __future__ import annotations

import kiln
import pytest
import torch
from kiln._checks.compare import Tolerance, compare


def add_one_in_place(x):
    x.add_(1)


@pytest.fixture(scope="session")
def faulty(command, sources):
    module = kiln.load(sources / "faulty.cu")
    for name in dir(module):
        op = getattr(module, name)
        if isinstance(op, kiln.Op):
            op.reference(add_one_in_place if name.endswith("_") else lambda x: x + 1)
    return module


@pytest.fixture
def x(kiln_device):
    return torch.arange(24, dtype=torch.float32, device=kiln_device).reshape(4, 6)


def fails(op, *args, **kwargs) -> kiln.Mismatch:
    with pytest.raises(kiln.Mismatch) as caught:
        kiln.test(op, *args, **kwargs)
    return caught.value


def test_an_op_without_fault_passes(faulty, x):
    report = kiln.test(faulty.right, x)
    assert report.passed
    outcomes = {row.variant: row.outcome for row in report.rows}
    assert (
        outcomes["as given"] == outcomes["misaligned"] == outcomes["poisoned outputs"] == "passed"
    )
    assert outcomes["size 6 -> 0"] == outcomes["size 6 -> 1"] == outcomes["size 6 -> 5"] == "passed"
    assert outcomes["repeated"] == outcomes["opcheck"] == "passed"
    assert outcomes["strided"] == "refused", "data<T>() takes contiguous tensors alone, and says so"
    assert "contiguous" in str(report)
    if x.device.type == "cpu":
        assert outcomes["other stream"] == "skipped"


def test_refusals_can_be_forbidden(faulty, x):
    assert "strided" in str(fails(faulty.right, x, refusals=False))


def test_elements_that_are_never_written(faulty, x):
    error = fails(faulty.forgets_tail, torch.ones(4, 5, device=x.device)[:, :4].contiguous())
    assert "size 4 -> 3" in str(error)
    fails(faulty.forgets_tail, torch.ones(7, device=x.device))


def test_strides_that_are_ignored(faulty, x):
    error = fails(faulty.ignores_strides, x)
    assert error.report.outcome("as given") == "passed"
    assert error.report.outcome("strided") == error.report.outcome("transposed") == "FAILED"


def test_an_input_that_is_written_to(faulty, x):
    text = str(fails(faulty.spoils_input, x))
    assert "changed memory in the input 0: byte" in text or "writ" in text, (
        "kiln.test finds it, or the engine before it"
    )


def test_results_that_change_from_call_to_call(faulty, x):
    fails(faulty.alternates, x)


def test_a_fake_that_lies(faulty, x):
    error = fails(faulty.lies, x)
    assert [row.variant for row in error.report.rows if row.outcome == "FAILED"] == [
        "opcheck",
        "fake of every form",
    ]


def test_a_fake_that_is_right_for_contiguous_tensors_alone(kinds, x):
    """empty_like keeps the order of dimensions; the rule says contiguous."""
    op = kinds.copied
    error = fails(op, x, reference=lambda x: x.clone())
    assert error.report.outcome("opcheck") == "passed"
    assert error.report.outcome("fake of every form") == "FAILED"
    assert "transposed" in str(error)


def test_in_place(faulty, x):
    assert kiln.test(faulty.adds_, x).passed
    assert torch.equal(x.flatten()[:2].cpu(), torch.tensor([0.0, 1.0])), (
        "the caller's tensor is left alone"
    )


def test_a_write_past_the_end(faulty, x):
    room = torch.zeros(30, device=x.device)
    error = fails(faulty.overruns_, room[:24].view(4, 6))
    assert "outside the elements" in str(error) or "out of" in str(error)


def test_the_first_difference_is_named(faulty, x):
    error = fails(faulty.right, x, reference=lambda x: x + torch.eye(4, 6, device=x.device) * 2)
    assert "the result differs at [0, 0]: got 1.0, expected 2.0" in str(error)


def test_without_a_reference(kinds, x):
    with pytest.raises(kiln.KilnError, match=r"@kinds\.picky\.reference"):
        kiln.test(kinds.picky, x, x)


def test_overloads_and_several_results(kinds, x):
    kiln.test(kinds.shift, x, 2, reference=lambda x, value: x + value)
    kiln.test(kinds.shift.float, x, 0.1, reference=lambda x, value: x + value)
    kiln.test(kinds.twice_and_half, x, reference=lambda x: (x * 2, x / 2))
    kiln.test(
        kinds.scale, x, 1 / 3, offset=3, reference=lambda x, factor, offset: x * factor + offset
    )


def tensor(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def test_tolerances_follow_scale_and_dtype():
    compare([tensor(1e8, 1.0)], [tensor(1e8, 1.5)], Tolerance())  # 0.5 is nothing beside 1e8
    with pytest.raises(AssertionError, match=r"differs at \[1\]: got 1.0, expected 1.5"):
        compare([tensor(1.0, 1.0)], [tensor(1.0, 1.5)], Tolerance())
    compare([tensor(1.0, dtype=torch.bfloat16)], [tensor(1.01, dtype=torch.bfloat16)], Tolerance())
    with pytest.raises(AssertionError, match="1 of 1 elements differ"):
        compare(
            [tensor(1.0, dtype=torch.float64)],
            [tensor(1.0000001, dtype=torch.float64)],
            Tolerance(),
        )
    with pytest.raises(AssertionError):
        compare(
            [tensor(1, dtype=torch.int64)], [tensor(2, dtype=torch.int64)], Tolerance(rtol=10.0)
        )


def test_nan_and_infinity_are_values():
    nan, inf = float("nan"), float("inf")
    compare([tensor(nan, inf, -inf, 1.0)], [tensor(nan, inf, -inf, 1.0)], Tolerance())
    for seen, wanted in ((nan, 1.0), (1.0, nan), (inf, -inf), (inf, 1e30), (1.0, inf)):
        with pytest.raises(AssertionError, match="expected"):
            compare([tensor(seen, 1.0)], [tensor(wanted, 1.0)], Tolerance())


def test_sizes_dtypes_and_counts_are_compared():
    one = tensor(1.0)
    for seen, wanted, why in (
        ([one], [one.double()], "dtype"),
        ([one], [one[None]], "sizes"),
        ([one, one], [one], "2 results, the reference 1"),
        ([one], [1.0], "is a tensor"),
    ):
        with pytest.raises(AssertionError, match=why):
            compare(seen, wanted, Tolerance())
