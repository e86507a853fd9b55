# SPDX-License-Identifier: Apache-2.0
"""Do Triton's own tutorials run on the engine and agree with their references?

    python benchmarks/triton_tutorials.py FOLDER [--targets sm_80,sm_90] [--write docs/results]

FOLDER: python/tutorials of a checkout of Triton at the version that is installed. Files run as they
are; only what measures times (triton.testing.perf_report) does nothing. 01 to 05 compare with torch
by themselves and print it or assert it; of 06 its pytest function is called at its smallest sizes.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# What a tutorial prints where a comparison fails.
_WRONG = re.compile(r"❌|differ(?!ence)|AssertionError")
_DIFFERENCE = re.compile(r"maximum difference between torch and triton is ([\d.e+-]+)")


class Nothing:
    """In place of a benchmark."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, _function: Any) -> Nothing:
        return self

    def run(self, *_: Any, **__: Any) -> None: ...


def run_one(file: str, target: str) -> None:
    import torch

    import kiln.triton

    kiln.triton.enable(target)
    import triton

    triton.testing.perf_report = Nothing
    # The engine's tensors are CPU tensors; a tutorial that names the GPU means the device.
    names = runpy.run_path(file, run_name="__main__")
    if "test_op" in names:
        for causal in (False, True):
            names["test_op"](1, 2, 128, 64, causal, False, "bwd", "triton-fp16")
        print("two cases of test_op passed")
    torch.manual_seed(0)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", default="sm_80,sm_90")
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs=2)
    options = parser.parse_args()
    if options.one:
        run_one(*options.one)
        return 0
    rows, bad = [], 0
    for file in sorted(options.folder.glob("0[1-6]-*.py")):
        for target in options.targets.split(","):
            begin = time.time()
            words = [sys.executable, __file__, str(options.folder), "--one", str(file), target]
            try:
                done = subprocess.run(words, capture_output=True, text=True, timeout=options.limit)
                output, code = done.stdout + done.stderr, done.returncode
            except subprocess.TimeoutExpired:
                output, code = f"longer than {options.limit:.0f} s", 1
            difference = _DIFFERENCE.search(output)
            wrong = code != 0 or _WRONG.search(output) or (difference and float(difference[1]) > 0)
            bad += bool(wrong)
            last = (output.strip().splitlines() or [""])[-1][:120]
            rows.append((file.name, target, "FAILED: " + last if wrong else "passed"))
            print(*rows[-1], f"{time.time() - begin:.0f} s", flush=True)
    if options.write:
        write(options.write / "triton.md", rows)
    return 1 if bad else 0


def write(path: Path, rows: list[tuple[str, str, str]]) -> None:
    import triton

    lines = [
        "# Triton's tutorials on the engine",
        "",
        f"`python benchmarks/triton_tutorials.py FOLDER`, {datetime.date.today()}, "
        f"{platform.machine()}, Triton {triton.__version__}.",
        "",
        "| tutorial | target | outcome |",
        "|---|---|---|",
        *(f"| {name} | {target} | {outcome} |" for name, target, outcome in rows),
        "",
    ]
    path.write_text("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
