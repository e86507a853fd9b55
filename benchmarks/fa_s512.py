# SPDX-License-Identifier: Apache-2.0
"""How fast is fa_s512 beside torch's attention? Each case is timed against SDPA with cuDNN and with
flash, in one run, in random order, with a cold L2.

    python benchmarks/fa_s512.py                       the cases of the bars; under 40 s with the
                                                       build
    python benchmarks/fa_s512.py --only "S=512 D=128"  cases whose name contains this text
    python benchmarks/fa_s512.py -D BLOCK_N=64 -D STAGES=4
    python benchmarks/fa_s512.py --out docs/results    fa_s512.md and fa_s512.json there

A sample is one call between two CUDA events. Before it the stream is held by a sleep and by a write
of twice the L2, so that the call is enqueued when the GPU gets to it: the events see the kernel and
not its launch. FLOPs are 4 B H S S D, half of that when causal. A ratio is the other's median time
over this kernel's; above 1 is faster than torch. Errors are the largest against fp64, over the
first batches.

A second table times forward and backward together, in the order of what a user sees: eager, one
step at a time with the GPU idle before it, so that it waits for Python; in a CUDA graph; and the
kernels alone, as above. A third times the backward alone (kernels). --no-training leaves both out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, Optional

import kiln
import torch
from sampling import machine
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# fa_s512 beside SDPA

Written by `python benchmarks/fa_s512.py`. A ratio is the other's median time over this kernel's:
above 1 is faster than torch. The bar of the portable path is against flash, that of small batches
against the better of cuDNN and flash. Errors are the largest against fp64.
"""


@dataclass
class Case:
    batch: int
    heads: int
    length: int
    head_dim: int
    causal: bool
    bar: Optional[
        float
    ]  # the least ratio to cuDNN; of the portable path, to flash; of small batches, to the better
    portable: bool = False

    @property
    def name(self) -> str:
        path = " portable" if self.portable else ""
        return (
            f"B={self.batch} H={self.heads} S={self.length} "
            f"D={self.head_dim}{' causal' if self.causal else ''}{path}"
        )

    @property
    def against(self) -> str:
        return (
            "flash"
            if self.portable
            else "the better"
            if self.batch < 32 and self.length == 512
            else "cuDNN"
        )

    @property
    def flops(self) -> float:
        full = 4 * self.batch * self.heads * self.length**2 * self.head_dim
        return full / 2 if self.causal else full

    def backward_tflops(self, us: float) -> float:
        """Five products for the forward's two, also where a kernel does more."""
        return 2.5 * self.flops / us / 1e6


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
    max_error: float
    max_error_of_flash: float
    bar: Optional[float]
    against: str

    @property
    def met(self) -> bool:
        ratios = {"cuDNN": self.ratio_to_cudnn, "flash": self.ratio_to_flash}
        ratios["the better"] = min(ratios.values())
        return self.bar is None or ratios[self.against] >= self.bar

    @property
    def verdict(self) -> str:
        words = "" if self.bar is None else f"{self.bar:.2f}"
        words += "" if self.bar is None or self.against == "cuDNN" else f" of {self.against}"
        words += "" if self.bar is None else " PASS" if self.met else " FAIL"
        return words + ("" if self.exact else ", error above flash's FAIL")

    @property
    def exact(self) -> bool:
        return self.max_error <= self.max_error_of_flash


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


@dataclass
class Pair:
    """This kernel beside the others, in one way of timing."""

    us: float
    cudnn_us: float
    flash_us: float
    ratio_to_cudnn: float
    low: float  # 95 % interval of that ratio
    high: float
    ratio_to_flash: float

    @staticmethod
    def of(ms: list[list[float]]) -> Pair:
        own, cudnn, flash = (statistics.median(m) for m in ms)
        low, high = interval_of_ratio(ms[1], ms[0])
        us = (x * 1e3 for x in (own, cudnn, flash))
        return Pair(*us, cudnn / own, low, high, flash / own)


@dataclass
class Training:
    """Forward and backward; the backward is the one that attention.py chooses."""

    case: str
    backward: str
    eager: Pair
    graph: Pair
    kernels: Pair
    backward_kernels: Pair


