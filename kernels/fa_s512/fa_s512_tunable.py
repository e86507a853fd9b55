#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good is one configuration of fa_s512? Builds it with the defines given, checks it, times it
beside torch's SDPA.

    fa_s512_tunable.py BLOCK_M=128 BLOCK_N=64 STAGES=4 --head-dim 128 --causal
    fa_s512_tunable.py --portable P_BLOCK_N=64 P_WARPS=4 --json

Prints one line (or one JSON object). Exit code 0: right; 1: wrong, or it does not build. Without a
GPU the portable path is checked on the engine at a small size, and nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional

import kiln

if TYPE_CHECKING:  # it takes two seconds to import, and a wrong configuration does not need it
    import torch

PROJECT = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "defines",
        nargs="*",
        metavar="NAME=VALUE",
        help="as BLOCK_M=128; see shape.h and portable_shape.h",
    )
    parser.add_argument("--portable", action="store_true", help="the path that every GPU has")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--head-dim", type=int, choices=[64, 128], default=128)
    parser.add_argument("--dtype", choices=["bf16", "f16"], default="bf16")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for define in given.defines:
        if "=" not in define:
            parser.error(f"'{define}' is no NAME=VALUE")
    return given


def error_of(
    call: Callable, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> tuple[float, float]:
    """(error, allowed), by flash attention's own rule: twice what plain PyTorch in this dtype is
    off."""
    import torch
    import torch.nn.functional as F

    right = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    plain = torch.softmax(scores, -1) @ v
    rounding = ((right.to(q.dtype) + 0.3 - 0.3).double() - right).abs().max()
    allowed = 2 * (plain.double() - right).abs().max() + 2 * rounding
    error = (call(q, k, v, causal)[0].double() - right).abs().max()
    return error.item(), allowed.item()


def times_ms(calls: list[Callable], samples: int) -> list[float]:
    """Medians, cold L2, one after the other in each round; the launch is hidden under a wait on the
    GPU."""
    import torch

    flush = torch.empty(
        2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda"
    )
    taken: list[list] = [[] for _ in calls]
    for call in calls:
        call()
    torch.cuda.synchronize()
    for _ in range(samples):
        for call, mine in zip(calls, taken):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(400_000)
            flush.zero_()
            start.record()
            call()
            end.record()
            mine.append((start, end))
        torch.cuda.synchronize()
    return [statistics.median(start.elapsed_time(end) for start, end in pairs) for pairs in taken]


def measure(given: argparse.Namespace) -> dict:
    gpu = kiln.device().startswith("cuda")
    defines = dict(define.partition("=")[::2] for define in given.defines)
    begun = time.perf_counter()
    module = kiln.load(PROJECT, defines=defines or None, arch=None if gpu else "8.0")
    found: dict = {
        "defines": defines,
        "path": "portable" if given.portable or not gpu else "best",
        "causal": given.causal,
        "build_s": round(time.perf_counter() - begun, 2),
    }
    import torch
    import torch.nn.functional as F

    op = module.forward_portable if given.portable else module.forward
    dtype = torch.bfloat16 if given.dtype == "bf16" else torch.float16
    make = torch.Generator().manual_seed(0)

    def inputs(batch: int, heads: int, length: int) -> list[torch.Tensor]:
        shape = (batch, heads, length, given.head_dim)
        return [torch.randn(shape, generator=make).to(dtype).to(kiln.device()) for _ in range(3)]

    small = inputs(1, 2, given.length if gpu else min(given.length, 200))
    found["error"], found["allowed"] = error_of(op, *small, given.causal)
    found["right"] = found["error"] <= found["allowed"]
    if gpu and found["right"]:
        q, k, v = inputs(given.batch, given.heads, given.length)
        torch_ms: Optional[float]
        own_ms, torch_ms = times_ms(
            [
                lambda: op(q, k, v, given.causal),
                lambda: F.scaled_dot_product_attention(q, k, v, is_causal=given.causal),
            ],
            given.samples,
        )
        flops = (
            4
            * given.batch
            * given.heads
            * given.length**2
            * given.head_dim
            / (2 if given.causal else 1)
        )
        found |= {"us": own_ms * 1e3, "tflops": flops / own_ms / 1e9, "of_sdpa": torch_ms / own_ms}
    return found


def main() -> int:
    given = arguments()
    try:
        found = measure(given)
    except kiln.KilnError as error:
        print(
            json.dumps({"error": str(error)}) if given.json else error,
            file=sys.stdout if given.json else sys.stderr,
        )
        return 1
    if given.json:
        print(json.dumps(found))
    else:
        timed = "not timed: no GPU" if found["right"] else "not timed: a wrong kernel has no speed"
        if "us" in found:
            timed = (
                f"{found['us']:.1f} us, {found['tflops']:.0f} TFLOP/s, {found['of_sdpa']:.3f} "
                f"of SDPA"
            )
        print(
            f"{' '.join(given.defines) or 'defaults'} ({found['path']}): "
            f"{'right' if found['right'] else 'WRONG'}, "
            f"error {found['error']:.2g} of {found['allowed']:.2g} allowed; {timed}; built in "
            f"{found['build_s']} s"
        )
    return 0 if found["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
