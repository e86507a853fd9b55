# SPDX-License-Identifier: Apache-2.0
"""How fast is fa_s512 beside torch's attention? Each case is timed against SDPA with cuDNN and with flash, in one
run, in random order, with a cold L2.

    python benchmarks/fa_s512.py                       the cases of the bars; under 40 s with the build
    python benchmarks/fa_s512.py --only "S=512 D=128"  cases whose name contains this text
    python benchmarks/fa_s512.py -D BLOCK_N=64 -D STAGES=4

A sample is one call between two CUDA events. Before it the stream is held by a sleep and by a write of twice the L2, so
that the call is enqueued when the GPU gets to it: the events see the kernel and not its launch. FLOPs are 4 B H S S D,
half of that when causal. A ratio is the other's median time over this kernel's; above 1 is faster than torch.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, Optional

import kiln
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Case:
    batch: int
    heads: int
    length: int
    head_dim: int
    causal: bool
    bar: Optional[float]  # the least ratio to cuDNN; of the portable path, to flash
    portable: bool = False

    @property
    def name(self) -> str:
        path = " portable" if self.portable else ""
        return f"B={self.batch} H={self.heads} S={self.length} D={self.head_dim}{' causal' if self.causal else ''}{path}"

    @property
    def flops(self) -> float:
        full = 4 * self.batch * self.heads * self.length**2 * self.head_dim
        return full / 2 if self.causal else full


@dataclass
class Row:
    case: str
    us: float
    tflops: float
    cudnn_us: float
    cudnn_tflops: float
    flash_us: float
    ratio_to_cudnn: float
    low: float  # 95 % interval of that ratio
    high: float
    ratio_to_flash: float
    max_error_to_cudnn: float
    bar: Optional[float]
    against_flash: bool

    @property
    def met(self) -> bool:
        return self.bar is None or (self.ratio_to_flash if self.against_flash else self.ratio_to_cudnn) >= self.bar


CASES = [
    Case(32, 16, 512, 128, False, 1.10),
    Case(32, 16, 512, 64, False, 1.10),
    Case(32, 16, 512, 128, True, 1.08),
    Case(32, 16, 512, 64, True, 1.00),
    Case(4, 16, 4096, 128, False, 0.95),
    Case(4, 16, 4096, 128, True, None),
    Case(1, 16, 512, 128, False, 1.00),
    Case(2, 16, 512, 128, False, 1.00),
    Case(4, 16, 512, 128, False, 1.00),
    Case(32, 16, 512, 128, False, 1.00, portable=True),
    Case(32, 16, 512, 64, False, 1.00, portable=True),
    Case(32, 16, 512, 128, True, 1.00, portable=True),
    Case(32, 16, 512, 64, True, 1.00, portable=True),
]


def samples(calls: list[Callable], flush: torch.Tensor, rounds: int) -> list[list[float]]:
    """Milliseconds of each call."""
    order, choose = list(range(len(calls))), random.Random(0)
    for call in calls:
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    taken: list[list] = [[] for _ in calls]
    for _ in range(rounds):
        choose.shuffle(order)
        for i in order:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(400_000)  # cycles: longer than the host takes to enqueue the rest
            flush.zero_()
            start.record()
            calls[i]()
            end.record()
            taken[i].append((start, end))
        torch.cuda.synchronize()
    return [[start.elapsed_time(end) for start, end in pairs] for pairs in taken]


def sdpa(backend: SDPBackend, q, k, v, causal: bool) -> Callable:
    def call():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return call


def interval_of_ratio(reference: list[float], kernel: list[float]) -> tuple[float, float]:
    """95 % by bootstrap of the two medians."""
    choose = random.Random(1)
    ratios = sorted(
        statistics.median(choose.choices(reference, k=len(reference)))
        / statistics.median(choose.choices(kernel, k=len(kernel)))
        for _ in range(200)
    )
    return ratios[5], ratios[-6]


def measure(module, case: Case, flush: torch.Tensor, rounds: int) -> Row:
    make = torch.Generator("cuda").manual_seed(0)
    shape = (case.batch, case.heads, case.length, case.head_dim)
    q, k, v = (torch.randn(shape, device="cuda", generator=make).bfloat16() for _ in range(3))
    op = module.forward_portable if case.portable else module.forward
    mine = lambda: op(q, k, v, case.causal)  # noqa: E731
    cudnn = sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, case.causal)
    flash = sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, case.causal)
    error = (mine()[0].float() - cudnn().float()).abs().max().item()
    if not error < 0.05:
        raise SystemExit(f"error: forward is wrong at {case.name}, by {error:.3g}; a wrong kernel has no speed")
    ms = samples([mine, cudnn, flash], flush, rounds)
    own, theirs, flashs = (statistics.median(m) for m in ms)
    low, high = interval_of_ratio(ms[1], ms[0])
    rate = lambda milliseconds: case.flops / milliseconds / 1e9  # noqa: E731
    return Row(case.name, own * 1e3, rate(own), theirs * 1e3, rate(theirs), flashs * 1e3, theirs / own, low, high,
               flashs / own, error, case.bar, case.portable)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="K=V", help="define, as BLOCK_N=64")
    parser.add_argument("--json", type=Path, help="write the rows there")
    args = parser.parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        print("skipped: fa_s512 needs a GPU of compute capability 9.0")
        return 0
    start = time.perf_counter()
    module = kiln.load(ROOT / "kernels" / "fa_s512", defines=dict(d.partition("=")[::2] for d in args.defines) or None)
    gpu = torch.cuda.get_device_properties(0)
    print(f"{gpu.name}, {gpu.multi_processor_count} SMs, torch {torch.__version__}, bf16, cold L2, "
          f"{args.rounds} samples each; {' '.join(args.defines) or 'defaults'}; "
          f"built and loaded in {time.perf_counter() - start:.1f} s")  # fmt: skip
    print("| case | us | TFLOP/s | cuDNN us | cuDNN TFLOP/s | of cuDNN | 95 % | bar | of flash | max diff |")
    print("|" + "---|" * 10)
    flush = torch.empty(2 * gpu.L2_cache_size, dtype=torch.uint8, device="cuda")
    rows = []
    for case in CASES:
        if args.only not in case.name:
            continue
        r = measure(module, case, flush, args.rounds)
        rows.append(r)
        verdict = "" if r.bar is None else f"{r.bar:.2f}{' of flash' if r.against_flash else ''} {'PASS' if r.met else 'FAIL'}"
        print(f"| {r.case} | {r.us:.1f} | {r.tflops:.0f} | {r.cudnn_us:.1f} | {r.cudnn_tflops:.0f} | "
              f"{r.ratio_to_cudnn:.3f} | {r.low:.3f} to {r.high:.3f} | {verdict} | {r.ratio_to_flash:.2f} | "
              f"{r.max_error_to_cudnn:.2g} |", flush=True)  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps({"gpu": gpu.name, "defines": args.defines, "rows": [asdict(r) for r in rows]}))
    return 0 if all(r.met for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
