# SPDX-License-Identifier: Apache-2.0
"""How long does NAME take, beside torch?   python bench.py [elements]"""

import sys
import time
from pathlib import Path

import kiln
import torch

NAME = kiln.load(Path(__file__).parent)
REPEATS = 20


def seconds(call, device):
    """The median of one call; on a GPU between CUDA events, so that the kernel is timed and not the launch."""
    for _ in range(3):
        call()
    times = []
    for _ in range(REPEATS):
        if device == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        else:
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def main():
    device = kiln.device()
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << (24 if device == "cuda" else 16)
    x = torch.randn(elements, device=device)
    y = torch.randn_like(x)
    own = seconds(lambda: NAME.NAME(x, y, 2.5), device)
    torchs = seconds(lambda: torch.add(x, y, alpha=2.5), device)
    where = "the engine, which runs the kernel on the CPU" if device == "cpu" else torch.cuda.get_device_name()
    print(f"{elements} elements of float32 on {where}")
    print(f"{'NAME.NAME':24} {own * 1e6:10.1f} us   {3 * x.nbytes / own / 1e9:8.1f} GB/s")
    print(f"{'torch.add':24} {torchs * 1e6:10.1f} us   {3 * x.nbytes / torchs / 1e9:8.1f} GB/s")


if __name__ == "__main__":
    main()
