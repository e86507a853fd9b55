# SPDX-License-Identifier: Apache-2.0
"""Does an op do what its reference does? kiln.test runs both over the forms that arguments take in
practice.

A row of the report is one variant: the arguments as given, or in another layout, at another
alignment, or at other sizes; where the op has a backward, its gradients come after the values. Each
run also looks for bytes that the op had no right to change.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

from . import _progress
from ._checks.arguments import LAYOUTS, Call, Variant, variants_of, with_other_scalars
from ._checks.compare import Tolerance, compare
from ._checks.fakes import check_fake
from ._checks.gradients import (
    Gradients,
    NotDifferentiable,
    check_numerically,
    has_backward,
    with_leaves,
)
from ._checks.poison import poisoned, still_junk
from ._checks.reference import Reference, first_line, results_of, seeded
from ._checks.sanitize import errors_in, is_watched, sanitized
from ._fakes.syntax import DTYPES
from ._torch import torch_module
from .errors import KilnError, Mismatch

PASSED, FAILED, REFUSED, SKIPPED = "passed", "FAILED", "refused", "skipped"
# What kiln.test runs where its caller does not say: "" is nothing. pytest's --kiln-sanitize.
SANITIZE_CHECKS = "default"


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
        return self.table()

    def table(self, printed: Optional[Row] = None) -> str:
        """A line per variant; of `printed`, whose detail is printed above, the outcome alone."""
        width = max([len(row.variant) for row in self.rows], default=0)
        refused = ", ".join(row.variant for row in self.rows if row.outcome == REFUSED)
        lines = [
            f"{self.op}: {'passed' if self.passed else 'FAILED'}"
            + (f"; the op refused {refused}" if refused else "")
        ]
        for row in self.rows:
            detail = row.detail.splitlines()[0] if row.detail and row is not printed else ""
            lines.append(f"  {row.variant:<{width}}  {row.outcome:<7}  {detail}".rstrip())
        return "\n".join(lines)


def test(
    op: Any,
    *args: Any,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    seed: int = 0,
    against: Optional[Callable[..., Any]] = None,
    reference: Optional[Callable[..., Any]] = None,
    dtypes: Optional[Sequence[Any]] = None,
    gradients: bool = True,
    opcheck: bool = True,
    refusals: bool = True,
    sanitize: Optional[bool] = None,
    **kwargs: Any,
) -> Report:
    """Compares op(*args, **kwargs) with its reference over layouts, alignments and sizes, and their
    gradients where the op has a backward; raises Mismatch (an AssertionError) with the first
    difference, else returns a Report.

    The reference is evaluated in f64 where it takes f64; the first row says so where it does not.
    against: a function to compare with in place of the op's own reference; reference= is the same.
    rtol, atol: else chosen by dtype; atol is a part of the reference's own scale, so large values
        are not held to the standard of small ones. Integers must be equal.
    Numbers are varied too: a float becomes 0.1 and 1/3, an int one more, a bool the other. One that
        the reference refuses is skipped.
    dtypes: all of it once per dtype, floating arguments converted: [torch.float16, "bfloat16"].
    gradients: False leaves them out. Inputs are all floating tensors, or those that require a
    gradient, if any does. refusals: an op may refuse a form with a message of its own (it is then
    named in the report); False: that fails. opcheck: also torch.library.opcheck, which holds
    schema, fake and autograd against what the op does. sanitize: False leaves out the run under
    the engine's checkers for memory, races and barriers (without a GPU: `kiln sanitize`).
    """
    __tracebackhide__ = True  # pytest shows the test's line and the message
    if not callable(op):
        raise TypeError(
            f"kiln.test takes an op, such as ops.add of ops = kiln.load(...), not {op!r}"
        )
    for given in (against, reference):
        if given is not None and not callable(given):
            raise TypeError(
                f"the reference must be a function of the op's arguments, not {given!r}"
            )
    call = Call.of(op, args, kwargs)
    reference = against or reference or getattr(op, "reference_function", None)
    differentiable = (
        gradients and not call.written_names and has_backward(call.overload, call.device)
    )
    if reference is None and not (differentiable and call.overload is not None):
        raise KilnError(
            f"kiln.test({op}) has nothing to compare with",
            "the op has no reference",
            f"write @{op}.reference above a function that does the same in plain torch, or pass "
            f"against=FUNCTION",
        )
    tolerance = Tolerance(rtol, atol)
    report = Report(str(op))
    for dtype in [None] if dtypes is None else [_dtype_named(one) for one in dtypes]:
        given = call if dtype is None else call.map(_converted(dtype))
        checks = SANITIZE_CHECKS if sanitize is None else "default" if sanitize else ""
        runner = _Runner(op, reference, tolerance, seed, refusals, checks)
        rows = _shown(op, runner.rows(given, gradients, differentiable, opcheck))
        name = "" if dtype is None else str(dtype).replace("torch.", "") + ": "
        report.rows += [replace(row, variant=name + row.variant) for row in rows]
    failed = [row for row in report.rows if row.outcome == FAILED]
    if failed:
        first = failed[0]
        raise Mismatch(f"{op}, {first.variant}: {first.detail}\n\n{report.table(first)}", report)
    return report


def _shown(op: Any, rows: Iterator[Row]) -> list[Row]:
    """All of them, with a line on a terminal that says how far it is."""
    done = []
    with _progress.line() as show:
        show(f"testing {op}")
        for row in rows:
            done.append(row)
            show(f"testing {op}: {len(done)} done, the last: {row.variant}")
    return done


# pytest must not take this function for a test of its own.
test.__test__ = False  # type: ignore[attr-defined]


class _Runner:
    def __init__(
        self,
        op: Any,
        reference: Optional[Callable[..., Any]],
        tolerance: Tolerance,
        seed: int,
        refusals: bool,
        checks: str = "",
    ) -> None:
        self.op, self.tolerance, self.seed, self.refusals = op, tolerance, seed, refusals
        self.checks = checks
        # By somebody else: a watch that begins while the op runs is the op's own.
        self.watched = bool(checks) and is_watched()
        self.reference = None if reference is None else Reference(reference, seed)

    def rows(
        self, call: Call, gradients: bool, differentiable: bool, opcheck: bool
    ) -> Iterator[Row]:
        variants: list[Variant] = []
        if self.reference is None:
            yield Row("as given", SKIPPED, "the op has no reference; only its backward is checked")
            yield self.numeric_row(call)
        else:
            first = self.row(Variant("as given", call))
            if first.outcome == FAILED:
                # A race or a bad address explains wrong values better than they do.
                yield self.explained(first, call)
                return
            yield first
            for variant in variants_of(call):
                row = self.row(variant)
                yield row
                if row.outcome == PASSED:
                    variants.append(variant)
            yield from (self.row(variant) for variant in with_other_scalars(call))
            yield self.sanitized_row(call, variants)
            yield from self.whole_call_rows(call)
            if gradients:
                yield from self.gradient_rows(call, variants, differentiable)
        if opcheck:
            yield from _opcheck_rows(
                self.op, with_leaves(call) if differentiable else call, variants
            )

    def row(self, variant: Variant) -> Row:
        if variant.call is None:
            return Row(variant.name, SKIPPED, variant.why)
        assert self.reference is not None
        try:
            expected = self.reference.expected(variant.call)
        except Exception as error:  # the reference decides which sizes make sense
            return Row(
                variant.name, SKIPPED, f"the reference does not take it: {first_line(error)}"
            )
        note = (
            f"; the reference was not evaluated in f64: {expected.why_not_f64}"
            if expected.why_not_f64
            else ""
        )
        try:
            return Row(variant.name, PASSED, self.checked(variant.call, expected.results) + note)
        except AssertionError as error:
            return Row(variant.name, FAILED, str(error))
        except Exception as error:
            return self.raised(variant, error)

    def raised(self, variant: Variant, error: Exception) -> Row:
        if variant.name == "as given" or not self.refused(error) or not self.refusals:
            return Row(variant.name, FAILED, f"the op raised {type(error).__name__}: {error}")
        return Row(variant.name, REFUSED, first_line(error))

    def refused(self, error: Exception, by_any_op: bool = False) -> bool:
        """What KILN_CHECK, data<T>() and dispatch throw begins with the op's name; a fault of a
        kernel does not.

        by_any_op: of the same library, as a backward may call."""
        library, _, name = str(self.op).partition(".")
        names = [name.split(".")[0] if name else library]
        if by_any_op and name:
            names += vars(getattr(torch_module().ops, library))
        pattern = "|".join(re.escape(one) for one in names)
        return re.match(rf"(\w+::)?({pattern})(\.\w+)?: ", str(error)) is not None

    def checked(self, call: Call, wanted: Sequence[Any], filled: bool = False) -> str:
        """Runs the op once; raises AssertionError for a difference; returns the largest error as
        text.

        filled: the caller has seen to it that new memory is filled."""
        given, call = call, call.copy()
        before = call.bytes()
        # Else memory of an earlier run may hold the right values where the op writes none.
        with contextlib.nullcontext() if filled else poisoned(call.device, "junk"):
            seen = self.run(call)
        call.check_bytes(before)
        try:
            return self.compared(seen, wanted, given)
        except AssertionError as error:
            if filled or not (count := still_junk(seen)):
                raise
            raise AssertionError(f"{error}; the op did not write {count} of them") from None

    def compared(self, seen: Sequence[Any], wanted: Sequence[Any], call: Call) -> str:
        try:
            return compare(seen, wanted, self.tolerance)
        except AssertionError:
            # Where terms cancel, the result does not tell how far a right op may be off.
            assert self.reference is not None
            if self.tolerance.atol is not None or (terms := self.reference.terms(call)) is None:
                raise
            return compare(seen, wanted, self.tolerance, terms=terms)

    def run(self, call: Call) -> list[Any]:
        with seeded(self.seed):
            return results_of(self.op(*call.args, **call.kwargs), call)

    def sanitized_row(self, call: Call, variants: Sequence[Variant]) -> Row:
        """Of the arguments as given, and of the smallest sizes that the op takes."""
        name = "sanitize"
        if not self.checks:
            return Row(name, SKIPPED, "sanitize=False")
        if call.device is not None and call.device.type == "cuda":
            return Row(name, SKIPPED, "the checkers watch the engine, not a GPU")
        small = [one for one in variants if re.fullmatch(r"size \d+ -> [01]", one.name)]
        launches = 0
        for variant in [Variant("as given", call), *small]:
            assert variant.call is not None
            again = variant.call.copy()
            found, why_not = sanitized(self.checks, functools.partial(self.run, again))
            if not why_not and "launches" not in found:
                return Row(name, FAILED, "not checked: the op ends the watch over it")
            if why_not and self.watched:
                return Row(name, SKIPPED, f"{why_not}: it reports what it finds")
            if why_not and not is_watched():
                return Row(name, SKIPPED, why_not)
            if why_not:
                return Row(
                    name, FAILED, f"not checked: the op starts a watch of its own ({why_not})"
                )
            if errors_in(found):
                return Row(name, FAILED, f"{variant.name}: {found['report']}")
            launches += found["launches"]
        if not launches:
            return Row(name, SKIPPED, "nothing ran on the engine")
        checks = ", ".join(found["checks"])
        return Row(name, PASSED, f"{checks}: nothing found in {launches} launches")

    def explained(self, row: Row, call: Call) -> Row:
        try:
            sanitized_row = self.sanitized_row(call, [])
        except Exception:
            return row
        if sanitized_row.outcome != FAILED:
            return row
        return replace(row, detail=f"{row.detail}\n\n{sanitized_row.detail}")

    def gradient_rows(
        self, call: Call, variants: Sequence[Variant], differentiable: bool
    ) -> Iterator[Row]:
        """Of the arguments as given a row per input; of each other form that the op takes, one
        row."""
        assert self.reference is not None
        if not differentiable:
            writes = "it writes to its arguments, and torch differentiates only ops that do not"
            no_backward = f"the op has no backward: @{self.op}.backward gives it one"
            yield Row("gradients", SKIPPED, writes if call.written_names else no_backward)
            return
        check = Gradients(self.op, self.reference, self.tolerance, self.seed)
        found: dict[str, str] = {}
        first = self.gradient_row("gradients", lambda: found.update(check.check(call)))
        if first.outcome != PASSED:
            yield first
            return
        yield from (Row(f"gradient of {name}", PASSED, detail) for name, detail in found.items())
        yield self.gradient_row("gradients of .sum()", lambda: check.check(call, ones=True))
        results = check.results(call)
        for index in results if len(results) > 1 else []:
            name = f"gradients of result {index}"
            yield self.gradient_row(name, functools.partial(check.check, call, only=index))
        for variant in variants:
            name, layout = (
                f"gradients, {variant.name}",
                variant.name if variant.name in LAYOUTS else "",
            )
            yield self.gradient_row(name, functools.partial(check.check, variant.call, layout))

    def gradient_row(self, name: str, check: Callable[[], Any]) -> Row:
        try:
            details = check()
            return Row(
                name,
                PASSED,
                "; ".join(f"{k}: {v}" for k, v in details.items() if v) if details else "",
            )
        except NotDifferentiable as error:
            return Row(name, SKIPPED, str(error))
        except AssertionError as error:
            return Row(name, FAILED, str(error))
        except Exception as error:
            if name != "gradients" and self.refusals and self.refused(error, by_any_op=True):
                return Row(name, REFUSED, first_line(error))
            return Row(name, FAILED, f"the backward raised {type(error).__name__}: {error}")

    def numeric_row(self, call: Call) -> Row:
        detail: dict[str, str] = {}
        row = self.gradient_row(
            "gradients", lambda: detail.update(done=check_numerically(self.op, call))
        )
        return replace(row, detail=row.detail or detail.get("done", ""))

    def whole_call_rows(self, call: Call) -> Iterator[Row]:
        assert self.reference is not None
        wanted = self.reference.expected(call).results
        yield self.poisoned_row(call, wanted)
        yield self.repeated_row(call)
        yield self.other_stream_row(call, wanted)

    def poisoned_row(self, call: Call, wanted: Sequence[Any]) -> Row:
        """New memory is full of NaN, then full of zeros: a result element that the op never wrote
        differs once."""
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
            runs.append(self.run(again))
        try:
            for run in runs[1:]:
                compare(run, runs[0], Tolerance(0.0, 0.0))
        except AssertionError as exact:
            try:
                for run in runs[1:]:
                    self.compared(run, runs[0], call)
            except AssertionError as error:
                return Row("repeated", FAILED, f"a second run differs from the first: {error}")
            return Row(
                "repeated", PASSED, f"within the tolerance, not bit for bit: {first_line(exact)}"
            )
        return Row("repeated", PASSED, "bit for bit")

    def other_stream_row(self, call: Call, wanted: Sequence[Any]) -> Row:
        """The arguments get their values late, on a side stream: an op on another stream reads too
        early."""
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
                seen = self.run(late)
            side.synchronize()
            return Row(name, PASSED, self.compared(seen, wanted, call))
        except AssertionError as error:
            return Row(name, FAILED, f"on a stream that is not the default one: {error}")


def _dtype_named(given: Any) -> Any:
    """A torch.dtype as it is, or by name: "f16" as in fake rules, "float16" as in torch."""
    torch = torch_module()
    found = getattr(torch, DTYPES.get(given, given), None) if isinstance(given, str) else given
    if isinstance(found, torch.dtype) and found.is_floating_point:
        return found
    raise KilnError(
        f"kiln.test has no dtype {given!r}",
        "dtypes= converts the floating-point arguments",
        'pass torch dtypes or names: dtypes=[torch.float16, "bf16"]',
    )


def _converted(dtype: Any) -> Callable[[Any, bool], Any]:
    """Floating tensors in another dtype, in the same layout where it has no holes; others as they
    are."""
    return lambda tensor, _written: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor


def _opcheck_rows(op: Any, call: Call, variants: Sequence[Variant]) -> Iterator[Row]:
    """All of opcheck on the arguments given; on their variants, whether the fake tells sizes and
    strides rightly."""
    overload = call.overload
    if overload is None:
        yield Row("opcheck", SKIPPED, f"{op} is not an op of torch.ops")
        return
    if not _has_fake(overload):
        yield Row(
            "opcheck", SKIPPED, 'the op has no fake: add .fake("...") to its KILN_OP, or @op.fake'
        )
        return
    yield _checked_row("opcheck", [Variant("as given", call)], lambda one: _opcheck(overload, one))
    yield _checked_row("fake of every form", variants, lambda one: check_fake(overload, one))


def _opcheck(overload: Any, call: Call) -> None:
    call = call.copy()
    # A line per step of torch.compile, which pytest would print below a failure.
    trace = logging.getLogger("torch.__trace")
    before, trace.propagate = trace.propagate, False
    try:
        torch_module().library.opcheck(overload, call.args, call.kwargs)
    finally:
        trace.propagate = before


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
