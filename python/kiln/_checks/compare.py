# SPDX-License-Identifier: Apache-2.0
"""Are two results the same number for number, within what their dtype can promise?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .. import _measure
from .._torch import torch_module


@dataclass(frozen=True)
class Tolerance:
    rtol: Optional[float] = None
    atol: Optional[float] = None

    def of(self, dtype: Any, expected: Any) -> tuple[float, float]:
        """(rtol, atol) for what is expected, a tensor in f64."""
        scale = (0.0, 0.0) if self.atol is not None else _scale_of(expected)
        return _measure.tolerance(dtype, scale, self.rtol, self.atol)


def _scale_of(values: Any) -> tuple[float, float]:
    """Root mean square of the finite values, and the median of their magnitudes that are not 0, as
    src/host/compare.cpp takes them."""
    torch = torch_module()
    magnitudes = values[torch.isfinite(values)].abs()
    nonzero = magnitudes[magnitudes > 0]
    if nonzero.numel() == 0:
        return 0.0, 0.0
    # The square of 1e200 is not finite, that of a share of the largest value is.
    largest = nonzero.max()
    rms = (magnitudes / largest).square().mean().sqrt() * largest
    median = nonzero.kthvalue(nonzero.numel() // 2 + 1).values
    return rms.item(), median.item()


def compare(
    seen: Sequence[Any],
    wanted: Sequence[Any],
    tolerance: Tolerance,
    what: str = "",
    terms: Optional[Sequence[Any]] = None,
) -> str:
    """Raises AssertionError at the first difference; else says how large the largest error is.

    what: the name of the only value; else it is a result of the op. terms: of each result how large
    its terms are, where they have been measured (terms.py); an error may be a share of them."""
    if len(seen) != len(wanted):
        raise AssertionError(f"the op returned {len(seen)} results, the reference {len(wanted)}")
    worst = 0.0
    for index, (ours, theirs) in enumerate(zip(seen, wanted)):
        name = what or ("the result" if len(seen) == 1 else f"result {index}")
        if isinstance(ours, (list, tuple)):
            compare(ours, theirs, tolerance)
        elif isinstance(ours, torch_module().Tensor):
            size = terms[index] if terms is not None and index < len(terms) else None
            worst = max(worst, _compare_tensors(name, ours, theirs, tolerance, size))
        elif ours != theirs and not _close(ours, theirs, tolerance):
            raise AssertionError(f"{name}: got {ours!r}, expected {theirs!r}")
    return f"largest error {worst:.3g}" if worst else "exact"


def _close(ours: Any, theirs: Any, tolerance: Tolerance) -> bool:
    if not isinstance(ours, float) or not isinstance(theirs, (int, float)):
        return False
    torch = torch_module()
    # An op computes a float that it returns in f32, more often than not.
    rtol, atol = tolerance.of(torch.float32, torch.tensor([theirs], dtype=torch.float64))
    return abs(ours - theirs) <= atol + rtol * abs(theirs) or (ours != ours and theirs != theirs)


def _compare_tensors(
    name: str, seen: Any, wanted: Any, tolerance: Tolerance, terms: Any = None
) -> float:
    torch = torch_module()
    if not isinstance(wanted, torch.Tensor):
        raise AssertionError(f"{name} is a tensor, the reference gave {wanted!r}")
    for fact, ours, theirs in (
        ("sizes", tuple(seen.shape), tuple(wanted.shape)),
        ("dtype", seen.dtype, wanted.dtype),
        ("device", seen.device, wanted.device),
    ):
        if ours != theirs:
            raise AssertionError(f"{name} has {fact} {ours}, expected {theirs}")
    if seen.numel() == 0:
        return 0.0
    a, b = (_wide(tensor) for tensor in (seen, wanted))
    if seen.dtype.is_floating_point or seen.dtype.is_complex:
        rtol, atol = tolerance.of(seen.dtype, b)
        finite = torch.isfinite(a) & torch.isfinite(b)
        error = torch.where(finite, (a - b).abs(), torch.zeros_like(b.abs()))
        scale = b.abs() if terms is None or terms.shape != b.shape else b.abs() + terms
        within = finite & (error <= atol + rtol * scale)
        wrong = ~((a == b) | (torch.isnan(a) & torch.isnan(b)) | within)
    elif tolerance.atol:
        rtol, atol = 0.0, tolerance.atol
        error = (seen.double() - wanted.double()).abs()
        wrong = error > atol
    else:
        rtol, atol, error, wrong = 0.0, 0.0, None, a != b
    bound = "" if error is None else f" (rtol {rtol:.3g}, atol {atol:.3g})"
    if wrong.any():
        count = int(wrong.sum().item())
        place = tuple(int(i) for i in wrong.nonzero()[0].tolist())
        raise AssertionError(
            f"{name} differs at {list(place)}: got {shortest(seen[place])}, "
            f"expected {shortest(wanted[place])}{bound}; {count} of {seen.numel()} elements differ"
        )
    return 0.0 if error is None else float(error.max().item())


def shortest(element: Any) -> str:
    """The value of a tensor of one element, with as many digits as its dtype can tell apart: 17 of
    an f32 would be noise."""
    torch = torch_module()
    value, dtype = element.item(), element.dtype
    if not dtype.is_floating_point or value != value or value in (float("inf"), float("-inf")):
        return repr(value)
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        if torch.tensor(float(text), dtype=torch.float64).to(dtype).item() == value:
            return text if any(mark in text for mark in ".en") else text + ".0"
    return repr(value)


def _wide(tensor: Any) -> Any:
    torch = torch_module()
    tensor = tensor.detach()
    if tensor.dtype.is_complex:
        return tensor.to(torch.complex128)
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.float64)
    # There is no comparison kernel for the wide unsigned types; their bits compare as well.
    views = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
    return tensor.contiguous().view(views[tensor.dtype]) if tensor.dtype in views else tensor
