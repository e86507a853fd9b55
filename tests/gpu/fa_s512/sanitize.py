#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is fa_s512 clean under compute-sanitizer? memcheck, racecheck, synccheck and initcheck over both
paths, called by `kiln call`, with no Python and no torch in the process that is watched.

    python tests/gpu/fa_s512/sanitize.py --out FOLDER      fa_sanitizer.md there; about a minute.
                                                           Exit code 1: something was found

The tall tiles are built with -D BLOCK_M=192, so that a small call takes them too.

Where the tool has --check-tensor-ops, TMA's copies are checked as well. Without it initcheck does
not see what TMA stores, and takes the copy of the result to the host for one of unwritten memory:
such a case is run again with those copies unchecked, and the row says so. That every element is
written, test_2_forward.py asks, with memory that held NaN before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STAGE = Path(os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage")
KILN = str(STAGE / "kiln" / "bin" / "kiln")
PROJECT = ROOT / "kernels" / "fa_s512"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
COPY = "Host API memory access error"  # of cudaMemcpy, as initcheck says it
BUILDS = {"defaults": [], "192 rows": ["-D", "HEAD_DIM=64", "-D", "BLOCK_M=192"]}
# Build, op, sizes of q and of k and v, causal. Lengths that fill no tile; more tiles than one;
# shared heads.
CASES = [
    ("defaults", "forward", "1x2x200x128", "1x2x200x128", False),
    ("defaults", "forward", "1x2x200x64", "1x2x200x64", True),
    ("defaults", "forward", "2x4x130x128", "2x2x300x128", False),
    ("192 rows", "forward", "1x2x400x64", "1x2x400x64", False),
    ("defaults", "backward", "1x2x200x128", "1x2x200x128", True),
    ("defaults", "backward", "2x4x130x64", "2x2x300x64", False),
    ("defaults", "forward_portable", "1x2x200x128", "1x2x200x128", True),
    ("defaults", "forward_portable", "2x4x130x64", "2x2x300x64", False),
]


def sanitizer() -> str | None:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("compute-sanitizer") or next(
        (
            path
            for path in (
                f"{home}/bin/compute-sanitizer",
                f"{home}/compute-sanitizer/compute-sanitizer",
            )
            if os.path.exists(path)
        ),
        None,
    )


def library(defines: list[str], folder: Path) -> str:
    line = [
        KILN,
        "build",
        str(PROJECT),
        "--arch",
        "9.0a",
        "--build-dir",
        str(folder),
        "--json",
        *defines,
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"error: {' '.join(line)} ended with {done.returncode}\n"
            f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return json.loads(done.stdout)["library"]


def call(path: str, op: str, query: str, keys: str, causal: bool) -> list[str]:
    if op == "backward":
        lse = f"randn:f32:{query.rpartition('x')[0]}"
        given = [f"randn:bf16:{size}" for size in (query, query, keys, keys, query)]
        return [KILN, "call", path, op, *given, lse, f"is_causal={str(causal).lower()}"]
    gqa = ["enable_gqa=true"] if query.split("x")[1] != keys.split("x")[1] else []
    tensors = [f"randn:bf16:{size}" for size in (query, keys, keys)]
    return [KILN, "call", path, op, *tensors, f"is_causal={str(causal).lower()}", *gqa]


def watch(
    program: str, tool: str, more: list[str], line: list[str], limit_s: float
) -> tuple[str, str, float]:
    """State (clean, found, failed), the first lines that say why, seconds."""
    began = time.monotonic()
    limits = ["--error-exitcode", "9", "--print-limit", "4", "--target-processes", "all"]
    words = [program, "--tool", tool, *limits, *more, *line]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return "failed", f"did not finish in {limit_s:.0f} s", time.monotonic() - began
    text = done.stdout + done.stderr
    seconds = time.monotonic() - began
    counts = [
        int(count) for count in re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", text)
    ]
    if done.returncode == 0 and counts and not any(counts):
        return "clean", "", seconds
    said = [
        part.strip("= \n")
        for part in text.splitlines()
        if part.startswith("=========") and part.strip("= \n")
    ]
    if tool == "initcheck" and COPY in text and "--check-api-memory-access" not in more:
        state, why, again = watch(
            program, tool, [*more, "--check-api-memory-access", "no"], line, limit_s
        )
        return state, why or "the copy of the result to the host apart", seconds + again
    state = "found" if any(counts) else "failed"
    return state, "; ".join(said[1:6] or [text.strip()[-300:]]), seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "benchmarks")
    parser.add_argument(
        "--limit",
        type=float,
        default=90,
        metavar="SECONDS",
        help="for one case under one tool (90)",
    )
    given = parser.parse_args()
    program = sanitizer()
    if not program or not shutil.which("nvidia-smi"):
        print(f"skipped: {'no GPU' if program else 'compute-sanitizer is not here'}")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False
    ).stdout
    listed = subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
    tensors = ["--check-tensor-ops", "yes"] if "--check-tensor-ops" in listed else []
    libraries = {
        name: library(words, ROOT / f"build/fa-sanitize-{i}")
        for i, (name, words) in enumerate(BUILDS.items())
    }
    lines = [
        "# fa_s512 under compute-sanitizer",
        "",
        "Written by `tests/gpu/fa_s512/sanitize.py`.",
        "",
    ]
    lines += [
        (re.findall(r"[Vv]ersion [\d.]+.*", version) or ["unknown version"])[0]
        + f", {' '.join(tensors) or 'no --check-tensor-ops'}",
        "",
        "| tool | call | | seconds |",
        "|---|---|---|---|",
    ]
    bad = 0
    # Small calls: the tools run side by side on one GPU.
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        jobs = [
            (
                tool,
                case,
                pool.submit(
                    watch, program, tool, tensors, call(libraries[case[0]], *case[1:]), given.limit
                ),
            )
            for case in CASES
            for tool in TOOLS
        ]
        for tool, (build, op, query, keys, causal), job in jobs:
            state, why, seconds = job.result()
            bad += state != "clean"
            name = f"{op} q {query}, k {keys}{', causal' if causal else ''}, {build}"
            lines.append(
                f"| {tool} | {name} | {state}{': ' + why if why else ''} | {seconds:.1f} |"
            )
            print(lines[-1], flush=True)
    lines += ["", f"{len(jobs) - bad} of {len(jobs)} clean."]
    (given.out / "fa_sanitizer.md").write_text("\n".join(lines) + "\n")
    print(lines[-1])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
