# SPDX-License-Identifier: Apache-2.0
"""How long does a kernel take by kiln's CUPTI trace, by torch.profiler's and by ncu? In turns,
round by round, so that the state of the GPU falls on all alike; and what of a loop changes the
answer.

The equal loop of torch.profiler does what kiln's trace does: a short kernel that holds the stream
while the host enqueues, a memset of twice the L2, the call, a wait. What it differs in then is the
recorder alone.
"""

from __future__ import annotations

import csv
import ctypes
import os
import random
import re
import shutil
import statistics
import subprocess
from collections.abc import Callable
from typing import Any

import kiln
import torch

# One short pass of the core for its trace of the kernels; 1000 calls of a short kernel.
TRACE = {
    "min_warm_up_s": 0.01, "max_warm_up_s": 0.05, "min_time_s": 0.01, "max_time_s": 0.05,
    "min_samples": 5, "side": False, "roof": False, "rotations": 1, "precision_percent": 50,
}  # fmt: skip
# 30 us: the host enqueues a memset and a call in that time, under a profiler too
SLEEP_CYCLES = 60_000
NCU_LIMIT_S = 100


def spread(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=4)
    cut = len(times) // 10
    trimmed = statistics.fmean(sorted(times)[cut : len(times) - cut])
    return {
        "count": len(times),
        "p25": cuts[0],
        "median": statistics.median(times),
        "p75": cuts[2],
        "trimmed": trimmed,
    }


def memset_of(flush: torch.Tensor) -> Callable[[], Any]:
    """The driver's memset, as kiln and the plain program flush: after torch's fill the same add is
    0.1 to 0.2 us faster."""
    memset = ctypes.CDLL("libcuda.so.1").cuMemsetD8Async
    memset.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p]
    return lambda: memset(
        flush.data_ptr(), 0, flush.numel(), torch.cuda.current_stream().cuda_stream
    )


def kiln_trace(function: Callable, args: tuple, **options: Any) -> dict[str, float] | None:
    """Kernel durations by kiln in us."""
    one = kiln.bench(function, *args, check=False, options={**TRACE, **options}).json["contenders"][
        0
    ]
    if not one["kernel"]:
        return None
    found = {c: one["kernel"][f"{c}_ns"] / 1e3 for c in ("p25", "median", "p75", "trimmed")}
    return {"count": one["kernel"]["count"], **found, "clock": one.get("cupti_clock")}


def records(body: Callable[[], Any], cpu: bool) -> list[tuple[str, float, float]]:
    """Name, begin and end in us of all that ran on the GPU, by torch.profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA] + [ProfilerActivity.CPU] * cpu) as seen:
        body()
        torch.cuda.synchronize()
    found = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return sorted(
        ((e.name, e.time_range.start, e.time_range.end) for e in found), key=lambda one: one[1]
    )


def durations(
    seen: list[tuple[str, float, float]], own: set[str]
) -> tuple[list[float], list[float]]:
    """Of each call: from the begin of its first kernel to the end of its last, and the gap between
    the flush and it. Whatever is not the call's own stands between two calls."""
    times, gaps = [], []
    begin = end = before = None
    for name, start, stop in [*seen, ("", 0.0, 0.0)]:
        if name in own:
            begin, end = (start if begin is None else begin), stop
            continue
        if begin is not None:
            times.append(end - begin)
            if before is not None:
                gaps.append(begin - before)
        begin, before = None, stop
    return times, gaps


def kineto(
    call: Callable[[], Any],
    flush: torch.Tensor,
    count: int,
    *,
    sleep: bool = True,
    fill: bool = False,
    wait: bool = False,
    cpu: bool = True,
) -> dict[str, float]:
    """Kernel durations of a call by torch.profiler in us, L2 flushed before each; `gap_us` is what
    lies between flush and call.

    sleep: a kernel holds the stream first; fill: torch's zero_() flushes; wait: the host waits for
    the flush before it calls."""
    own = {name for name, _, _ in records(call, cpu)}
    clear = (lambda: flush.zero_()) if fill else memset_of(flush)

    def flushed() -> None:
        for _ in range(count):
            if sleep:
                torch.cuda._sleep(SLEEP_CYCLES)
            clear()
            if wait:
                torch.cuda.synchronize()
            call()
            torch.cuda.synchronize()

    times, gaps = durations(records(flushed, cpu), own)
    return {**spread(times), "gap_us": statistics.median(gaps) if gaps else None}


def in_rounds(
    ways: dict[str, Callable[[], Any]], rounds: int, seed: int = 0
) -> list[dict[str, Any]]:
    """All ways in each round, in random order."""
    choose, names = random.Random(seed), list(ways)
    taken = []
    for _ in range(rounds):
        choose.shuffle(names)
        taken.append({name: ways[name]() for name in list(names)})
    return taken


