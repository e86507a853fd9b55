# SPDX-License-Identifier: Apache-2.0
"""Which tensors try an elementwise op? Values of every dtype, and pairs of layouts by name."""

from __future__ import annotations

import random
from typing import Callable

import torch

SUMMABLE = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.bool, torch.complex32, torch.complex64, torch.complex128,
]  # fmt: skip
# torch promotes these beside a floating dtype only, and adds none of them.
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]


def values(shape: tuple[int, ...], dtype: torch.dtype, device: str, seed: int) -> torch.Tensor:
    """The whole range of the integers; of floating dtypes values near 1, among them a few without a
    fraction."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(dtype).to(device)
    if dtype.is_complex:
        parts = torch.randn((*shape, 2), generator=generator, dtype=torch.float64)
        return torch.view_as_complex(parts).to(dtype).to(device)
    if dtype.is_floating_point:
        return (
            (torch.randn(shape, generator=generator, dtype=torch.float64) * 4).to(dtype).to(device)
        )
    wide = torch.randint(-(1 << 62), 1 << 62, shape, generator=generator) * 2 + 1
    return wide.to(torch.int64).to(dtype).to(device)


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """The values as integers, with every "not a number" alike: its bits are not part of a sum's
    contract.

    So is every complex number that is not finite: torch.add multiplies by alpha = 1 + 0j, which
    makes NaN of inf * 0.
    """
    if tensor.is_complex():
        parts = torch.view_as_real(tensor)
        tensor = torch.where(
            torch.isfinite(parts).all(-1, keepdim=True), parts, torch.full_like(parts, torch.nan)
        )
    tensor = tensor.contiguous()
    if not tensor.is_floating_point():
        return tensor
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.view(integers).masked_fill(torch.isnan(tensor), -1)


def sum_of(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's sum. From torch 2.15 on bfloat16 and a complex number give bcomplex32, of which torch
    has no sum; kiln's is complex64, as torch's was before."""
    if str(torch.result_type(a, b)) == "torch.bcomplex32":
        return torch.add(a.to(torch.complex64), b.to(torch.complex64))
    return torch.add(a, b)


def strides_of_sum(a: torch.Tensor, b: torch.Tensor) -> tuple[int, ...]:
    """Of torch.add without copies. (On the CPU torch copies an operand that it must convert, and
    takes the copy's.)"""
    a, b = (torch.empty_strided(x.shape, x.stride(), dtype=torch.uint8) for x in (a, b))
    return torch.add(a, b).stride()


Make = Callable[..., torch.Tensor]


