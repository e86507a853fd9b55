# SPDX-License-Identifier: Apache-2.0
"""Which other contents may a tensor have? New ones for each check, so that an op can't know them.

Moved values would not do: a sum, a maximum and a mean stay the same, and an op that keeps its
result passes. Drawn ones would not do either: an index must stay an index, a variance positive.
"""

from __future__ import annotations

from typing import Any, Optional

from .._torch import torch_module

_LOOKED_AT = 4096  # elements that tell whether values repeat


def renew(tensor: Any, random: Any = None) -> None:
    """Other contents, in place, within the range of the old ones; sums and maxima change too.

    Values that hardly repeat are moved towards one of them, each by a part of its own. Values that
    repeat (flags, classes, narrow floats) are drawn again from themselves, more often one than the
    others. Integers that are all different are only permuted: they may be a permutation."""
    torch = torch_module()
    if tensor.numel() < 1 or overlaps_itself(tensor):
        return
    with torch.no_grad():
        values = tensor.detach().reshape(-1)
        new = _renewed(values, random)
        if new is not None:
            tensor.detach().copy_(new.reshape(tensor.shape))


def overlaps_itself(tensor: Any) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride()))


def generator_for(tensor: Any) -> Any:
    """Not the caller's: a benchmark leaves torch's own random numbers alone."""
    random = torch_module().Generator(device=tensor.device)
    random.seed()
    return random


def _renewed(values: Any, random: Any) -> Optional[Any]:
    torch = torch_module()
    count = values.numel()
    random = random if random is not None else generator_for(values)

    def draws(most: int, size: int) -> Any:
        return torch.randint(most, (size,), generator=random, device=values.device)

    def parts() -> Any:
        dtype = torch.float64 if values.dtype in (torch.float64, torch.complex128) else None
        drawn = torch.rand(count, generator=random, device=values.device, dtype=dtype)
        return drawn.to(values.dtype)

    floating = values.dtype.is_floating_point or values.dtype.is_complex
    wide = floating and values.element_size() > 1
    if wide and _all_equal(values):  # ones, most often
        return values * (1 - 0.5 * parts())
    if count < 2:
        return values * (1 - 0.5 * parts()) if wide else None
    if not _repeats(values):
        if not wide:
            return values.roll(1 + int(draws(count - 1, 1)))
        pivot = values[draws(count, 1)]
        moved = values + 0.5 * parts() * (pivot - values)
        return torch.where(torch.isfinite(moved), moved, values).roll(1 + int(draws(count - 1, 1)))
    # A float of one byte has few operations: its bits are moved.
    plain = values if wide or not floating else values.view(torch.uint8)
    drawn = plain[draws(count, count)]
    pivot = plain[draws(count, 1)]
    often = torch.rand(count, generator=random, device=values.device) < 0.25
    return torch.where(often, pivot, drawn).view(values.dtype)


def _all_equal(values: Any) -> bool:
    return bool((values == values[0]).all())


def _repeats(values: Any) -> bool:
    torch = torch_module()
    if values.element_size() == 1:
        return True
    some = values[:_LOOKED_AT]
    if some.dtype.is_complex:
        some = torch.view_as_real(some.resolve_conj())[:, 0].contiguous()
    return some.unique().numel() < 0.9 * some.numel()


def fingerprint(results: list[Any]) -> tuple[Any, ...]:
    """Equal for equal results, bit by bit at up to a thousand places."""
    torch = torch_module()
    marks: list[Any] = []
    for one in results:
        if not isinstance(one, torch.Tensor):
            marks.append(repr(one))
            continue
        flat = one.detach().reshape(-1)
        some = flat[:: max(1, flat.numel() // 1024)].cpu().resolve_conj().resolve_neg()
        bits = some.contiguous().view(torch.uint8).tolist() if some.numel() else []
        marks.append((str(one.dtype), tuple(one.shape), bytes(bits)))
    return tuple(marks)
