#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the engine and a GPU give the same bits? Runs tests/ptx on both, then random programs, then
measures approximations.

  tools/ptx/check.py --engine build/release/src/engine/kiln_engine_run_ptx [--out OUT]
                     [--only cases,random,approximations] [--seed FIRST] [--programs N] [--update
                     engine|gpu] [--no-gpu] [FILE...]

Without a GPU the engine alone runs, against what the files say. --update writes what the engine or
the GPU gave into the files, where that differs. Under OUT: ptx.md with the figures;
ptx-failures.tar.gz with each file of tests/ptx that fails, as the runner filled it in, and each
random program whose results differ, up to the line after which they do.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "benchmarks")]
from cases import case_files, read_case  # noqa: E402
from gpu import GpuError  # noqa: E402
from random_programs import Program, random_memory  # noqa: E402
from runners import Engine, Gpu, run_case  # noqa: E402
from sampling import machine  # noqa: E402

RANDOM_THREADS = 64
# Programs that ptxas 13.0 compiles wrongly: docs/design/engine.md, Beside ptxas.
WRONG_BY_PTXAS = {154: "the guard of a subtraction is lost in a loop"}
MOST_SHORTENED = 20  # programs that differ: each takes a dozen runs to shorten


class Report:
    """Lines for people, and the texts of what failed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.failures: dict[str, str] = {}

    def write(self, out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        facts = "\n".join(f"| {name} | {value} |" for name, value in machine().items())
        title = "# PTX on the engine and on a GPU\n\nWritten by `tools/ptx/check.py`."
        head = f"{title}\n\n| machine | |\n|---|---|\n{facts}\n\n"
        (out / "ptx.md").write_text(head + "\n".join(self.lines) + "\n")
        if not self.failures:
            return
        with tarfile.open(out / "ptx-failures.tar.gz", "w:gz") as archive:
            for name, text in self.failures.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))


def check_cases(runners: dict, files: list[Path], update: str, report: Report) -> int:
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
                report.lines.append(f"- {path.name} on the {name}: {error}")
                report.failures[f"{name}/{path.name}.program"] = case.program(runner.ptx_version)
                continue
            ran[name] += 1
            wrong = case.mismatches(memory)
            if wrong and update == name:
                path.write_text(case.updated(memory))
            elif wrong:
                failed += 1
                report.lines += [f"- {path.name} on the {name}: {line}" for line in wrong[:4]]
                report.failures[f"{name}/{path.name}"] = case.updated(memory)
    counts = ", ".join(f"{count} on the {name}" for name, count in ran.items())
    report.lines += [f"{len(files)} files of tests/ptx: {counts}; {failed} failed"]
    report.lines += [f"not on a GPU of this kind: {line}" for line in skipped]
    return failed


def run_program(
    runners: dict, program: Program, memory: bytes, end: int | None = None
) -> dict[str, bytes | str]:
    """By runner: the memory after it, or why there is none."""
    results: dict[str, bytes | str] = {}
    for name, runner in runners.items():
        try:
            text = program.text(runner.ptx_version, "sm_90", RANDOM_THREADS, end)
            results[name] = runner.run(text, memory, RANDOM_THREADS)
        except (RuntimeError, GpuError) as error:
            results[name] = str(error)[:300]
    return results


def agree(results: dict[str, bytes | str]) -> bool:
    return len(set(results.values())) == 1 and isinstance(next(iter(results.values())), bytes)


def shortest(runners: dict, program: Program, memory: bytes) -> tuple[int, dict[str, bytes | str]]:
    """The first end of the program after which results differ."""
    low, high = 0, len(program.ends) - 1
    results = run_program(runners, program, memory)
    while low < high:
        middle = (low + high) // 2
        found = run_program(runners, program, memory, program.ends[middle])
        if agree(found):
            low = middle + 1
        else:
            high, results = middle, found
    return program.ends[high], results


def check_random(runners: dict, first: int, count: int, report: Report) -> int:
    failed = 0
    for seed in range(first, first + count):
        if seed in WRONG_BY_PTXAS and "gpu" in runners:
            report.lines.append(f"seed {seed} is left out: in ptxas 13.0 {WRONG_BY_PTXAS[seed]}")
            continue
        program, memory = Program(seed), random_memory(seed, RANDOM_THREADS)
        results, end = run_program(runners, program, memory), len(program.lines)
        if agree(results):
            continue
        failed += 1
        if len(runners) > 1 and failed <= MOST_SHORTENED:
            end, results = shortest(runners, program, memory)
        last = program.lines[end - 1]
        report.lines.append(
            f"- seed {seed}, after line {end}, `{last}`: {first_difference(results)}"
        )
        report.failures[f"random/{seed}.ptx"] = program.text("9.0", "sm_90", RANDOM_THREADS, end)
    seeds, where = f"seeds {first} to {first + count - 1}", " and ".join(runners)
    report.lines.append(f"{count} random programs, {seeds}, on {where}: {failed} differ")
    return failed


def first_difference(results: dict[str, bytes | str]) -> str:
    missing = [
        f"on the {name}: {result}" for name, result in results.items() if isinstance(result, str)
    ]
    if missing:
        return "; ".join(missing)
    for at in range(0, min(map(len, results.values())), 8):
        words = {
            name: int.from_bytes(memory[at : at + 8], "little") for name, memory in results.items()
        }
        if len(set(words.values())) > 1:
            slot, thread = at // 8 // RANDOM_THREADS, at // 8 % RANDOM_THREADS
            seen = ", ".join(f"0x{word:x} on the {name}" for name, word in words.items())
            return f"%{'rdfe'[slot // 6]}{slot % 6} of thread {thread}: {seen}"
    return "no difference found"


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
    files = given.files or case_files(ROOT / "tests/ptx")
    report, failed, only = Report(), 0, given.only.split(",")
    start = time.monotonic()
    if "cases" in only:
        failed += check_cases(runners, files, given.update, report)
        report.lines.append(f"{time.monotonic() - start:.0f} s")
    if "random" in only and not given.update:
        failed += check_random(runners, given.seed, given.programs, report)
        report.lines.append(f"{time.monotonic() - start:.0f} s")
    if given.out:
        report.write(given.out)  # what is known, should the rest be cut off
    if "approximations" in only and not given.update:
        from approximations import measure_products, measure_unary

        products, beyond = measure_products(runners)
        report.lines += ["", *measure_unary(runners), "", *products]
        failed += beyond
    report.lines.append(f"\n{time.monotonic() - start:.0f} s")
    print("\n".join(report.lines))
    if given.out:
        report.write(given.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
