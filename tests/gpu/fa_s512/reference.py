# SPDX-License-Identifier: Apache-2.0
"""What is right, how far off may a kernel be, and where is the first element that is not?"""

from __future__ import annotations

from typing import Optional

import torch


def attention(q, k, v, causal: bool, scale: Optional[float] = None, dtype=torch.float64):
    """(out, lse) by plain matrix products in `dtype`; torch's mask, row i sees keys 0 ... i."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    repeat = q.shape[1] // k.shape[1]
    q, k, v = (
        x.to(dtype) for x in (q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1))
    )
    scores = (q @ k.transpose(-1, -2)) * scale
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    weights = torch.softmax(scores, -1)
    return weights @ v, torch.logsumexp(scores.float() if dtype != torch.float64 else scores, -1)


def allowed_error(
    q, k, v, causal: bool, right: torch.Tensor, scale: Optional[float] = None
) -> float:
    """Twice that of plain PyTorch in the tensors' own dtype, and twice the rounding of a sum near
    the values."""
    plain = attention(q, k, v, causal, scale, dtype=q.dtype)[0].double()
    rounded = right.to(q.dtype)
    return (
        2 * (plain - right).abs().max() + 2 * ((rounded + 0.3 - 0.3).double() - right).abs().max()
    ).item()


def first_mismatches(got: torch.Tensor, right: torch.Tensor, allowed: float, most: int = 6) -> str:
    """Coordinates and values, how many are wrong, and in which rows and columns they lie."""
    got, right = got.double(), right.double()
    wrong = ~((got - right).abs() <= allowed) & ~((got == right) | (got.isnan() & right.isnan()))
    where = wrong.nonzero()
    lines = [
        f"{len(where)} of {got.numel()} elements are wrong (allowed error {allowed:.3g}), sizes "
        f"{list(got.shape)}"
    ]
    for at in where[:most].tolist():
        lines.append(
            f"  {at}: {got[tuple(at)].item():.6g}, should be {right[tuple(at)].item():.6g}"
        )
    for d in range(got.ndim):
        seen = where[:, d].unique().tolist()
        shown = str(seen) if len(seen) <= 12 else f"{seen[:6]} ... {seen[-6:]} ({len(seen)})"
        lines.append(f"  dimension {d}: {shown}")
    return "\n".join(lines) if len(where) else ""


def check(piece: str, got: torch.Tensor, right: torch.Tensor, allowed: float) -> None:
    text = first_mismatches(got, right, allowed)
    assert not text, f"{piece}: {text}"
