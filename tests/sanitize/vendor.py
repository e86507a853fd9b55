#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who finds which case of the catalogue: NVIDIA's compute-sanitizer on a GPU, or kiln sanitize?

    vendor.py run FOLDER                                on a GPU: CHAPTER.TOOL.txt there
    vendor.py compare KILN FOLDER [--chapters race,streams] [--write FILE.md]     without a GPU

A case counts as found by a tool if it names one of the case's lines. Findings of host calls have no
line and are not compared.
"""

from __future__ import annotations

import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path

import catalogue

HERE = Path(__file__).resolve().parent
CHAPTERS = ("memory", "sync", "race", "streams")
TOOLS = ("memcheck", "racecheck", "synccheck")


def run_tools(folder: Path) -> int:
    """Whatever a tool returns: what it says is in the file."""
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in CHAPTERS:
        program = folder / f"{chapter}.bin"
        build = ["nvcc", "-std=c++20", "-O2", "-lineinfo", "-arch=sm_90", "-o", str(program)]
        subprocess.run([*build, str(HERE / f"{chapter}.cu")], check=True)
        for tool in TOOLS:
            # Else the first error ends the process, and the other cases never run.
            words = ["compute-sanitizer", "--tool", tool, "--destroy-on-device-error", "kernel"]
            words += ["--print-limit", "10000", str(program)]
            with (folder / f"{chapter}.{tool}.txt").open("w") as log:
                try:
                    subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, timeout=60)
                except subprocess.TimeoutExpired:
                    log.write("killed after 60 s\n")
        program.unlink()
    return 0


def lines_named(log: Path, source: str) -> set[int]:
    pattern = re.compile(rf"\bin (?:\S*/)?{re.escape(source)}:(\d+)")
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
        f"Chapters: {', '.join(chapters)}. A chapter whose process the vendor's tools end at its",
        "first error is left out.",
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
    commands.add_parser("run").add_argument("folder", type=Path)
    comparison = commands.add_parser("compare")
    comparison.add_argument("kiln")
    comparison.add_argument("folder", type=Path)
    comparison.add_argument("--write", type=Path)
    comparison.add_argument("--chapters", default=",".join(CHAPTERS))
    options = parser.parse_args()
    if options.command == "run":
        return run_tools(options.folder)
    text = compare(options.kiln, options.folder, options.chapters.split(","))
    if options.write:
        options.write.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