TRAINED = [
    *(case for case in CASES if case.batch == 32 and not case.portable),
    *(
        Case(16384 // length, 16, length, d, causal, None)
        for length in (1024, 2048)
        for d in (128, 64)
        for causal in (False, True)
    ),
]


def backend_of(call: Callable):
    """The choice of torch's attention for a call; made ahead of its time."""
    backend = getattr(call, "backend", None)
    return nullcontext() if backend is None else sdpa_kernel(backend)


def samples(
    calls: list[Callable], flush: torch.Tensor, rounds: int, sleep: int = 400_000
) -> list[list[float]]:
    """Milliseconds of each call. sleep: cycles, longer than the host takes to enqueue a call; 0:
    the GPU is idle when the call begins."""
    order, choose = list(range(len(calls))), random.Random(0)
    for call in calls:
        for _ in range(3):
            with backend_of(call):
                call()
    torch.cuda.synchronize()
    taken: list[list] = [[] for _ in calls]
    for _ in range(rounds):
        choose.shuffle(order)
        for i in order:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            with backend_of(calls[i]):
                flush.zero_()
                if sleep:
                    torch.cuda._sleep(sleep)
                else:
                    torch.cuda.synchronize()
                start.record()
                calls[i]()
                end.record()
            taken[i].append((start, end))
        torch.cuda.synchronize()
    return [[start.elapsed_time(end) for start, end in pairs] for pairs in taken]


def by_backend(backend: SDPBackend, call: Callable) -> Callable:
    call.backend = backend  # type: ignore[attr-defined]
    return call


def sdpa(backend: SDPBackend, q, k, v, causal: bool) -> Callable:
    attention = torch.nn.functional.scaled_dot_product_attention
    return by_backend(backend, lambda: attention(q, k, v, is_causal=causal))


def in_graph(call: Callable) -> Callable:
    """The call as a replay."""
    with backend_of(call):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = call()
    replay = lambda: graph.replay()  # noqa: E731
    replay.results = results  # type: ignore[attr-defined]
    return replay


def interval_of_ratio(reference: list[float], kernel: list[float]) -> tuple[float, float]:
    """95 % by bootstrap of the two medians."""
    choose = random.Random(1)
    ratios = sorted(
        statistics.median(choose.choices(reference, k=len(reference)))
        / statistics.median(choose.choices(kernel, k=len(kernel)))
        for _ in range(200)
    )
    return ratios[5], ratios[-6]


def largest_error(
    out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> float:
    """Against fp64, of as many batches as fit."""
    few = max(1, (1 << 29) // (q.shape[1] * q.shape[2] ** 2))
    scores = (q[:few].double() @ k[:few].double().transpose(-1, -2)) * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    right = torch.softmax(scores, -1) @ v[:few].double()
    return (out[:few].double() - right).abs().max().item()


def measure(module, case: Case, flush: torch.Tensor, rounds: int) -> Row:
    make = torch.Generator("cuda").manual_seed(0)
    shape = (case.batch, case.heads, case.length, case.head_dim)
    q, k, v = (torch.randn(shape, device="cuda", generator=make).bfloat16() for _ in range(3))
    op = module.forward_portable if case.portable else module.forward
    mine = lambda: op(q, k, v, case.causal)  # noqa: E731
    cudnn = sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, case.causal)
    flash = sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, case.causal)
    error, of_flash = (largest_error(out, q, k, v, case.causal) for out in (mine()[0], flash()))
    if not error < 0.05:
        raise SystemExit(
            f"error: forward is wrong at {case.name}, by {error:.3g}; a wrong kernel has no speed"
        )
    ms = samples([mine, cudnn, flash], flush, rounds)
    own, theirs, flashs = (statistics.median(m) for m in ms)
    low, high = interval_of_ratio(ms[1], ms[0])
    rate = lambda milliseconds: case.flops / milliseconds / 1e9  # noqa: E731
    return Row(case.name, own * 1e3, rate(own), theirs * 1e3, rate(theirs), flashs * 1e3,
               theirs / own, low, high, flashs / own, error, of_flash, case.bar,
               case.against)  # fmt: skip


def attention_of(module) -> tuple[Callable, Callable]:
    """The function with gradients, and which backward it takes for given tensors."""
    spec = importlib.util.spec_from_file_location(
        "fa_s512_attention", ROOT / "kernels" / "fa_s512" / "attention.py"
    )
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)

    def taken(q, k, v, causal: bool) -> str:
        if source.own_kernels_have_backward(q, k, causal):
            return "own"
        return "cuDNN" if source.cudnn_has_backward(q, k, v, causal) else "flash"

    return source.attach(module), taken


def backward_alone(module, causal: bool, leaves: list, grad: torch.Tensor) -> list[Callable]:
    q, k, v = (x.detach() for x in leaves)
    out, lse = module.forward(q, k, v, causal)
    calls: list[Callable] = [lambda: module.backward(grad, q, k, v, out, lse, causal)]
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            there = sdpa(backend, *leaves, causal)()
        calls.append(
            lambda there=there: torch.autograd.grad(there, leaves, grad, retain_graph=True)
        )
    return calls


def train(
    module, attention: Callable, taken: Callable, case: Case, flush: torch.Tensor, rounds: int
) -> Training:
    make = torch.Generator("cuda").manual_seed(0)
    shape = (case.batch, case.heads, case.length, case.head_dim)
    q, k, v, grad = (torch.randn(shape, device="cuda", generator=make).bfloat16() for _ in range(4))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    forwards = [
        lambda: attention(q, k, v, is_causal=case.causal),
        sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, case.causal),
        sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, case.causal),
    ]
    calls = [
        by_backend(
            getattr(forward, "backend", None),
            lambda forward=forward: torch.autograd.grad(forward(), leaves, grad),
        )
        for forward in forwards
    ]
    mine, theirs = calls[0](), calls[2]()
    for name, a, b in zip("qkv", mine, theirs):
        apart = (a.float() - b.float()).abs().max().item() / b.float().abs().max().item()
        if not apart < 0.05:
            raise SystemExit(
                f"error: the gradient of {name} is wrong at {case.name}, by {apart:.3g} of its "
                f"largest"
            )
    return Training(
        case.name,
        taken(q, k, v, case.causal),
        Pair.of(samples(calls, flush, rounds, sleep=0)),
        Pair.of(samples([in_graph(call) for call in calls], flush, rounds)),
        Pair.of(samples(calls, flush, rounds, sleep=4_000_000)),
        Pair.of(
            samples(backward_alone(module, case.causal, leaves, grad), flush, rounds, 2_000_000)
        ),
    )


