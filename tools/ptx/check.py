#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the engine and a GPU give the same bits? Runs tests/ptx on both, then random programs, then measures approximations.

  tools/ptx/check.py --engine build/release/src/engine/kiln_engine_run_ptx [--out OUT] [--only cases,random,approximations]
                     [--seed FIRST] [--programs N] [--update engine|gpu] [--no-gpu] [FILE...]

Without a GPU the engine alone runs, against what the files say. --update writes what the engine or the GPU gave into the
files. Under OUT: ptx.md with the figures, ptx-seed-N.ptx of a random program whose results differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from cases import read_case  # noqa: E402
from gpu import Gpu, GpuError  # noqa: E402
from random_programs import Program, random_memory  # noqa: E402
from runners import Engine, run_case  # noqa: E402

ROOT = HERE.parents[1]
RANDOM_THREADS = 64


def check_cases(runners: dict, files: list[Path], update: str, report: list[str]) -> int:
    failed, ran = 0, dict.fromkeys(runners, 0)
    skipped = []
    for path in files:
        case = read_case(path)
        for name, runner in runners.items():
            if name == "gpu" and case.not_on_gpu:
                skipped.append(f"{path.name}: {case.not_on_gpu}")
                continue
            try:
                memory = run_case(runner, case)
            except (RuntimeError, GpuError) as error:
                failed += 1
                report.append(f"- {path.name} on the {name}: {error}")
                continue
            ran[name] += 1
            if update == name:
                path.write_text(case.updated(memory))
                continue
            wrong = case.mismatches(memory)
            failed += bool(wrong)
            report += [f"- {path.name} on the {name}: {line}" for line in wrong[:4]]
    counts = ", ".join(f"{count} on the {name}" for name, count in ran.items())
    report += [f"{len(files)} files of tests/ptx: {counts}; {failed} failed"]
    report += [f"not on a GPU of this kind: {line}" for line in skipped]
    return failed


def check_random(runners: dict, first: int, count: int, out: Path | None, report: list[str]) -> int:
    failed = 0
    for seed in range(first, first + count):
        program, memory = Program(seed), random_memory(seed, RANDOM_THREADS)
        results = {}
        for name, runner in runners.items():
            text = program.text(runner.ptx_version, "sm_90", RANDOM_THREADS)
            try:
                results[name] = runner.run(text, memory, RANDOM_THREADS)
            except (RuntimeError, GpuError) as error:
                results[name] = str(error)[:300].encode()
                report.append(f"- seed {seed} on the {name}: {results[name].decode()}")
        if len(set(results.values())) > 1 or any(len(r) != len(memory) for r in results.values()):
            failed += 1
            report.append(f"- seed {seed}: {first_difference(list(results.values()))}")
            if out:
                (out / f"ptx-seed-{seed}.ptx").write_text(program.text("9.0", "sm_90", RANDOM_THREADS))
    report.append(f"{count} random programs, seeds {first} to {first + count - 1}, on {' and '.join(runners)}: {failed} differ")
    return failed


def first_difference(results: list[bytes]) -> str:
    a, b = results[0], results[-1]
    for at in range(0, min(len(a), len(b)), 8):
        if a[at : at + 8] != b[at : at + 8]:
            slot, thread = at // 8 // RANDOM_THREADS, at // 8 % RANDOM_THREADS
            register = f"%{'rdfe'[slot // 6]}{slot % 6}"
            words = [int.from_bytes(x[at : at + 8], "little") for x in (a, b)]
            return f"{register} of thread {thread}: 0x{words[0]:x} and 0x{words[1]:x}"
    return "one of them did not run"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the engine and a GPU on PTX.")
    parser.add_argument("files", nargs="*", type=Path, help="of tests/ptx; all when none is named")
    parser.add_argument("--engine", type=Path, help="the program kiln_engine_run_ptx")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="cases,random,approximations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=200, metavar="N")
    parser.add_argument("--update", choices=["engine", "gpu"], default="")
    parser.add_argument("--no-gpu", action="store_true")
    given = parser.parse_args()
    runners: dict = {}
    if given.engine:
        runners["engine"] = Engine(given.engine)
    if not given.no_gpu:
        try:
            runners["gpu"] = Gpu()
        except GpuError as error:
            print(f"no GPU: {error}", file=sys.stderr)
    if not runners:
        print("error: nothing to run on\n  why: no --engine and no GPU", file=sys.stderr)
        return 2
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
    files = given.files or sorted((ROOT / "tests/ptx").glob("*.ptx"))
    report, failed, only = [], 0, given.only.split(",")
    start = time.monotonic()
    if "cases" in only:
        failed += check_cases(runners, files, given.update, report)
    if "random" in only and not given.update:
        failed += check_random(runners, given.seed, given.programs, given.out, report)
    if "approximations" in only and not given.update:
        from approximations import measure_products, measure_unary

        report += ["", *measure_unary(runners), "", *measure_products(runners)]
    report.append(f"\n{time.monotonic() - start:.0f} s")
    print("\n".join(report))
    if given.out:
        (given.out / "ptx.md").write_text("# PTX on the engine and on a GPU\n\n" + "\n".join(report) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
