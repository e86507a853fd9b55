#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the engine take more instructions than before, and what does a watcher cost?

  make engine-instructions BASE=STAGE    the stage of another build (its build/release/stage)

valgrind's cachegrind counts the instructions of benchmarks/engine_kernels.cu, which a busy machine
does not change. A launch is the difference of two runs with N and 2N launches: start-up and
decoding cancel. "watched" delivers every access to a watcher that only counts. A written line of
the access trace is the difference of two runs that write one line and 2,001.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from instructions import counted  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "benchmarks/engine_kernels.cu"
KERNELS = "nothing add gather histogram reduce scan spmv matmul16 matmul32".split()
TIMES = {"nothing": 1000}
MOST, MOST_WATCHED = 1.01, 3.0
# Files of a trace that counts: one line is written, all others are left out.
COUNTS = {"KILN_ENGINE_ACCESSES": "/dev/null", "KILN_ENGINE_ACCESSES_LIMIT": "1"}
# Addresses of base and step, and lane by lane.
TRACED = {"add": "one address and a step", "gather": "up to 32 addresses"}
LINES = 2000


def environment(folder: Path) -> dict[str, str]:
    kept = ("HOME", "PATH", "CUDA_HOME", "TMPDIR")
    clean = {name: os.environ[name] for name in kept if name in os.environ}
    # AVX-512 is not known to valgrind.
    level = {"KILN_ENGINE_LEVEL": "x86-64-v3"} if platform.machine() == "x86_64" else {}
    return clean | level | {
        "XDG_CACHE_HOME": str(folder),
        "KILN_ENGINE_THREADS": "1",
        "KILN_DEVICE": "engine",
        "LC_ALL": "C",
    }  # fmt: skip


def build(stage: Path, folder: Path) -> Path:
    program = folder / "engine_kernels"
    command = [str(stage / "kiln/bin/kiln"), "build", "--program", str(SOURCE), "-o", str(program)]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return program


def per_launch(program: Path, kernel: str, env: dict[str, str]) -> float:
    times = TIMES.get(kernel, 1)
    counts = [
        sum(counted([str(program), kernel, str(n)], env).values()) for n in (times, 2 * times)
    ]
    return (counts[1] - counts[0]) / times


def per_line(program: Path, kernel: str, env: dict[str, str]) -> float:
    """Instructions that the access trace takes for a line of it."""

    def run(limit: int) -> int:
        trace = COUNTS | {"KILN_ENGINE_ACCESSES_LIMIT": str(limit)}
        return sum(counted([str(program), kernel, "1"], env | trace).values())

    return (run(1 + LINES) - run(1)) / LINES


Found = dict[str, tuple[float, float, float]]


def measure(base: Path, stage: Path) -> tuple[Found, dict[str, float]]:
    """By kernel: instructions of a launch before, now, and now with a watcher that counts; and of a
    line of the trace."""
    found: Found = {}
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as after:
        programs = build(base, Path(before)), build(stage, Path(after))
        envs = environment(Path(before)), environment(Path(after))
        for env, folder in zip(envs, (base, stage)):
            env["KILN_ENGINE"] = str(folder / "kiln/lib/libkiln_engine.so")
        for kernel in KERNELS:
            found[kernel] = (
                per_launch(programs[0], kernel, envs[0]),
                per_launch(programs[1], kernel, envs[1]),
                per_launch(programs[1], kernel, envs[1] | COUNTS),
            )
            print(kernel, *(f"{each:,.0f}" for each in found[kernel]), flush=True)
        lines = {kernel: per_line(programs[1], kernel, envs[1]) for kernel in TRACED}
    return found, lines


def page(found: Found, lines: dict[str, float]) -> tuple[str, int]:
    rows, missed = [], 0
    for kernel, (before, now, watched) in found.items():
        # An empty launch delivers no access.
        holds = now / before <= (1.0 if kernel == "nothing" else MOST)
        holds = holds and (kernel == "nothing" or watched / now <= MOST_WATCHED)
        missed += not holds
        rows.append(
            f"| {kernel} | {before:,.0f} | {now:,.0f} | {now / before:.4f} "
            f"| {watched / now:.2f} | {'PASS' if holds else 'MISS'} |"
        )
    text = f"""# Instructions of the engine

Written by `make engine-instructions BASE=STAGE` on {platform.machine()}: cachegrind's count of one
launch, on one thread. Bars: at most {MOST} of before (an empty launch: fewer), and at most
{MOST_WATCHED:g} times that with every access delivered to a watcher that only counts.

| kernel | before | now | now / before | watched / now | |
|---|---|---|---|---|---|
"""
    text += "\n".join(rows) + "\n"
    text += """
A line that the access trace writes (`kiln call --accesses`) costs:

| kernel | a line has | instructions |
|---|---|---|
"""
    text += "".join(f"| {k} | {TRACED[k]} | {cost:,.0f} |\n" for k, cost in lines.items())
    return text, missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--write", type=Path, help="the folder for engine-instructions.md")
    options = parser.parse_args()
    text, missed = page(*measure(options.base.resolve(), options.stage.resolve()))
    print(text)
    if options.write:
        (options.write / "engine-instructions.md").write_text(text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
