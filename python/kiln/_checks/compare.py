# SPDX-License-Identifier: Apache-2.0
"""Are two results the same number for number, within what their dtype can promise?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._torch import torch_module

# About 80 units in the last place for f32, 16 for the 16-bit types: room for another order of
# summation, not for a bug.
_RTOL = {
    "float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5, "float16": 8e-3,
    "complex32": 8e-3, "bfloat16": 3e-2, "float8_e4m3fn": 0.125, "float8_e5m2": 0.25,
}  # fmt: skip


@dataclass(frozen=True)
class Tolerance:
    rtol: Optional[float] = None
    atol: Optional[float] = None

    def of(self, dtype: Any, scale: float) -> tuple[float, float]:
        """(rtol, atol). Cancellation leaves an error of the operands' size, so atol follows the
        scale of the result."""
        default = _RTOL.get(str(dtype).replace("torch.", ""), 0.0)
        rtol = default if self.rtol is None else self.rtol
        return rtol, (rtol * scale if self.atol is None else self.atol)


def compare(
    seen: Sequence[Any], wanted: Sequence[Any], tolerance: Tolerance, what: str = ""
) -> str:
    """Raises AssertionError at the first difference; else says how large the largest error is.

    what: the name of the only value; else it is a result of the op."""
    if len(seen) != len(wanted):
        raise AssertionError(f"the op gave {len(seen)} results, the reference {len(wanted)}")
    worst = 0.0
    for index, (ours, theirs) in enumerate(zip(seen, wanted)):
        name = what or ("the result" if len(seen) == 1 else f"result {index}")
        if isinstance(ours, (list, tuple)):
            compare(ours, theirs, tolerance)
        elif isinstance(ours, torch_module().Tensor):
            worst = max(worst, _compare_tensors(name, ours, theirs, tolerance))
        elif ours != theirs and not _close(ours, theirs, tolerance):
            raise AssertionError(f"{name}: got {ours!r}, expected {theirs!r}")
    return f"largest error {worst:.3g}" if worst else "exact"


def _close(ours: Any, theirs: Any, tolerance: Tolerance) -> bool:
    if not isinstance(ours, float):
        return False
    rtol, atol = tolerance.of("float32", abs(theirs))
    return abs(ours - theirs) <= atol + rtol * abs(theirs) or (ours != ours and theirs != theirs)


def _compare_tensors(name: str, seen: Any, wanted: Any, tolerance: Tolerance) -> float:
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
    exact = not (seen.dtype.is_floating_point or seen.dtype.is_complex)
    a, b = (_wide(tensor) for tensor in (seen, wanted))
    if exact:
        wrong, error, bound = a != b, None, ""
    else:
        finite = torch.isfinite(b)
        scale = b[finite].abs().square().mean().sqrt().item() if finite.any() else 0.0
        rtol, atol = tolerance.of(seen.dtype, scale)
        error = torch.where(
            torch.isfinite(a) & finite,
            (a - b).abs(),
            torch.zeros((), dtype=torch.float64, device=a.device),
        )
        same = (
            (a == b)
            | (torch.isnan(a) & torch.isnan(b))
            | (torch.isfinite(a) & finite & (error <= atol + rtol * b.abs()))
        )
        wrong, bound = ~same, f" (rtol {rtol:.3g}, atol {atol:.3g})"
    if wrong.any():
        count = int(wrong.sum().item())
        place = tuple(int(i) for i in wrong.nonzero()[0].tolist())
        raise AssertionError(
            f"{name} differs at {list(place)}: got {seen[place].item()!r}, "
            f"expected {wanted[place].item()!r}{bound}; {count} of {seen.numel()} elements differ"
        )
    return 0.0 if error is None else float(error.max().item())


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
