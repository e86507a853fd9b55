#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do the checkers of kiln sanitize cost, in instructions, time and memory?

  benchmarks/sanitize_cost.py [--only instructions|times] [--attention] [--write docs/results]

Each kernel of benchmarks/engine_kernels.cu is launched without checks, with `race` and with the
default ones, on one thread. Instructions are cachegrind's, as in benchmarks/engine_instructions.py.
Times are CPU seconds of a launch, paired: the three follow each other in each round, and the median
of the ratios is shown. Memory is the peak of the process with `race` less that without, for 20
launches. Bars: `race` at most 4 times by the geometric mean, no kernel above 8; all checks at most
8; memory at most 4 times the bytes touched and 64 MB.

--attention also builds kernels/fa_s512 with its Hopper path for the engine (minutes), and runs both
paths under all checks: at most 1 s of CPU time for the whole process, and no finding.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from engine_instructions import KERNELS, build, environment, per_launch  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
CHECKS = {"plain": "", "race": "race", "all": "default"}
MOST_MEAN, MOST_EACH = 4.0, 8.0
MOST_ATTENTION = 1.0  # s
TOUCHED = 8 << 20  # bytes: eight vectors of engine_kernels.cu
ROUNDS, LAUNCHES = 15, 10


def used_by(program: Path, kernel: str, launches: int, env: dict[str, str]) -> tuple[float, int]:
    """CPU seconds, and bytes at the peak."""
    words = [str(program), kernel, str(launches)]
    child = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{kernel}: exit status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def paired_times(program: Path, kernel: str, envs: dict[str, dict]) -> dict[str, float]:
    """The ratios to plain, by checks."""
    ratios: dict[str, list[float]] = {"race": [], "all": []}
    for _ in range(ROUNDS):
        seconds = {
            name: used_by(program, kernel, 1 + LAUNCHES, env)[0]
            - used_by(program, kernel, 1, env)[0]
            for name, env in envs.items()
        }
        for name, each in ratios.items():
            each.append(seconds[name] / seconds["plain"])
    return {name: statistics.median(each) for name, each in ratios.items()}


def instructions(program: Path, kernel: str, envs: dict[str, dict]) -> dict[str, float]:
    counts = {name: per_launch(program, kernel, env) for name, env in envs.items()}
    return {name: counts[name] / counts["plain"] for name in ("race", "all")}


def measure(stage: Path, kernels: list[str], only: str | None) -> dict[str, dict[str, float]]:
    """By kernel: ratios, and bytes of memory."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(stage, Path(folder))
        # Checked kernels are interpreted: compiled ones would be another comparison.
        plain = environment(Path(folder)) | {"KILN_ENGINE_COMPILE": "0"}
        plain["KILN_ENGINE"] = str(stage / "kiln/lib/libkiln_engine.so")
        envs = {
            name: plain | {"KILN_SANITIZE": checks, "KILN_SANITIZE_FOLDER": folder}
            if checks
            else plain
            for name, checks in CHECKS.items()
        }
        for kernel in kernels:
            row = {}
            if only != "times":
                counted = instructions(program, kernel, envs)
                row |= {f"{name} instructions": each for name, each in counted.items()}
            if only != "instructions":
                timed = paired_times(program, kernel, envs)
                row |= {f"{name} time": each for name, each in timed.items()}
            peaks = [used_by(program, kernel, 20, envs[name])[1] for name in ("plain", "race")]
            row["memory"] = peaks[1] - peaks[0]
            found[kernel] = row
            print(kernel, row, flush=True)
    return found


def attention(stage: Path) -> tuple[str, int]:
    """Lines for the page, and how many of them miss their bar."""
    kiln, shape = str(stage / "kiln/bin/kiln"), "randn:bf16:1x2x200x128"
    lines, missed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "fa_s512.so")
        words = ["--arch", "9.0a", "-D", "FA_HOPPER_ON_ENGINE=1", "-o", library]
        subprocess.run([kiln, "build", str(ROOT / "kernels/fa_s512"), *words], check=True)
        for op in ("forward", "forward_portable"):
            seconds, findings = [], 0
            for _ in range(ROUNDS):
                before = os.times()
                done = subprocess.run(
                    [kiln, "sanitize", library, op, shape, shape, shape, "--only", "all", "--json"],
                    capture_output=True, text=True,
                )  # fmt: skip
                after = os.times()
                findings = len(json.loads(done.stdout)["findings"])
                used = after.children_user + after.children_system
                seconds.append(used - before.children_user - before.children_system)
            holds = statistics.median(seconds) <= MOST_ATTENTION and findings == 0
            missed += not holds
            lines.append(
                f"| {op} | {statistics.median(seconds):.2f} | {findings} "
                f"| {'PASS' if holds else 'MISS'} |"
            )
    text = f"""
`kiln sanitize --only all` of fa_s512 at 1x2x200x128, bf16: CPU seconds of the whole process (bar:
{MOST_ATTENTION:g}), and findings. `forward` is the Hopper path (TMA, wgmma, mbarriers).

| op | s | findings | |
|---|---|---|---|
"""
    return text + "\n".join(lines) + "\n", missed


def page(found: dict[str, dict[str, float]]) -> tuple[str, int]:
    columns = [name for name in next(iter(found.values())) if name != "memory"]
    rows, missed = [], 0
    for kernel, row in found.items():
        holds = max(row[name] for name in columns) <= MOST_EACH
        holds = holds and row["memory"] <= 4 * TOUCHED + (64 << 20)
        missed += not holds
        cells = " | ".join(f"{row[name]:.2f}" for name in columns)
        word = "PASS" if holds else "MISS"
        rows.append(f"| {kernel} | {cells} | {row['memory'] / 2**20:.1f} | {word} |")
    means = {
        name: statistics.geometric_mean([row[name] for row in found.values()]) for name in columns
    }
    fine = all(mean <= MOST_MEAN for name, mean in means.items() if name.startswith("race"))
    missed += not fine
    cells = " | ".join(f"{mean:.2f}" for mean in means.values())
    rows.append(f"| geometric mean | {cells} | | {'PASS' if fine else 'MISS'} |")
    text = f"""# What kiln sanitize costs

Written by `benchmarks/sanitize_cost.py` on {platform.machine()}: what a launch costs with
the checker of races and with all default checks, as a multiple of the interpreter without checks,
on one thread. Instructions are cachegrind's; times are medians of {ROUNDS} paired ratios of CPU
time; memory is what the checker of races takes. Bars: {MOST_MEAN:g} for the mean of `race`,
{MOST_EACH:g} for each figure.

| kernel | {" | ".join(columns)} | memory, MiB | |
|---|{"---|" * len(columns)}---|---|
"""
    return text + "\n".join(rows) + "\n", missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=["instructions", "times"])
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--attention", action="store_true", help="fa_s512 too")
    parser.add_argument("--write", type=Path, help="the folder for sanitize-cost.md")
    options = parser.parse_args()
    kernels = options.kernel or [each for each in KERNELS if each != "nothing"]
    text, missed = page(measure(options.stage.resolve(), kernels, options.only))
    if options.attention:
        more, missed_too = attention(options.stage.resolve())
        text, missed = text + more, missed + missed_too
    print(text)
    if options.write:
        (options.write / "sanitize-cost.md").write_text(text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