def pairs(make: Make) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """make(shape, seed) -> a new contiguous tensor."""
    square = make(40, 56, seed=3)
    return {
        "one element": (make(1, seed=1), make(1, seed=2)),
        "no dimension": (make(seed=1), make(seed=2)),
        "empty": (make(0, seed=1), make(0, seed=2)),
        "empty rows": (make(3, 0, seed=1), make(1, 0, seed=2)),
        "5": (make(5, seed=1), make(5, seed=2)),
        "one tile and more": (make(2 * 8192 + 77, seed=1), make(2 * 8192 + 77, seed=2)),
        "misaligned first": (make(3 * 8192 + 6, seed=1)[1:], make(3 * 8192 + 5, seed=2)),
        "misaligned second": (make(3 * 8192 + 9, seed=1), make(3 * 8192 + 12, seed=2)[3:]),
        "misaligned both": (make(3 * 8192 + 1, seed=1)[1:], make(3 * 8192 + 2, seed=2)[2:]),
        "misaligned and short": (make(9, seed=1)[1:], make(8, seed=2)),
        "no dimension beside many": (make(seed=1), make(1001, seed=2)),
        "broadcast row": (make(9, 130, seed=1), make(130, seed=2)),
        "broadcast odd row": (make(7, 131, seed=1), make(131, seed=2)),
        "broadcast misaligned row": (make(7, 131, seed=1), make(132, seed=2)[1:]),
        "broadcast column": (make(9, 1, seed=1), make(9, 133, seed=2)),
        "outer sum": (make(33, 1, seed=1), make(1, 70, seed=2)),
        "expanded": (make(1, 80, seed=1).expand(6, 80), make(6, 80, seed=2)),
        "expanded both": (make(1, 80, seed=1).expand(6, 80), make(6, 1, seed=2).expand(6, 80)),
        "transposed second": (make(56, 40, seed=1), square.t()),
        "transposed first": (square.t(), make(56, 40, seed=1)),
        "transposed both": (square.t(), make(40, 56, seed=4).t()),
        "transposed odd": (make(35, 67, seed=1), make(67, 35, seed=2).t()),
        "transposed batch": (make(3, 34, 40, seed=1), make(3, 40, 34, seed=2).transpose(1, 2)),
        "transposed beside broadcast": (make(40, 1, seed=1), make(34, 40, seed=2).t()),
        "permuted": (make(4, 5, 6, 7, seed=1).permute(2, 0, 3, 1), make(6, 4, 7, 5, seed=2)),
        "channels last": (
            make(2, 3, 5, 7, seed=1).to(memory_format=torch.channels_last),
            make(2, 3, 5, 7, seed=2).to(memory_format=torch.channels_last),
        ),
        "channels last and not": (
            make(2, 3, 5, 7, seed=1).to(memory_format=torch.channels_last),
            make(2, 3, 5, 7, seed=2),
        ),
        "every second": (make(401, seed=1)[::2], make(201, seed=2)),
        "every second row": (make(20, 100, seed=1)[::2], make(10, 100, seed=2)),
        "columns cut out": (make(11, 100, seed=1)[:, 3:90], make(11, 100, seed=2)[:, 5:92]),
        "short rows": (make(50, 8, seed=1)[:, :3], make(50, 3, seed=2)),
        "nine dimensions": (
            make(2, 1, 2, 3, 1, 2, 2, 1, 3, seed=1),
            make(1, 2, 2, 1, 3, 1, 2, 2, 3, seed=2),
        ),
        "the same tensor": (square, square),
        "overlapping": (make(30, seed=1).as_strided((9, 12), (2, 1)), make(9, 12, seed=2)),
    }


def random_pair(
    choice: random.Random, make: Callable[[tuple[int, ...], torch.dtype, int], torch.Tensor]
):
    """Two tensors of random dtypes that broadcast, each cut, permuted, stepped through or expanded
    at random."""
    dimensions = choice.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5])
    shape = [choice.choice([1, 2, 3, 4, 7, 8, 16, 33, 40]) for _ in range(dimensions)]
    while torch.Size(shape).numel() > 20000:
        shape[shape.index(max(shape))] = 2
    return tuple(
        _random_view(choice, make, shape, choice.choice(SUMMABLE), seed) for seed in (1, 2)
    )


def _random_view(
    choice: random.Random, make, shape: list[int], dtype: torch.dtype, seed: int
) -> torch.Tensor:
    wanted = shape[choice.randint(0, len(shape)) :] if choice.random() < 0.2 else list(shape)
    wanted = [1 if choice.random() < 0.15 else size for size in wanted]
    order = list(range(len(wanted)))
    if choice.random() < 0.5:
        choice.shuffle(order)
    steps = [choice.choice([1, 1, 1, 1, 2, 3]) for _ in wanted]
    before = [choice.choice([0, 0, 0, 1, 3]) for _ in wanted]
    after = [choice.choice([0, 0, 0, 1, 2]) for _ in wanted]
    held = [before[d] + (wanted[d] - 1) * steps[d] + 1 + after[d] for d in range(len(wanted))]
    whole = make(tuple(held[d] for d in order), dtype, seed)
    back = [order.index(d) for d in range(len(wanted))]
    view = whole.permute(back) if wanted else whole
    for d in range(len(wanted)):
        view = view[
            (slice(None),) * d
            + (slice(before[d], before[d] + (wanted[d] - 1) * steps[d] + 1, steps[d]),)
        ]
    if choice.random() < 0.2 and len(wanted) == len(shape):
        view = view.expand(
            [size if view.shape[d] == 1 else view.shape[d] for d, size in enumerate(shape)]
        )
    return view
