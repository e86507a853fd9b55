#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do the checkers of kiln sanitize cost, in instructions and memory?

  benchmarks/sanitize_cost.py [--checks race] [--write docs/results]

Counts as benchmarks/engine_instructions.py does: cachegrind, one thread, a launch of each kernel of
benchmarks/engine_kernels.cu with and without the checks. Memory is the peak of the process with the
checks less that without, for 20 launches. Bars: `race` at most 4 times by the geometric mean and 8
times for each kernel; memory at most 4 times the bytes touched and 64 MB.
"""

from __future__ import annotations

import argparse
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
MOST_MEAN, MOST_EACH = 4.0, 8.0
TOUCHED = 8 << 20  # bytes: eight vectors of engine_kernels.cu


def peak_bytes(program: Path, kernel: str, env: dict[str, str]) -> int:
    child = subprocess.Popen([str(program), kernel, "20"], env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{kernel}: exit status {status}")
    return used.ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checks", default="race")
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--write", type=Path, help="the folder for sanitize-cost.md")
    options = parser.parse_args()
    stage = options.stage.resolve()
    rows, ratios, missed = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(stage, Path(folder))
        # Checked kernels are interpreted: compiled ones would be another comparison.
        plain = environment(Path(folder)) | {"KILN_ENGINE_COMPILE": "0"}
        plain["KILN_ENGINE"] = str(stage / "kiln/lib/libkiln_engine.so")
        checked = plain | {"KILN_SANITIZE": options.checks, "KILN_SANITIZE_FOLDER": folder}
        for kernel in options.kernel or [each for each in KERNELS if each != "nothing"]:
            before = per_launch(program, kernel, plain)
            after = per_launch(program, kernel, checked)
            more = peak_bytes(program, kernel, checked) - peak_bytes(program, kernel, plain)
            ratios.append(after / before)
            holds = ratios[-1] <= MOST_EACH and more <= 4 * TOUCHED + (64 << 20)
            missed += not holds
            rows.append(
                f"| {kernel} | {before:,.0f} | {after:,.0f} | {ratios[-1]:.2f} "
                f"| {more / 2**20:.1f} | {'PASS' if holds else 'MISS'} |"
            )
            print(rows[-1], flush=True)
    mean = statistics.geometric_mean(ratios)
    missed += mean > MOST_MEAN
    text = f"""# What kiln sanitize costs

Written by `benchmarks/sanitize_cost.py --checks {options.checks}` on {platform.machine()}:
instructions of one launch (cachegrind, one thread) without and with the checks, and the memory that
they take. Bars: {MOST_MEAN:g} by the geometric mean, {MOST_EACH:g} for each kernel.

| kernel | plain | checked | checked / plain | memory, MiB | |
|---|---|---|---|---|---|
"""
    text += "\n".join(rows)
    text += f"\n\nGeometric mean: {mean:.2f} ({'PASS' if mean <= MOST_MEAN else 'MISS'}).\n"
    print(text)
    if options.write:
        (options.write / "sanitize-cost.md").write_text(text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
