#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who finds which case of the catalogue: NVIDIA's compute-sanitizer on a GPU, or kiln sanitize?

    vendor.py run FOLDER [--jobs 4] [--limit 20] [--seconds 180]     on a GPU: CHAPTER.TOOL.txt
    vendor.py compare KILN FOLDER [--chapters race,streams] [--write FILE.md]     without a GPU

A case counts as found by a tool if it names one of the case's lines. Findings of host calls have no
line and are not compared.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import catalogue

HERE = Path(__file__).resolve().parent
CHAPTERS = ("memory", "sync", "race", "streams")
# The tool made for a chapter comes first: time may not suffice for all.
OWN = {"memory": "memcheck", "sync": "synccheck", "race": "racecheck"}
TOOLS = ("memcheck", "racecheck", "synccheck")
LAUNCH = re.compile(r"\b(\w+)(<[^<>;]*>)?<<<")
CHOICE = """#include <cstdlib>
#include <cstring>
static bool chosen(const char* kernel) {
  const char* one = std::getenv("KILN_CASE");
  return one == nullptr || std::strcmp(one, kernel) == 0;
}
"""


def build(chapter: str, folder: Path) -> tuple[Path, list[str]]:
    """The program, which runs the one kernel that KILN_CASE names, and the kernels with mistakes.
    On a GPU a fault ends all that follows in the process."""
    text = (HERE / f"{chapter}.cu").read_text()
    kernels = list(dict.fromkeys(found[1] for found in LAUNCH.finditer(text)))
    source, program = folder / f"{chapter}.cu", folder / f"{chapter}.bin"
    source.write_text(LAUNCH.sub(r'if (chosen("\1")) \1\2<<<', text))
    choice = folder / f"{chapter}.h"
    choice.write_text(CHOICE)
    words = ["nvcc", "-std=c++20", "-O2", "-lineinfo", "-arch=sm_90", "-o", str(program)]
    words += ["-include", str(choice), str(source)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return program, []
    if done.returncode:
        (folder / f"{chapter}.build.txt").write_text(done.stdout + done.stderr)
        return program, []
    return program, [name for name in kernels if "good" not in name]


def ended(words: list[str], env: dict[str, str], log: Path, limit: float) -> str:
    """How the command ended. It and its children are gone after `limit` seconds, or left behind if
    not even a kill ends them."""
    with log.open("w") as output:
        child = subprocess.Popen(
            words, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return f"exit code {child.wait(timeout=limit)}"
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return f"does not end after {limit:g} s and a kill"
        return f"killed after {limit:g} s"


def runs_of(programs: dict[str, tuple[Path, list[str]]]) -> list[tuple[str, str, str]]:
    """Chapter, kernel and tool, the most wanted first. Streams run as a whole: their cases are of
    several kernels."""
    whole, first, rest = [], [], []
    for chapter, (_, kernels) in programs.items():
        if not kernels:
            continue
        if chapter not in OWN:
            whole += [(chapter, "", tool) for tool in TOOLS]
            continue
        for kernel in kernels:
            for tool in TOOLS:
                (first if tool == OWN[chapter] else rest).append((chapter, kernel, tool))
    return whole + first + rest


def run_tools(folder: Path, jobs: int, limit: float, seconds: float) -> int:
    """Whatever a tool returns: what it says is in the file of its chapter."""
    stop = time.monotonic() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(len(CHAPTERS)) as pool:
        programs = dict(zip(CHAPTERS, pool.map(lambda each: build(each, folder), CHAPTERS)))
    writing = threading.Lock()

    def one(chapter: str, kernel: str, tool: str) -> bool:
        left = stop - time.monotonic()
        if left < 2:
            return False
        # Else the first error ends the process.
        words = ["compute-sanitizer", "--tool", tool, "--destroy-on-device-error", "kernel"]
        words += ["--print-limit", "100", str(programs[chapter][0])]
        env = os.environ | ({"KILN_CASE": kernel} if kernel else {})
        log = folder / f"{chapter}.{kernel or 'all'}.{tool}.log"
        end = ended(words, env, log, min(limit, left))
        with writing, (folder / f"{chapter}.{tool}.txt").open("a") as page:
            page.write(f"== {kernel or 'all'}: {end}\n{log.read_text(errors='replace')}")
        log.unlink()
        return True

    runs = runs_of(programs)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(lambda run: one(*run), runs))
    for name in CHAPTERS:
        for each in folder.glob(f"{name}.[bch]*"):
            if each.suffix in (".bin", ".cu", ".h"):
                each.unlink()
    print(f"{sum(done)} of {len(runs)} runs in time")
    return 0 if runs and all(done) else 1


def lines_named(log: Path, source: str) -> set[int]:
    pattern = re.compile(rf"\bin (?:\S*/)?{re.escape(source)}:(\d+)")
    if not log.exists():
        return set()
    return {int(line) for line in pattern.findall(log.read_text())}


def compare(kiln: str, folder: Path, chapters: list[str]) -> str:
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    cases: collections.Counter[str] = collections.Counter()
    missed: dict[str, list[str]] = collections.defaultdict(list)
    for chapter in chapters:
        source = HERE / f"{chapter}.cu"
        wanted, _ = catalogue.expected(source)
        seen, _ = catalogue.seen(kiln, source, 0)
        named = {tool: lines_named(folder / f"{chapter}.{tool}.txt", source.name) for tool in TOOLS}
        for case, name in wanted.items():
            rule, lines = case
            cases[rule] += 1
            by = [tool for tool in TOOLS if named[tool] & set(lines)]
            if any(catalogue.is_met(case, each) for each in seen):
                by.append("kiln")
            found[rule].update(by)
            if not set(by) & set(TOOLS):
                missed[rule].append(name)
    return page(chapters, cases, found, missed)


def page(
    chapters: list[str],
    cases: collections.Counter[str],
    found: dict[str, collections.Counter[str]],
    missed: dict[str, list[str]],
) -> str:
    columns = (*TOOLS, "kiln")
    rows = [
        "# Who finds which mistakes",
        "",
        "Written by `python3 tests/sanitize/vendor.py compare`, from logs that its `run` made",
        "on an H200 (compute-sanitizer 2025.3, `nvcc -O2 -lineinfo -arch=sm_90`). The cases are",
        "those of `tests/sanitize`; a case is found if a tool names one of its lines. kiln runs",
        "without a GPU.",
        "",
        f"Chapters: {', '.join(chapters)}. Each kernel with a mistake ran in a process of its own",
        "(streams: all in one), since a fault on a GPU ends all that follows.",
        "",
        "| rule | cases | memcheck | racecheck | synccheck | `kiln sanitize` |",
        "|---|---|---|---|---|---|",
    ]
    for rule, count in cases.items():
        counts = " | ".join(str(found[rule][tool]) for tool in columns)
        rows.append(f"| `{rule}` | {count} | {counts} |")
    total = " | ".join(str(sum(found[rule][tool] for rule in cases)) for tool in columns)
    rows += [f"| all | {sum(cases.values())} | {total} |", ""]
    rows += ["Not found by any of the vendor's three tools:", "", "| rule | cases |", "|---|---|"]
    for rule, names in missed.items():
        rows += [f"| `{rule}` | {part} |" for part in in_lines(names)]
    return "\n".join(rows) + "\n"


def in_lines(names: list[str]) -> list[str]:
    """Lists of at most 70 characters each."""
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) > 68:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + name
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--jobs", type=int, default=4)
    running.add_argument("--limit", type=float, default=20, help="seconds of a program")
    running.add_argument("--seconds", type=float, default=600, help="of all programs")
    comparison = commands.add_parser("compare")
    comparison.add_argument("kiln")
    comparison.add_argument("folder", type=Path)
    comparison.add_argument("--write", type=Path)
    comparison.add_argument("--chapters", default=",".join(CHAPTERS))
    options = parser.parse_args()
    if options.command == "run":
        return run_tools(options.folder, options.jobs, options.limit, options.seconds)
    text = compare(options.kiln, options.folder, options.chapters.split(","))
    if options.write:
        options.write.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