def compare(
    function: Callable, args: tuple, flush: torch.Tensor, rounds: int, count: int
) -> list[dict[str, Any]]:
    """Kiln's trace, the equal loop of torch.profiler, and the loop without the kernel that holds
    the stream."""

    def call() -> None:
        function(*args)

    return in_rounds(
        {
            "kernel": lambda: kiln_trace(function, args),
            "kineto": lambda: kineto(call, flush, count),
            "kineto, plain loop": lambda: kineto(call, flush, count, sleep=False),
        },
        rounds,
    )


def ratio(rounds: list[dict[str, Any]], a: str, b: str, figure: str = "trimmed") -> float | None:
    """The median of the ratios within rounds."""
    ratios = [one[a][figure] / one[b][figure] for one in rounds if one.get(a) and one.get(b)]
    return statistics.median(ratios) if ratios else None


def diagnosis(
    function: Callable, args: tuple, flush: torch.Tensor, rounds: int = 5, count: int = 200
) -> dict[str, Any]:
    """Which part of a loop changes a short kernel's time, and by how much? Medians of the rounds,
    and all rounds."""

    def call() -> None:
        function(*args)

    ways = {
        "kiln": lambda: kiln_trace(function, args),
        "kiln, CUPTI follows the memset": lambda: kiln_trace(function, args, trace_flush=True),
        "kiln, 16 in flight": lambda: kiln_trace(function, args, in_flight=16),
        "kineto, equal loop": lambda: kineto(call, flush, count),
        "kineto, CUDA records alone": lambda: kineto(call, flush, count, cpu=False),
        "kineto, no kernel before": lambda: kineto(call, flush, count, sleep=False),
        "kineto, zero_() flushes": lambda: kineto(call, flush, count, fill=True),
        "kineto, flush waited for": lambda: kineto(call, flush, count, wait=True),
    }
    taken = in_rounds(ways, rounds)
    rows = {}
    for name in ways:
        seen = [one[name] for one in taken if one[name]]
        gaps = [one["gap_us"] for one in seen if one.get("gap_us") is not None]
        rows[name] = {
            "trimmed": statistics.median(one["trimmed"] for one in seen) if seen else None,
            "to_kineto": ratio(taken, name, "kineto, equal loop"),
            "gap_us": statistics.median(gaps) if gaps else None,
            "medians": [one["median"] for one in seen],
            "trimmed_means": [one["trimmed"] for one in seen],
        }
    return rows


def ncu_rows(text: str) -> dict[str, list[float]]:
    """Durations in us by grid, in order, of `ncu --csv` with gpu__time_duration.sum."""
    units = {
        "ns": 1e-3,
        "nsecond": 1e-3,
        "us": 1.0,
        "usecond": 1.0,
        "ms": 1e3,
        "msecond": 1e3,
        "s": 1e6,
        "second": 1e6,
    }
    found: dict[str, list[float]] = {}
    lines = [line for line in text.splitlines() if line.startswith('"')]
    for row in csv.DictReader(lines):
        if row.get("Metric Name") == "gpu__time_duration.sum":
            value = float(row["Metric Value"].replace(",", "")) * units[row["Metric Unit"]]
            found.setdefault(re.sub(r"[^0-9,]", "", row["Grid Size"]), []).append(value)
    return found


def ncu(program: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The kernel of plain_events by ncu, in us a size, or why there is none. The program flushes
    the L2 itself, so ncu's own flush is off; the clock is left alone as everywhere here."""
    tool = shutil.which("ncu") or next(
        (
            path
            for path in (f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin/ncu",)
            if os.path.exists(path)
        ),
        None,
    )
    if not tool:
        return {"why": "ncu is not here"}
    words = [
        "--csv",
        "--metrics",
        "gpu__time_duration.sum",
        "--clock-control",
        "none",
        "--cache-control",
        "none",
    ]
    line = [tool, *words, "-k", "regex:plain_add", program, "--few", *map(str, sizes)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=NCU_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"why": f"ncu did not finish in {NCU_LIMIT_S} s"}
    found = ncu_rows(done.stdout)
    if not found:
        words = [
            text
            for text in (done.stdout + done.stderr).splitlines()
            if "ERR" in text or "error" in text.lower()
        ]
        return {"why": (words or [f"ncu ended with {done.returncode} and listed nothing"])[0][:200]}
    rows = {}
    for bits in sizes:
        times = found.get(f"{(1 << bits) // 4 // 256},1,1", [])
        if len(times) > 20:
            rows[str(bits)] = spread(times[len(times) // 4 :])  # the first ones warm up
    return {"rows": rows}
