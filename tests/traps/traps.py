# SPDX-License-Identifier: Apache-2.0
"""Which tricks make a benchmark lie? Each is a stand-in for torch.add(a, b) that a naive timer
would call fast or right.

A row of TRAPS: the name that kiln.bench must give it, how to make the function, and how kiln.bench
is to be called.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable

import torch


def replay_by_pointer() -> Callable:
    kept: dict[tuple[int, int], torch.Tensor] = {}

    def add(a, b):
        key = (a.data_ptr(), b.data_ptr())
        if key not in kept:
            kept[key] = a + b
        return kept[key]

    return add


def replay_by_shape() -> Callable:
    kept: dict[Any, torch.Tensor] = {}

    def add(a, b):
        return kept.setdefault(a.shape, a + b) if a.shape not in kept else kept[a.shape]

    return add


def replay_of_a_sum() -> Callable:
    """Values that only change places have the sum that they had."""
    kept: dict[Any, torch.Tensor] = {}

    def total(a, b):
        if a.shape not in kept:
            kept[a.shape] = a.sum() + b.sum()
        return kept[a.shape].clone()

    return total


def _total(a, b):
    return a.sum() + b.sum()


def replay_after_a_while() -> Callable:
    """Right until it has been used for a moment."""
    begin, kept = [0.0], {}

    def add(a, b):
        begin[0] = begin[0] or time.perf_counter()
        key = (a.data_ptr(), b.data_ptr())
        if time.perf_counter() - begin[0] < 0.02 or key not in kept:
            kept[key] = a + b
        return kept[key]

    return add


def replay_by_contents() -> Callable:
    """Keeps what it gave for the contents that it saw last, known by a few elements."""
    last: list[Any] = [None, None]

    def add(a, b):
        seen = [*a[:: max(1, a.numel() // 5)].tolist(), *b[:: max(1, b.numel() // 5)].tolist()]
        if seen != last[0]:
            for _ in range(400):
                last[1] = a + b
            last[0] = seen
        return last[1].clone()

    return add


def imprecise_later() -> Callable:
    """Exact in the first call only, as a narrow sum of friendly values is."""
    calls = [0]

    def add(a, b):
        calls[0] += 1
        return a + b if calls[0] == 1 else (a.bfloat16() + b.bfloat16()).float()

    return add


def replay_when_unwatched() -> Callable:
    """Right while it is looked at closely; from the fortieth call on it gives what it gave
    before."""
    calls, kept = [0], {}

    def add(a, b):
        calls[0] += 1
        key = (a.data_ptr(), b.data_ptr())
        if calls[0] < 40 or key not in kept:
            kept[key] = a + b
        return kept[key]

    return add


def batch_and_skip() -> Callable:
    """Works in every second call."""
    state: list[Any] = [0, None]

    def add(a, b):
        state[0] += 1
        if state[0] % 2 or state[1] is None or state[1].shape != a.shape:
            state[1] = a + b
        return state[1]

    return add


def output_half_written() -> Callable:
    def add(a, b):
        out = torch.empty_like(a)
        half = a.numel() // 2
        torch.add(a[:half], b[:half], out=out[:half])
        return out

    return add


def mutates_input() -> Callable:
    def add(a, b):
        out = a + b
        a[:1] += 1
        return out

    return add


def zeros() -> Callable:
    return lambda a, b: torch.zeros_like(a)


def all_nan() -> Callable:
    return lambda a, b: torch.full_like(a, float("nan"))


def lower_precision() -> Callable:
    return lambda a, b: (a.bfloat16() + b.bfloat16()).float()


def other_stream() -> Callable:
    side = torch.cuda.Stream()

    def add(a, b):
        out = torch.empty_like(a)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(40):
                torch.add(a, b, out=out)
        return out

    return add


def late_write() -> Callable:
    side = torch.cuda.Stream()

    def add(a, b):
        out = torch.empty_like(a)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(3_000_000)
            torch.add(a, b, out=out)
        return out

    return add


def does_nothing() -> Callable:
    kept: list[Any] = []

    def add(a, b):
        if not kept:
            kept.append(a + b)
        return kept[0]

    return add


def synchronises() -> Callable:
    def add(a, b):
        out = a + b
        out[0].item()
        return out

    return add


def slow_first_call() -> Callable:
    calls = [0]

    def add(a, b):
        calls[0] += 1
        if calls[0] == 1:
            time.sleep(0.2)
        return a + b

    return add


def leaks() -> Callable:
    kept: list[Any] = []

    def add(a, b):
        kept.append(a + b)
        return kept[-1]

    return add


@dataclass
class Trap:
    name: str
    make: Callable[[], Callable]
    options: dict[str, Any] = field(default_factory=dict)  # of kiln.bench
    elements: int = 1 << 22
    gpu_only: bool = False
    refused: bool = True  # else a finding
    right: Callable = torch.add


TRAPS = [
    Trap("replay by pointer", replay_by_pointer),
    Trap("replay by shape", replay_by_shape),
    Trap("replay by pointer", replay_when_unwatched),
    Trap("replay by pointer", replay_after_a_while),
    Trap("replay by shape", replay_of_a_sum, right=_total),
    Trap("replay by contents", replay_by_contents),
    Trap("batch-and-skip", batch_and_skip),
    Trap("output not written", output_half_written),
    Trap("input mutated", mutates_input),
    Trap("zeros within tolerance", zeros),
    Trap("NaN as wildcard", all_nan),
    Trap("precision dropped", lower_precision),
    Trap("precision dropped", imprecise_later),
    Trap("other stream", other_stream, {"check": False}, 1 << 24, gpu_only=True),
    Trap("late asynchronous write", late_write, {}, 1 << 22, gpu_only=True),
    Trap(
        "impossible speed",
        does_nothing,
        {"check": False, "bytes": 12 << 24},
        1 << 24,
        gpu_only=True,
    ),
    Trap("allocates without end", leaks, {"check": False}, 1 << 22),
    Trap("synchronises inside", synchronises, {}, 1 << 20, gpu_only=True, refused=False),
    Trap("slow first call", slow_first_call, {"check": False}, 1 << 16, refused=False),
    Trap(
        "L2-resident inputs",
        lambda: torch.add,
        {"check": False},
        1 << 21,
        gpu_only=True,
        refused=False,
    ),
    Trap(
        "near the resolution",
        lambda: torch.add,
        {"check": False},
        1 << 10,
        gpu_only=True,
        refused=False,
    ),
]
