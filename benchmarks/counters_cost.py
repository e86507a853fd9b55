#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does kiln counters cost, in instructions of the CPU?

  benchmarks/counters_cost.py [--kernel NAME]... [--write docs/results]

Counts as benchmarks/engine_instructions.py does: cachegrind, one thread, a launch of each kernel of
benchmarks/engine_kernels.cu with and without counters. Bar: at most 4 times the interpreter's.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from engine_instructions import KERNELS, build, environment, per_launch  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
MOST = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--write", type=Path, help="the folder for counters-cost.md")
    options = parser.parse_args()
    stage = options.stage.resolve()
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder:
        program = build(stage, Path(folder))
        # Watched kernels are interpreted: compiled ones would be another comparison.
        plain = environment(Path(folder)) | {"KILN_ENGINE_COMPILE": "0"}
        plain["KILN_ENGINE"] = str(stage / "kiln/lib/libkiln_engine.so")
        counting = plain | {"KILN_ENGINE_COUNTERS": str(Path(folder) / "counts.jsonl")}
        for kernel in options.kernel or [each for each in KERNELS if each != "nothing"]:
            before = per_launch(program, kernel, plain)
            after = per_launch(program, kernel, counting)
            ratios.append(after / before)
            rows.append(
                f"| {kernel} | {before:,.0f} | {after:,.0f} | {ratios[-1]:.2f} "
                f"| {'PASS' if ratios[-1] <= MOST else 'MISS'} |"
            )
            print(rows[-1], flush=True)
    text = f"""# What kiln counters costs

Written by `benchmarks/counters_cost.py` on {platform.machine()}: instructions of one launch
(cachegrind, one thread, interpreted) without and with counters. Bar: at most {MOST:g} times.

| kernel | plain | counted | counted / plain | |
|---|---:|---:|---:|---|
"""
    text += "\n".join(rows)
    text += f"\n\nGeometric mean: {statistics.geometric_mean(ratios):.2f}.\n"
    if options.write:
        (options.write / "counters-cost.md").write_text(text)
    return 1 if max(ratios) > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
