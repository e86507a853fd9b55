#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is every tracked file fit to be read by others? Prints each fault as file:line, exits 1 if there
is one.

A fault: no SPDX line in a source; a path of one developer's machine; a note to oneself; a file name
that says nothing (util, helper, ...); a space at the end of a line; a conflict marker; a missing
last newline; a source over the longest length; a Markdown link to a file that is not there. Sources
over the length to aim for are listed and are no fault.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

SOURCE = re.compile(
    r"\.(h|hpp|c|cpp|cu|cuh|S|def|inc|py|sh|cmake|mk)$|(^|/)(CMakeLists\.txt|Makefile)$"
)
AIM_LINES = 400
LONGEST_LINES = 600
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Written in pieces so that this file passes its own check.
PATTERNS = [
    (re.compile(r"(?<![\w.$}/-])/(work|root|home/\w+|Users/\w+)/"), "a path of one machine"),
    (
        re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
        "a note to oneself; finish it or say in docs/reference that it comes later",
    ),
    (re.compile(r"^(<{7} |={7}$|>{7} )"), "a conflict marker"),
    (re.compile(r"[ \t]+$"), "space at the end of the line"),
]
EMPTY_NAME = re.compile(
    r"^(utils?|helpers?|misc|common|manager|mgr|stuff)(_|\.|$)|_(utils?|helpers?|mgr|manager)\."
)


def files_below(root: Path) -> list[str]:
    ignore = root / ".gitignore"
    patterns = [line.strip("/") for line in ignore.read_text().split()] if ignore.exists() else []

    def is_ignored(path: Path) -> bool:
        names = (path.name, str(path.relative_to(root)))
        return any(fnmatch(name, pattern) for name in names for pattern in patterns)

    found = []
    for folder, folders, files in os.walk(root):
        at = Path(folder)
        folders[:] = sorted(name for name in folders if not is_ignored(at / name))
        found += [str((at / name).relative_to(root)) for name in sorted(files)]
    return [name for name in found if not is_ignored(root / name)]


def tracked_files(root: Path) -> list[str]:
    """By git; of a copy without its history all but what .gitignore names."""
    if not (root / ".git").exists():
        return files_below(root)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True
    )
    if listed.returncode:
        raise SystemExit(f"git cannot list the files of {root}: {listed.stderr.strip()}")
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def is_text(content: bytes) -> bool:
    return b"\0" not in content[:8192]


def faults_of(name: str, content: bytes) -> list[str]:
    if not is_text(content):
        return []
    text = content.decode("utf-8", "replace")
    lines = text.splitlines()
    found = []
    is_source = bool(SOURCE.search(name)) or text.startswith("#!")
    # What a tool writes and a test compares byte by byte is not ours to format.
    is_verbatim = (
        "/golden/" in name or name.endswith((".ptx", ".out", ".txt", ".npy")) and not is_source
    )
    if (
        is_source
        and not is_verbatim
        and not any(SPDX in line for line in lines[:6])
        and text.strip()
    ):
        found.append(f"{name}:1: no line '{SPDX}' at its head")
    if EMPTY_NAME.search(Path(name).name):
        found.append(f"{name}: a name that does not say what is in it")
    if is_verbatim or name == "LICENSE":
        return found
    if text and not text.endswith("\n"):
        found.append(f"{name}:{len(lines)}: no newline at the end of the file")
    if is_source and len(lines) > LONGEST_LINES:
        found.append(
            f"{name}: {len(lines)} lines; a file answers one question in at most {LONGEST_LINES}"
        )
    for number, line in enumerate(lines, 1):
        for pattern, fault in PATTERNS:
            if pattern.search(line):
                found.append(f"{name}:{number}: {fault}")
    return found


def broken_links(root: Path, name: str, text: str) -> list[str]:
    """Links of a Markdown page to files of this repository that do not exist."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", line):
            if "://" not in target and not (root / name).parent.joinpath(target).exists():
                found.append(f"{name}:{number}: links to {target}, which is not there")
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = []
    long_sources = []
    for name in tracked_files(root):
        content = (root / name).read_bytes()
        found += faults_of(name, content)
        if name.endswith(".md"):
            found += broken_links(root, name, content.decode("utf-8", "replace"))
        lines = content.count(b"\n")
        if SOURCE.search(name) and lines > AIM_LINES:
            long_sources.append((lines, name))
    for lines, name in sorted(long_sources, reverse=True):
        print(f"long: {lines} lines  {name}")
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
