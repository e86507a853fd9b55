#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is the engine's add kernel at every level of CPU, on one core and on two? Three runs of
each level, in turns.

  benchmarks/engine_levels.py [--out FOLDER] [--build build/release] [--runs 3]

Writes FOLDER/engine-levels.md. Fails where the level that this CPU gets misses a bar in all runs.
About 8 s a run.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from pathlib import Path

from sampling import machine

ROOT = Path(__file__).resolve().parents[1]
LEVELS = ["baseline", "x86-64-v3", "x86-64-v4"] if platform.machine() == "x86_64" else ["baseline"]


def rows_of(bench: Path, level: str) -> list[list[str]] | None:
    """The cells of the rows that the benchmark prints; None where this CPU has not what the level
    needs."""
    command = [str(bench), f"--level={level}", "--only=add", str(ROOT / "tests/ptx/kernels")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    if not lines:
        print(f"{level}: {done.stderr.strip()}")
        return None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def main() -> int:
    parser = argparse.ArgumentParser(description="The engine's add kernel at every level of CPU.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/engine-levels")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    subprocess.run(
        ["ninja", "-C", str(given.build), "kiln_engine_bench"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    bench = given.build / "src/engine/kiln_engine_bench"

    lines = [
        "# The engine's add kernel by level of CPU",
        "",
        "Written by `benchmarks/engine_levels.py`.",
        "",
    ]
    lines += [
        "| machine | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine().items()),
    ]
    lines += ["", "| level | run | what | figure | bar | | how |", "|---|---|---|---|---|---|---|"]
    missed: dict[str, set[str]] = {}
    for run in range(1, given.runs + 1):
        for level in LEVELS:
            rows = rows_of(bench, level)
            if rows is None:
                continue
            for what, figure, bar, _, state, how in rows:
                lines.append(f"| {level} | {run} | {what} | {figure} | {bar} | {state} | {how} |")
            found = {row[0] for row in rows if row[4] == "MISS"}
            missed[level] = missed.get(level, found) & found
    given.out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (given.out / "engine-levels.md").write_text(text)
    print(text)
    own = [level for level in LEVELS if level in missed][-1:]
    for level in own:
        for what in sorted(missed[level]):
            print(f"error: {level}: {what}: below its bar in {given.runs} runs", file=sys.stderr)
    return 1 if not own or missed[own[0]] else 0


if __name__ == "__main__":
    sys.exit(main())
