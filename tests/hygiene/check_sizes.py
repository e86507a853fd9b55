#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are folders, functions and lines short enough to be read? Prints each fault, exits 1 for one.

Folders: at most 40 sources (.cpp, .h, .py) directly in a folder under src/ or python/.
Functions: at most 80 lines of code (NLOC as lizard counts them: no comments, no empty lines), in
C++, CUDA and Python. Exempt is what MEASURED_WHOLE lists, with the reason.
Lines: at most 100 columns, in C++, CUDA, Python and Markdown. Exempt are

- a row of a Markdown table, which cannot be continued;
- a Markdown block that is fenced as ```output: what a command printed, and readers compare it with
  what they see;
- a line that would fit without its URL, or without the target of its link, which cannot break;
- pages that a command writes whole (GENERATED): their text is in that command.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from check_hygiene import tracked_files

SKIPPED = 77  # ctest's word for it, by SKIP_RETURN_CODE
MOST_FILES = 40
MOST_NLOC = 80
MOST_COLUMNS = 100

CODE = (".cpp", ".h", ".cu", ".cuh", ".py")
# Here tools/bootstrap installs lizard.
TOOLS = "build/check-tools"
# docs/results but for what people write there; the page of instructions; `kiln doctor --page`.
GENERATED = re.compile(
    r"docs/results/(?!README\.md$)(?!.*-list\.md$)"
    r"|docs/reference/ptx\.md$|docs/guide/troubleshooting\.md$"
)
# Split in functions, ptxas orders the instructions of this kernel otherwise: its figures in
# docs/results/fa_s512.md would be those of another kernel. Measure before it leaves the list.
MEASURED_WHOLE = {("kernels/fa_s512/consumer.h", "fa::consume")}
UNBREAKABLE = re.compile(r"\w+://[^\s)>]+|\]\([^)\s]+\)")


def is_python(name: str, text: str) -> bool:
    return name.endswith(".py") or re.match(r"#!.*\bpython3?\n", text) is not None


def faults_of_folders(names: list[str]) -> list[str]:
    sources = [PurePosixPath(name) for name in names if name.endswith((".cpp", ".h", ".py"))]
    counts = Counter(str(name.parent) for name in sources if name.parts[0] in ("src", "python"))
    return [
        f"{folder}: {count} sources; a folder holds at most {MOST_FILES}"
        for folder, count in sorted(counts.items())
        if count > MOST_FILES
    ]


def faults_of_lines(name: str, text: str) -> list[str]:
    if GENERATED.match(name):
        return []
    is_markdown, in_output = name.endswith(".md"), False
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if is_markdown and line.lstrip().startswith("```"):
            in_output = line.strip() == "```output"
        is_exempt = is_markdown and (in_output or line.lstrip().startswith("|"))
        # One link alone: two of them have a place to break between.
        fits_without_link = len(UNBREAKABLE.sub("", line, count=1)) <= MOST_COLUMNS
        if len(line) > MOST_COLUMNS and not is_exempt and not fits_without_link:
            found.append(f"{name}:{number}: {len(line)} columns; a line has at most {MOST_COLUMNS}")
    return found


def faults_of_functions(name: str, text: str, analyze: Callable) -> list[str]:
    """`analyze` is lizard's: name and text to what it counted, per function."""
    readable = name if name.endswith(CODE) else f"{name}.py"  # it goes by the ending
    found = []
    for function in analyze(readable, text).function_list:
        is_long = function.nloc > MOST_NLOC
        where = f"{name}:{function.start_line}: {function.name}"
        if (name, function.name) in MEASURED_WHOLE:
            if not is_long:
                found.append(f"{where} is short now: take it from MEASURED_WHOLE")
        elif is_long:
            found.append(
                f"{where} has {function.nloc} lines of code; a function has at most {MOST_NLOC}"
            )
    return found


def analyzer(root: Path) -> Callable | None:
    sys.path[:0] = [str(root / TOOLS), str(root / ".carry/test-tools")]
    try:
        import lizard
    except ImportError:
        return None
    return lizard.analyze_file.analyze_source_code


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    analyze, names = analyzer(root), tracked_files(root)
    folders, functions, lines = faults_of_folders(names), [], []
    for name in names:
        head = (root / name).open("rb").read(64)
        is_code = name.endswith(CODE) or is_python(name, head.decode("utf-8", "replace"))
        if not is_code and not name.endswith(".md"):
            continue
        text = (root / name).read_text("utf-8")
        lines += faults_of_lines(name, text)
        if is_code and analyze:
            functions += faults_of_functions(name, text, analyze)
    for fault in folders + functions + lines:
        print(fault)
    if folders or functions or lines:
        print(f"too long: {len(folders)} folders, {len(functions)} functions, {len(lines)} lines")
        return 1
    if not analyze:
        print(
            "skipped: the lengths of functions\n  why: this Python has no lizard\n"
            f"  fix: tools/bootstrap test (it installs lizard in {TOOLS})"
        )
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
