#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a call of an op with three NumPy arrays cost, beyond the launch?

    python benchmarks/array_calls.py [--write docs/results]

The op launches nothing, so that all of the time is the call's. Once as in a Python without torch,
once with torch loaded, where the type of the first array decides. The least of 60 runs of 2,000
calls counts: a busy machine only adds to it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "add" / "noop_arrays.cu"
BAR_US, CALLS, RUNS = 3.0, 2000, 60
MEASURE = f"""
import os, sys, timeit
if sys.argv[1] == "without torch":
    sys.modules["torch"] = None
import numpy, kiln
op = kiln.load({str(SOURCE)!r}).noop_arrays
arrays = [numpy.ones(16, numpy.float32) for _ in range(3)]
op(*arrays)
a, b, out = arrays
calls = timeit.repeat(lambda: op(a, b, out), number={CALLS}, repeat={RUNS})
nothing = timeit.repeat(lambda: None, number={CALLS}, repeat={RUNS})
print((min(calls) - min(nothing)) / {CALLS} * 1e6)
"""


def microseconds(way: str) -> float:
    environment = {**os.environ, "KILN_DEVICE": "engine"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, way], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout.split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description="Calls of an op with NumPy arrays.")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    rows = [(way, microseconds(way)) for way in ("without torch", "with torch loaded")]
    lines = [
        "# Calls with NumPy arrays",
        "",
        f"`python benchmarks/array_calls.py`, {datetime.date.today()}, {platform.machine()}, "
        f"Python {platform.python_version()}: an op of three arrays that launches nothing, least "
        f"of {RUNS} runs of {CALLS:,} calls.",
        "",
        "| process | us per call | bar |",
        "|---|---:|---:|",
        *(f"| {way} | {value:.2f} | {BAR_US:.0f} |" for way, value in rows),
        "",
    ]
    print("\n".join(lines))
    if options.write:
        (options.write / "array-calls.md").write_text("\n".join(lines))
    return 1 if any(value > BAR_US for _, value in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
