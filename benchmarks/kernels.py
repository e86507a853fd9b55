# SPDX-License-Identifier: Apache-2.0
"""How fast are the kernels beside torch? Each case is timed against torch in one run, in random
order, with a cold L2.

    python benchmarks/kernels.py              every kernel; prints a table, writes kernels.md and
                                              kernels.json
    python benchmarks/kernels.py --sweep      also other choices for kiln/elementwise.h and
                                              kernels/add.cu

A sample is one call between two CUDA events. Before it the stream is held by a sleep and by a write
of twice the L2, so that the call is enqueued when the GPU gets to it: the events see the kernel and
not its launch. The ratio is torch's median over the kernel's; above 1 is faster than torch. Without
a GPU the engine is timed, under that name.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, Optional

import kiln
import torch

ROOT = Path(__file__).resolve().parents[1]
MAIN = "kernels"
NAMES = {torch.float32: "f32", torch.bfloat16: "bf16"}


@dataclass
class Case:
    op: str
    name: str
    dtype: torch.dtype
    bar: Optional[float]  # the least ratio
    inputs: Callable[[], tuple]
    reference: Callable
    bytes: int  # that must move: each input and the output once


@dataclass
class Row:
    op: str
    case: str
    dtype: str
    bar: Optional[float]
    ratio: float
    low: float  # 95 % interval of the ratio
    high: float
    kernel_us: float
    torch_us: float
    gb_per_s: float
    verdict: str


def root_of_square(x: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(x * x)


def adds(sizes: list[int], large: int) -> list[Case]:
    """large: elements of the broadcast, transposed and misaligned cases."""
    cases = []
    for dtype in (torch.float32, torch.bfloat16):
        size = dtype.itemsize

        def new(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.randn(shape, device=kiln.device(), dtype=dtype)

        for n in sizes:
            label, bits = f"2^{n.bit_length() - 1}", 3 * n * size
            two = lambda n=n, new=new: (new(n), new(n))  # noqa: E731
            cases += [
                Case("my_fast_add", label, dtype, 0.99, two, torch.add, bits),
                Case("my_add", label, dtype, 0.97, two, torch.add, bits),
                Case("cust_add", label, dtype, 0.97, lambda n=n, new=new: (new(n), 1.5), torch.add,
                2 * n * size), Case("fused_abs", label, dtype, 1.0, lambda n=n, new=new: (new(n),),
                root_of_square, 2 * n * size),
            ]  # fmt: skip
        rows, columns = large // 4096, 4096
        side = int(large**0.5)
        for op, bar in (("my_fast_add", 1.0), ("my_add", 0.97)):
            cases += [
                Case(op, f"broadcast row {rows}x{columns}", dtype, bar,
                     lambda r=rows, c=columns, new=new: (new(r, c), new(c)), torch.add,
                     2 * large * size),
                Case(op, f"broadcast odd row {rows}x{columns - 1}", dtype, bar,
                     lambda r=rows, c=columns - 1, new=new: (new(r, c), new(c)), torch.add,
                     2 * large * size),
                Case(op, f"broadcast column {rows}x{columns}", dtype, bar,
                     lambda r=rows, c=columns, new=new: (new(r, 1), new(r, c)), torch.add,
                     2 * large * size),
                Case(op, f"transposed {side}x{side}", dtype, bar,
                     lambda s=side, new=new: (new(s, s), new(s, s).t()), torch.add,
                     3 * side * side * size),
                Case(op, f"misaligned 2^{large.bit_length() - 1}", dtype, bar,
                     lambda n=large, new=new: (new(n + 1)[1:], new(n)), torch.add,
                     3 * large * size),
                Case(op, f"misaligned both 2^{large.bit_length() - 1}", dtype, bar,
                     lambda n=large, new=new: (new(n + 1)[1:], new(n + 1)[1:]), torch.add,
                     3 * large * size),
                Case(op, f"misaligned 2^{sizes[0].bit_length() - 1}", dtype, bar,
                     lambda n=sizes[0], new=new: (new(n + 1)[1:], new(n)), torch.add,
                     3 * sizes[0] * size),
            ]  # fmt: skip
    return cases


class Gpu:
    """Samples of calls in random order, each with a cold L2."""

    unit = "GPU time, cold L2"

    def __init__(self) -> None:
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(2 * cache, dtype=torch.uint8, device="cuda")
        self.random = random.Random(0)

    def describe(self) -> str:
        p = torch.cuda.get_device_properties(0)
        return (
            f"{p.name}, {p.multi_processor_count} SMs, L2 {p.L2_cache_size >> 20} MiB, torch "
            f"{torch.__version__}"
        )

    def samples(self, calls: list[Callable], bytes_moved: int) -> list[list[float]]:
        """Milliseconds of each call of `calls`."""
        rounds = 60 if bytes_moved > 1 << 29 else 600
        for call in calls:
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        taken: list[list] = [[] for _ in calls]
        for _ in range(rounds):
            order = list(range(len(calls)))
            self.random.shuffle(order)
            for i in order:
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda._sleep(150_000)  # cycles: longer than the host takes to enqueue the rest
                self.flush.zero_()
                start.record()
                call_result = calls[i]()
                end.record()
                taken[i].append((start, end))
                del call_result
            torch.cuda.synchronize()
        return [[start.elapsed_time(end) for start, end in pairs] for pairs in taken]


class Engine:
    """Wall time of calls on the engine: how long a test waits, no measure of a GPU."""

    unit = "engine time (no GPU here)"

    def describe(self) -> str:
        return f"the engine on {os.cpu_count()} CPUs, torch {torch.__version__}"

    def samples(self, calls: list[Callable], bytes_moved: int) -> list[list[float]]:
        taken: list[list[float]] = [[] for _ in calls]
        for _ in range(3):
            for i, call in enumerate(calls):
                start = time.perf_counter()
                call()
                taken[i].append((time.perf_counter() - start) * 1e3)
        return taken


def interval_of_ratio(reference: list[float], kernel: list[float]) -> tuple[float, float]:
    """95 % by bootstrap of the two medians."""
    choose = random.Random(1)
    ratios = sorted(
        statistics.median(choose.choices(reference, k=len(reference)))
        / statistics.median(choose.choices(kernel, k=len(kernel)))
        for _ in range(200)
    )
    return ratios[5], ratios[-6]


def check(op: Callable, case: Case, inputs: tuple) -> None:
    got, expected = op(*inputs), case.reference(*inputs)
    if not torch.equal(got, expected) or got.stride() != expected.stride():
        raise SystemExit(
            f"error: {case.op} is wrong for {case.name} {case.dtype}; a wrong kernel has no speed"
        )


def measure(
    bench: Gpu | Engine, cases: list[Case], ops: dict[str, dict[str, Callable]]
) -> list[Row]:
    """ops: variant -> name -> op. Every variant of a case is timed beside torch in the same
    rounds."""
    rows = []
    for case in cases:
        inputs = case.inputs()
        contenders = {name: table[case.op] for name, table in ops.items() if case.op in table}
        for op in contenders.values():
            check(op, case, inputs)
        calls = [functools.partial(op, *inputs) for op in (case.reference, *contenders.values())]
        times = bench.samples(calls, case.bytes)
        reference = statistics.median(times[0])
        for name, mine in zip(contenders, times[1:]):
            kernel = statistics.median(mine)
            ratio = reference / kernel
            judged = case.bar is not None and isinstance(bench, Gpu)
            verdict = "-" if not judged else "PASS" if ratio >= case.bar else "FAIL"
            low, high = interval_of_ratio(times[0], mine)
            rows.append(
                Row(
                    op=f"{case.op} [{name}]" if name else case.op,
                    case=case.name,
                    dtype=NAMES[case.dtype],
                    bar=case.bar,
                    ratio=ratio,
                    low=low,
                    high=high,
                    kernel_us=kernel * 1e3,
                    torch_us=reference * 1e3,
                    gb_per_s=case.bytes / kernel / 1e6,
                    verdict=verdict,
                )
            )
        del inputs, calls
    return rows


def noise(bench: Gpu) -> list[Row]:
    """torch against torch: how far from 1 a ratio of equals lies."""
    cases = []
    for bits in (20, 24, 28):

        def two(n: int = 1 << bits) -> tuple[torch.Tensor, ...]:
            return tuple(torch.randn(n, device="cuda") for _ in range(2))

        cases.append(
            Case("torch.add", f"2^{bits}", torch.float32, None, two, torch.add, 12 << bits)
        )
    return measure(bench, cases, {"": {"torch.add": torch.add}})


def variants() -> dict[str, dict[str, int]]:
    found = {}
    for threads in (128, 256, 512):
        for vectors in (1, 2, 4):
            found[f"{threads} threads, {vectors} x 16 B"] = {
                "KILN_ELEMENTWISE_THREADS": threads,
                "KILN_ELEMENTWISE_VECTORS": vectors,
                "KILN_ELEMENTWISE_ROW_VECTORS": vectors,
                "MY_ADD_THREADS": threads,
                "MY_ADD_BYTES_PER_THREAD": 16 * vectors,
            }
    return found


def build_variants() -> dict[str, dict[str, Callable]]:
    sources = [str(ROOT / "kernels" / "add.cu"), str(ROOT / "benchmarks" / "kernels_sweep.cu")]

    def build(item: tuple[int, tuple[str, dict[str, int]]]) -> tuple[str, dict[str, Callable]]:
        number, (name, defines) = item
        module = kiln.load(f"kernels_sweep_{number}", sources, defines=defines)
        return name, {"my_add": module.my_add, "my_fast_add": module.my_fast_add}

    with ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 1) // 4)) as pool:
        return dict(pool.map(build, enumerate(variants().items())))


def table(rows: list[Row], on_gpu: bool) -> str:
    if not on_gpu:  # torch's time beside it would compare a test's wait with a library for CPUs
        lines = ["| kernel | case | dtype | engine time, us |", "|---|---|---|---|"]
        return "\n".join(
            lines + [f"| {r.op} | {r.case} | {r.dtype} | {r.kernel_us:.0f} |" for r in rows]
        )
    lines = [
        "| kernel | case | dtype | us | torch us | GB/s | ratio | 95 % | bar | |",
        "|" + "---|" * 10,
    ]
    for r in rows:
        bar = "" if r.bar is None else f"{r.bar:.2f}"
        interval = f"{r.low:.3f} to {r.high:.3f}"
        lines.append(
            f"| {r.op} | {r.case} | {r.dtype} | {r.kernel_us:.2f} | {r.torch_us:.2f} | "
            f"{r.gb_per_s:.0f} "
            f"| {r.ratio:.3f} | {interval} | {bar} | {r.verdict} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sweep",
        action="store_true",
        help="time variants of block size and work per thread as well",
    )
    parser.add_argument(
        "--only", default="", help="cases whose kernel, name or dtype contains this text"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "build" / "benchmarks",
        help="folder of kernels.md and kernels.json",
    )
    args = parser.parse_args()
    on_gpu = kiln.device() == "cuda"
    bench = Gpu() if on_gpu else Engine()
    cases = (
        adds([1 << 20, 1 << 24, 1 << 28], 1 << 26) if on_gpu else adds([1 << 10, 1 << 16], 1 << 14)
    )
    cases = [case for case in cases if args.only in f"{case.op} {case.name} {NAMES[case.dtype]}"]

    start = time.perf_counter()
    module = kiln.load(ROOT / "kernels")
    built = time.perf_counter() - start
    ops = {
        "": {
            name: getattr(module, name)
            for name in ("my_fast_add", "my_add", "cust_add", "fused_abs")
        }
    }
    head = (
        f"{bench.describe()}; {time.strftime('%Y-%m-%d', time.gmtime())}; kernels built and "
        f"loaded in {built:.1f} s"
    )
    sections = []
    if on_gpu:
        sections.append(("torch against itself: the noise of a ratio", noise(bench)))
    sections.append((MAIN, measure(bench, cases, ops)))
    if args.sweep:
        chosen = [
            case
            for case in cases
            if case.op in ("my_add", "my_fast_add") and "column" not in case.name
        ]
        sections.append(("variants", measure(bench, chosen, build_variants())))
    text = (
        f"# Kernels "
        f"{'beside torch: GPU time, cold L2' if on_gpu else 'on the engine (no GPU here)'}\n\n"
        f"{head}\n"
    )
    for title, rows in sections:
        text += f"\n## {title}\n\n{table(rows, on_gpu)}\n"
    print(text)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "kernels.md").write_text(text)
    (args.out / "kernels.json").write_text(
        json.dumps(
            {
                "machine": head,
                "unit": bench.unit,
                **{t: [asdict(r) for r in rows] for t, rows in sections},
            },
            indent=1,
        )
        + "\n"
    )
    main_rows = next(rows for title, rows in sections if title == MAIN)
    return 1 if any(r.verdict == "FAIL" for r in main_rows) else 0


if __name__ == "__main__":
    sys.exit(main())