def training_table(
    module, only: str, flush: torch.Tensor, rounds: int, say: Callable[[str], None]
) -> list[Training]:
    attention, taken = attention_of(module)
    cases = [case for case in TRAINED if only in case.name]
    rows = [train(module, attention, taken, case, flush, rounds) for case in cases]
    ways = {"eager": "eager", "in a graph": "graph", "kernels": "kernels"}
    say("\nForward and backward together: us, of SDPA with cuDNN (95 %)\n")
    say("| case | backward of |" + "".join(f" {way} | cuDNN us | of cuDNN |" for way in ways))
    say("|" + "---|" * (2 + 3 * len(ways)))
    for r in rows:
        pairs = [getattr(r, field) for field in ways.values()]
        say(
            f"| {r.case} | {r.backward} |"
            + "".join(
                f" {p.us:.1f} | {p.cudnn_us:.1f} | {p.ratio_to_cudnn:.3f} ({p.low:.3f} to "
                f"{p.high:.3f}) |"
                for p in pairs
            )
        )
    say("\nThe backward alone, kernels, by the own op whichever attention.py takes\n")
    say("| case | us | TFLOP/s | cuDNN us | cuDNN TFLOP/s | of cuDNN | 95 % | of flash |")
    say("|" + "---|" * 8)
    for r, case in zip(rows, cases):
        p = r.backward_kernels
        say(
            f"| {r.case} | {p.us:.1f} | {case.backward_tflops(p.us):.0f} | "
            f"{p.cudnn_us:.1f} | {case.backward_tflops(p.cudnn_us):.0f} | "
            f"{p.ratio_to_cudnn:.3f} | {p.low:.3f} to {p.high:.3f} | {p.ratio_to_flash:.2f} |"
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument(
        "-D",
        dest="defines",
        action="append",
        default=[],
        metavar="K=V",
        help="define, as BLOCK_N=64",
    )
    parser.add_argument(
        "--no-training", action="store_true", help="leave out forward and backward together"
    )
    parser.add_argument("--out", type=Path, help="write fa_s512.md and fa_s512.json there")
    args = parser.parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        print("skipped: fa_s512 needs a GPU of compute capability 9.0")
        return 0
    start = time.perf_counter()
    module = kiln.load(
        ROOT / "kernels" / "fa_s512",
        defines=dict(d.partition("=")[::2] for d in args.defines) or None,
    )
    gpu = torch.cuda.get_device_properties(0)
    lines: list[str] = []

    def say(text: str) -> None:
        lines.append(text)
        print(text, flush=True)

    say(f"{gpu.name}, {gpu.multi_processor_count} SMs, torch {torch.__version__}, bf16, cold L2, "
          f"{args.rounds} samples each; {' '.join(args.defines) or 'defaults'}; "
          f"built and loaded in {time.perf_counter() - start:.1f} s")  # fmt: skip
    say(
        "| case | us | TFLOP/s | cuDNN us | cuDNN TFLOP/s | of cuDNN | 95 % | bar | of flash | max "
        "error | of flash |"
    )
    say("|" + "---|" * 11)
    flush = torch.empty(2 * gpu.L2_cache_size, dtype=torch.uint8, device="cuda")
    rows = []
    for case in CASES:
        if args.only not in case.name:
            continue
        r = measure(module, case, flush, args.rounds)
        rows.append(r)
        say(
            f"| {r.case} | {r.us:.1f} | {r.tflops:.0f} | {r.cudnn_us:.1f} | {r.cudnn_tflops:.0f} | "
            f"{r.ratio_to_cudnn:.3f} | {r.low:.3f} to {r.high:.3f} | {r.verdict} | "
            f"{r.ratio_to_flash:.2f} | "
            f"{r.max_error:.3g} | {r.max_error_of_flash:.3g} |"
        )
    trained = [] if args.no_training else training_table(module, args.only, flush, args.rounds, say)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        facts = machine()
        head = f"{HEAD}\n{', '.join(f'{name} {value}' for name, value in facts.items())}.\n"
        (args.out / "fa_s512.md").write_text("\n".join([head, lines[0], "", *lines[1:]]) + "\n")
        found = {
            "machine": facts,
            "defines": args.defines,
            "rows": [asdict(r) for r in rows],
            "training": [asdict(r) for r in trained],
        }
        (args.out / "fa_s512.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(r.met and r.exact for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
