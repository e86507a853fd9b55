# SPDX-License-Identifier: Apache-2.0
"""Which tests are there, and do they pass? Ends with one line of counts; exit status 1 if one
failed.

tools/test [WORD...]: only the steps whose name contains one of the words, and what they need.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from steps import Step, close, run_steps

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
JOBS = str(os.cpu_count() or 2)
# What makes pytest use every core; without it one test runs after the other.
XDIST = BUILD / "test-tools"
if not XDIST.is_dir() and (ROOT / ".carry/test-tools").is_dir():
    XDIST = ROOT / ".carry/test-tools"  # of a machine without a network
# Under ASan: the readers of untrusted bytes and texts, by what the fuzzers write. The engine, which
# takes four minutes of one core to compile so, and the unit tests are `make test-asan`.
# Under TSan: the threads that read what processes write. Those of builds and of the engine take
# nine minutes of one core, most of them to compile; `make test-tsan` runs them.
TSAN_UNITS = "sys"
ASAN_FUZZ = ("binary", "text")


def ctest(preset: str, junit: Path, *options: str, jobs: str = JOBS) -> list[str]:
    return [
        "ctest",
        "--preset",
        preset,
        "-j",
        jobs,
        "--output-junit",
        str(junit),
        "--no-tests=error",
        *options,
    ]


def pytest(junit: Path, folder: str) -> list[str]:
    python = os.environ["KILN_PYTHON"]
    # By file: what a file builds once for its tests is built once. The kernels' tests share one
    # library and torch: two processes take half as much processor time again, and as long.
    # Those of tests/gpu time kernels.
    alone = ("tests/kernels", "tests/gpu")
    use_processes = (XDIST / "xdist").is_dir() and folder not in alone
    parallel = ["-n", JOBS, "--dist", "loadfile"] if use_processes else []
    return [
        python,
        "-m",
        "pytest",
        "-q",
        "-rfEs",
        "--durations=10",
        "-o",
        "faulthandler_timeout=300",  # says where a test stands that takes longer
        "-p",
        "no:cacheprovider",
        f"--junitxml={junit}",
        *parallel,
        folder,
    ]


def why_no_gpu() -> str:
    if not shutil.which("nvidia-smi"):
        return "no GPU: there is no nvidia-smi"
    told = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return "" if told.returncode == 0 and "GPU" in told.stdout else "no GPU that nvidia-smi lists"


def all_steps() -> list[Step]:
    release, units = "build release", "units, golden, layers, hygiene"
    asan, tsan = "build asan", "build tsan"
    results = BUILD / "test-results"
    results.mkdir(parents=True, exist_ok=True)
    stage = BUILD / "release/stage"
    staged = {
        "PYTHONPATH": f"{stage}:{XDIST}",
        "KILN_BIN": str(stage / "kiln/bin/kiln"),
        # A process for each core: threads of torch's own would wait for one another, busily.
        "OMP_NUM_THREADS": "1",
    }
    no_stage = "" if (ROOT / "python/CMakeLists.txt").exists() else "no Python package yet"

    steps = [
        Step("format", ["tools/format"], 120),
        Step(release, ["tools/build", "--to-test", "release"], 1200),
        Step(
            units,
            ctest("release", results / "ctest.xml", "--label-exclude", "long"),
            1500,
            results / "ctest.xml",
            [release],
        ),
    ]
    for name, folder, skip in (
        ("python", "tests/python", no_stage),
        ("kernels", "tests/kernels", no_stage),
        ("browser", "tests/browser", no_stage),
        ("gpu", "tests/gpu", no_stage or why_no_gpu()),
    ):
        if not any((ROOT / folder).rglob("test_*.py")):
            continue
        junit = results / f"{name}.xml"
        steps.append(Step(name, pytest(junit, folder), 1500, junit, [release], skip, staged))
    steps += [
        # All of it is `make tidy`. Beside the Python tests, most of which keep one core busy.
        Step(
            "clang-tidy on changed files",
            ["tools/tidy", "--changed", "--most", "2"],
            900,
            None,
            [release],
            beside=units,
        ),
        # The compiler takes what the tests leave.
        Step(
            asan,
            ["tools/build", "asan", *(f"fuzz_{name}_smoke" for name in ASAN_FUZZ)],
            1200,
            beside=release,
        ),
        # The rest is `make test-tsan`.
        Step(tsan, ["tools/build", "tsan", f"test_{TSAN_UNITS}"], 1200, beside=units),
        Step(
            "units under tsan",
            ctest("tsan", results / "tsan.xml", "-R", f"^unit[.]{TSAN_UNITS}$"),
            900,
            results / "tsan.xml",
            [tsan],
        ),
        # The fuzzers stop after their bound.
        Step(
            "fuzz under asan, ubsan",
            ctest("asan", results / "asan.xml", "-R", f"^fuzz[.]({'|'.join(ASAN_FUZZ)})$"),
            900,
            results / "asan.xml",
            [asan],
        ),
    ]
    return steps


def chosen(steps: list[Step], words: list[str]) -> list[Step]:
    if not words:
        return steps
    wanted = {step.name for step in steps if any(word in step.name for word in words)}
    wanted |= {need for step in steps if step.name in wanted for need in step.needs}
    return [step for step in steps if step.name in wanted]


def main() -> int:
    os.chdir(ROOT)
    steps = chosen(all_steps(), sys.argv[1:])
    if not steps:
        print(f"no step has {' or '.join(sys.argv[1:])} in its name", file=sys.stderr)
        return 2
    # `make test` sets up and builds before it comes here, and counts that too.
    begun = os.environ.get("KILN_TEST_BEGUN")
    before = max(0.0, time.time() - float(begun)) if begun else 0.0
    if begun:
        print(f"        {before:7.1f} s              set-up, and the build beside it", flush=True)
    return close(run_steps(steps, BUILD / "logs"), before)


if __name__ == "__main__":
    sys.exit(main())
