#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every #include respect docs/design/layers.md? Prints each violation as file:line, exits 1 if there is one."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".def", ".inc", ".S"}
RUNTIME_ABI = {"kiln/abi.h", "kiln/engine_abi.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')
# The C library's part of the C++ standard, in its C spelling.
STANDARD_C = {
    f"{name}.h"
    for name in "assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdalign stdarg stdbool "
    "stddef stdint stdio stdlib string time uchar wchar wctype".split()
}


@dataclass
class Row:
    folder: str  # "src/base", "runtime"
    name: str  # "base", "runtime"
    modules: set[str]
    libraries: set[str]


@dataclass
class Layers:
    rows: dict[str, Row]
    headers: dict[str, str]  # "zstd.h" or "fmt/" -> library


def table_rows(text: str, first_heading: str) -> list[list[str]]:
    """The cells of the Markdown table whose first heading is `first_heading`."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(rf"\|\s*{first_heading}\s*\|", line)]
    if len(starts) != 1:
        raise SystemExit(f"layers.md: wanted one table headed '{first_heading}', found {len(starts)}")
    rows = []
    for line in lines[starts[0] + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def words(cell: str) -> list[str]:
    return [word.strip().strip("`") for word in cell.split(",") if word.strip()]


def parse_layers(text: str) -> Layers:
    headers = {header: row[0] for row in table_rows(text, "library") for header in words(row[1])}
    rows: dict[str, Row] = {}
    for folder, _, modules, libraries in table_rows(text, "module"):
        folder = folder.strip("`")
        above = set(rows)
        allowed = above | {"runtime ABI"} if modules == "all above" else set(words(modules))
        name = folder.split("/")[-1]
        unknown = allowed - above - {"runtime ABI"}
        if unknown:
            raise SystemExit(f"layers.md: {folder} names {sorted(unknown)}, which is no row above it")
        unknown = set(words(libraries)) - set(headers.values())
        if unknown:
            raise SystemExit(f"layers.md: {folder} names {sorted(unknown)}, which the table of headers lacks")
        rows[name] = Row(folder, name, allowed, set(words(libraries)))
    return Layers(rows, headers)


def library_of(header: str, headers: dict[str, str]) -> str | None:
    for prefix, library in headers.items():
        if header == prefix or (prefix.endswith("/") and header.startswith(prefix)):
            return library
    return None


def is_standard(header: str) -> bool:
    return "/" not in header and ("." not in header or header in STANDARD_C)


def refusal(header: str, file: Path, root: Path, row: Row, layers: Layers) -> str | None:
    """Why `file` of module `row` may not include `header`; None if it may."""
    if (file.parent / header).exists():
        beside = (file.parent / header).resolve().relative_to(root.resolve())
        return None if str(beside).startswith(row.folder + "/") else f"{beside} lies outside {row.folder}"
    if header.startswith("kiln/"):
        if row.name == "runtime" or "runtime" in row.modules or ("runtime ABI" in row.modules and header in RUNTIME_ABI):
            return None
        return "the row allows no such header of the runtime"
    module = header.split("/")[0]
    if "/" in header and f"src/{module}" in {r.folder for r in layers.rows.values()} | {
        f"src/{f.name}" for f in (root / "src").glob("*")
    }:
        return None if module == row.name or module in row.modules else f"module {module} is not in its row"
    library = library_of(header, layers.headers)
    if library and library in row.libraries:
        return None
    if is_standard(header):
        return None
    if library:
        return f"library {library} is not in its row"
    return "no row of layers.md knows this header"


def violations(root: Path, layers: Layers) -> list[str]:
    found = []
    known = {row.folder for row in layers.rows.values()}
    for folder in sorted((root / "src").glob("*/")):
        if folder.is_dir() and any(folder.rglob("*.*")) and f"src/{folder.name}" not in known:
            found.append(f"src/{folder.name}: docs/design/layers.md has no row for it")
    for row in layers.rows.values():
        if not (root / row.folder).is_dir():
            found.append(f"docs/design/layers.md: a row for {row.folder}, which is not there")
        for file in sorted((root / row.folder).rglob("*")):
            if "build" in file.relative_to(root).parts[1:-1] and row.folder == "kernels":
                continue  # what kiln build made
            if file.suffix not in SOURCE_SUFFIXES or not file.is_file():
                continue
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                header = match.group(1) or match.group(2)
                why = refusal(header, file, root, row, layers)
                if why:
                    found.append(f"{file.relative_to(root)}:{number}: may not include {header}: {why}")
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = violations(root, parse_layers((root / "docs/design/layers.md").read_text()))
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} violations of docs/design/layers.md")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
