# SPDX-License-Identifier: Apache-2.0
"""Does an op do what its reference does? kiln.test runs both over the forms that arguments take in practice.

A row of the report is one variant: the arguments as given, or in another layout, at another alignment, or at other
sizes. Each run also looks for bytes that the op had no right to change.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from ._arguments import Call, Variant, variants_of
from ._compare import Tolerance, compare
from ._fake_check import check_fake
from ._poison import poisoned
from ._torch import torch_module
from .errors import KilnError, Mismatch

PASSED, FAILED, REFUSED, SKIPPED = "passed", "FAILED", "refused", "skipped"


@dataclass(frozen=True)
class Row:
    variant: str
    outcome: str  # passed, FAILED, refused (by the op, with a message), skipped (with a reason)
    detail: str = ""


@dataclass
class Report:
    """What kiln.test found; print it for a table."""

    op: str
    rows: list[Row] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(row.outcome != FAILED for row in self.rows)

    def outcome(self, variant: str) -> str:
        return next(row.outcome for row in self.rows if row.variant == variant)

    def __str__(self) -> str:
        width = max([len(row.variant) for row in self.rows], default=0)
        lines = [f"{self.op}: {'passed' if self.passed else 'FAILED'}"]
        for row in self.rows:
            detail = row.detail.splitlines()[0] if row.detail else ""
            lines.append(f"  {row.variant:<{width}}  {row.outcome:<7}  {detail}".rstrip())
        return "\n".join(lines)


def test(
    op: Any,
    *args: Any,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    seed: int = 0,
    reference: Optional[Callable[..., Any]] = None,
    opcheck: bool = True,
    refusals: bool = True,
    **kwargs: Any,
) -> Report:
    """Compares op(*args, **kwargs) with its reference over layouts, alignments and sizes; raises Mismatch (an
    AssertionError) with the first difference, else returns a Report.

    rtol, atol: else chosen by dtype; atol is a part of the reference's own scale, so large values are not held to the
        standard of small ones. Integers must be equal.
    refusals: an op may refuse a form with a message of its own (it is then named in the report); False: that fails.
    opcheck: also torch.library.opcheck, which holds schema, fake and autograd against what the op does.
    """
    reference = reference or getattr(op, "reference_function", None)
    if reference is None:
        raise KilnError(
            f"kiln.test({op}) has nothing to compare with",
            "the op has no reference",
            f"write @{op}.reference above a function that does the same in plain torch, or pass reference=",
        )
    call = Call.of(op, args, kwargs)
    runner = _Runner(op, reference, Tolerance(rtol, atol), seed, refusals)
    report = Report(str(op))
    report.rows.append(runner.row(Variant("as given", call)))
    if report.passed:
        variants = list(variants_of(call))
        report.rows += [runner.row(variant) for variant in variants]
        report.rows += runner.whole_call_rows(call)
        if opcheck:
            passed = {row.variant for row in report.rows if row.outcome == PASSED}
            report.rows += _opcheck_rows(op, call, [variant for variant in variants if variant.name in passed])
    failed = [row for row in report.rows if row.outcome == FAILED]
    if failed:
        raise Mismatch(f"{op}, {failed[0].variant}: {failed[0].detail}\n\n{report}", report)
    return report


# pytest must not take this function for a test of its own.
test.__test__ = False  # type: ignore[attr-defined]


class _Runner:
    def __init__(self, op: Any, reference: Callable[..., Any], tolerance: Tolerance, seed: int, refusals: bool) -> None:
        self.op, self.reference, self.tolerance = op, reference, tolerance
        self.seed, self.refusals = seed, refusals

    def row(self, variant: Variant) -> Row:
        if variant.call is None:
            return Row(variant.name, SKIPPED, variant.why)
        try:
            wanted = self.expected(variant.call)
        except Exception as error:  # the reference decides which sizes make sense
            return Row(variant.name, SKIPPED, f"the reference does not take it: {_first_line(error)}")
        try:
            return Row(variant.name, PASSED, self.checked(variant.call, wanted))
        except AssertionError as error:
            return Row(variant.name, FAILED, str(error))
        except Exception as error:
            return self.raised(variant, error)

    def raised(self, variant: Variant, error: Exception) -> Row:
        # What KILN_CHECK, data<T>() and dispatch throw begins with the op's name; a fault of a kernel does not.
        name = str(self.op).split(".")[1] if "." in str(self.op) else str(self.op)
        refused = re.match(rf"(\w+::)?{re.escape(name)}(\.\w+)?: ", str(error)) is not None
        if variant.name == "as given" or not refused or not self.refusals:
            return Row(variant.name, FAILED, f"the op raised {type(error).__name__}: {error}")
        return Row(variant.name, REFUSED, _first_line(error))

    def expected(self, call: Call) -> list[Any]:
        """What the reference returns, then what it leaves in the arguments that the op writes to."""
        call = call.copy()
        return _results(self.seeded(self.reference, call), call)

    def checked(self, call: Call, wanted: Sequence[Any], filled: bool = False) -> str:
        """Runs the op once; raises AssertionError for a difference; returns the largest error as text.

        filled: the caller has seen to it that new memory is filled."""
        call = call.copy()
        before = call.bytes()
        # Else memory of an earlier run may hold the right values where the op writes none.
        with contextlib.nullcontext() if filled else poisoned(call.device, "junk"):
            seen = _results(self.seeded(self.op, call), call)
        call.check_bytes(before)
        return compare(seen, wanted, self.tolerance)

    def seeded(self, function: Callable[..., Any], call: Call) -> Any:
        torch = torch_module()
        with torch.random.fork_rng(enabled=True):
            torch.manual_seed(self.seed)
            return function(*call.args, **call.kwargs)

    def whole_call_rows(self, call: Call) -> Iterator[Row]:
        wanted = self.expected(call)
        yield self.poisoned_row(call, wanted)
        yield self.repeated_row(call)
        yield self.other_stream_row(call, wanted)

    def poisoned_row(self, call: Call, wanted: Sequence[Any]) -> Row:
        """New memory is full of NaN, then full of zeros: a result element that the op never wrote differs once."""
        name = "poisoned outputs"
        for pattern in ("junk", "zero"):
            with poisoned(call.device, pattern) as why_not:
                if why_not:
                    return Row(name, SKIPPED, why_not)
                try:
                    self.checked(call, wanted, filled=True)
                except AssertionError as error:
                    return Row(name, FAILED, f"new memory was filled with {pattern}: {error}")
        return Row(name, PASSED)

    def repeated_row(self, call: Call) -> Row:
        runs = []
        for _ in range(3):
            again = call.copy()
            runs.append(_results(self.seeded(self.op, again), again))
        try:
            for run in runs[1:]:
                compare(run, runs[0], Tolerance(0.0, 0.0))
        except AssertionError as exact:
            try:
                for run in runs[1:]:
                    compare(run, runs[0], self.tolerance)
            except AssertionError as error:
                return Row("repeated", FAILED, f"a second run differs from the first: {error}")
            return Row("repeated", PASSED, f"within the tolerance, not bit for bit: {_first_line(exact)}")
        return Row("repeated", PASSED, "bit for bit")

    def other_stream_row(self, call: Call, wanted: Sequence[Any]) -> Row:
        """The arguments get their values late, on a side stream: an op on another stream reads too early."""
        name = "other stream"
        if call.device is None or call.device.type != "cuda":
            return Row(name, SKIPPED, "no GPU")
        torch = torch_module()
        late, side = call.copy(), torch.cuda.Stream(call.device)
        values = [tensor.clone() for tensor in late.tensors()]
        for tensor in late.tensors():
            tensor.zero_()
        torch.cuda.synchronize(call.device)
        try:
            with torch.cuda.stream(side):
                torch.cuda._sleep(20_000_000)
                for tensor, value in zip(late.tensors(), values):
                    tensor.copy_(value)
                seen = _results(self.seeded(self.op, late), late)
            side.synchronize()
            return Row(name, PASSED, compare(seen, wanted, self.tolerance))
        except AssertionError as error:
            return Row(name, FAILED, f"on a stream that is not the default one: {error}")


def _results(returned: Any, call: Call) -> list[Any]:
    found = list(returned) if isinstance(returned, (tuple, list)) else [] if returned is None else [returned]
    return found + call.written()


def _opcheck_rows(op: Any, call: Call, variants: Sequence[Variant]) -> Iterator[Row]:
    """All of opcheck on the arguments given; on their variants, whether the fake tells sizes and strides rightly."""
    overload = call.overload
    if overload is None:
        yield Row("opcheck", SKIPPED, f"{op} is not an op of torch.ops")
        return
    if not _has_fake(overload):
        yield Row("opcheck", SKIPPED, 'the op has no fake: add .fake("...") to its KILN_OP, or @op.fake')
        return
    yield _checked_row("opcheck", [Variant("as given", call)], lambda one: _opcheck(overload, one))
    yield _checked_row("fake of every form", variants, lambda one: check_fake(overload, one))


def _opcheck(overload: Any, call: Call) -> None:
    call = call.copy()
    torch_module().library.opcheck(overload, call.args, call.kwargs)


def _checked_row(name: str, variants: Sequence[Variant], check: Callable[[Call], None]) -> Row:
    for variant in variants:
        assert variant.call is not None
        try:
            check(variant.call)
        except Exception as error:
            return Row(name, FAILED, f"{variant.name}: {error}")
    return Row(name, PASSED)


def _has_fake(overload: Any) -> bool:
    return torch_module()._C._dispatch_has_kernel_for_dispatch_key(overload._name, "Meta")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
