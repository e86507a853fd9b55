# SPDX-License-Identifier: Apache-2.0
"""How much faster is a Triton matmul on the engine than in Triton's interpreter? Prints the CPU
time of a 512^3 fp16 matmul for sm_80 and sm_90, and of TRITON_INTERPRET=1.

    python benchmarks/triton_matmul.py [--numpy FOLDER] [--write docs/results]

The interpreter of Triton 3.6 needs numpy < 2.4: pip install --target FOLDER 'numpy<2.4'.
CPU time of all threads, the least of several runs: other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZE = 512
BAR = 20


def measure(name: str, runs: int) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "triton"))
    import torch

    import triton

    import kiln.triton

    if name != "interpreter":
        kiln.triton.enable(name)
    import kernels

    def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The second configuration of the autotuner, which the engine takes too."""
        c = torch.empty((SIZE, SIZE), dtype=torch.float16)
        strides = (*a.stride(), *b.stride(), *c.stride())
        grid = (triton.cdiv(SIZE, 64) * triton.cdiv(SIZE, 64),)
        kernels.matmul_kernel.fn[grid](
            a, b, c, SIZE, SIZE, SIZE, *strides, BM=64, BN=64, BK=32, GROUP=8, ACTIVATION="",
            num_stages=3, num_warps=4,
        )  # fmt: skip
        return c

    a, b = torch.randn(SIZE, SIZE).half(), torch.randn(SIZE, SIZE).half()
    expected = a.float() @ b.float()
    least = wall = float("inf")
    for _ in range(runs):
        begin, cpu = time.perf_counter(), time.process_time()
        found = matmul(a, b)
        least = min(least, time.process_time() - cpu)
        wall = min(wall, time.perf_counter() - begin)
    assert (found.float() - expected).abs().max() < 0.1
    print(name, least * 1e3, wall * 1e3, triton.__version__)


def page_of(found: dict[str, list[str]]) -> str:
    versions = f"Triton {found['interpreter'][2]}, Python {platform.python_version()}"
    cpu, wall = (float(found["interpreter"][at]) for at in (0, 1))
    lines = [
        "# A Triton matmul on the engine",
        "",
        f"`python benchmarks/triton_matmul.py`, {datetime.date.today()}, {platform.machine()}, "
        f"{os.cpu_count()} cores, {versions}: a {SIZE}^3 fp16 matmul, the least of the runs, "
        f"compared with `TRITON_INTERPRET=1`. The bar is {BAR} times as fast.",
        "",
        "| where | ms of CPU time, all threads | ms | times as fast, by CPU time | by the clock |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, (mine, clock, *_) in found.items():
        where = "interpreter" if name == "interpreter" else f"engine, {name}"
        lines.append(
            f"| {where} | {float(mine):,.1f} | {float(clock):,.1f} | {cpu / float(mine):.0f} "
            f"| {wall / float(clock):.0f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--numpy", default="")
    parser.add_argument("--one", default="")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.one:
        measure(options.one, 2 if options.one == "interpreter" else 7)
        return
    found = {}
    for name in ("sm_80", "sm_90", "interpreter"):
        environment = dict(os.environ)
        if name == "interpreter":
            environment["TRITON_INTERPRET"] = "1"
            path = environment.get("PYTHONPATH", "")
            environment["PYTHONPATH"] = f"{options.numpy}:{path}" if options.numpy else path
        done = subprocess.run(
            [sys.executable, __file__, "--one", name],
            env=environment, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        found[name] = done.stdout.splitlines()[-1].split()[1:]
    print(page_of(found))
    if options.write:
        (options.write / "triton-matmul.md").write_text(page_of(found))


if __name__ == "__main__":
    main()
