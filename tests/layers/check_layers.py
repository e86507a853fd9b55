#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every #include respect docs/design/layers.md? Prints each violation, exits 1 for one.

"x/y.h" is a file of this repository, <x/y.h> one of the system or of a library: the kind of bracket
tells `"sys/file.h"`, of the module `sys`, from `<sys/mman.h>`, which takes `posix` in the row. What
a row allows and no file uses is a violation too: such a permission is one that nobody asked for.

A folder inside a module may have a row of its own: the file belongs to the deepest row that holds
it. Within a module a cell names such rows one by one ("engine/memory"); elsewhere the module's name
stands for all of it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".def", ".inc", ".S"}
# Names of a row that are no rows themselves.
PARTS = {"runtime ABI", "runtime sources"}
RUNTIME_ABI = {"kiln/abi.h", "kiln/engine_abi.h", "kiln/ffi_abi.h"}
# Neither group: an #include of a macro.
INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\b\s*(?:<([^>]+)>|"([^"]+)")?')
# The C library's part of the C++ standard, in its C spelling.
STANDARD_C = {
    f"{name}.h"
    for name in "assert complex ctype errno fenv float inttypes limits locale math setjmp signal "
    "stdalign stdarg stdbool stddef stdint stdio stdlib string time uchar wchar wctype".split()
}


@dataclass
class Row:
    folder: str  # "src/base", "runtime"
    name: str  # "base", "engine/memory", "runtime"
    modules: set[str]
    libraries: set[str]
    names_all: bool = False  # "all above"


@dataclass
class Layers:
    rows: dict[str, Row]
    headers: dict[str, str]  # "zstd.h" or "fmt/" -> library


def table_rows(text: str, first_heading: str) -> list[list[str]]:
    """The cells of the Markdown table whose first heading is `first_heading`."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(rf"\|\s*{first_heading}\s*\|", line)]
    if len(starts) != 1:
        raise SystemExit(
            f"layers.md: wanted one table headed '{first_heading}', found {len(starts)}"
        )
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
        name = folder.removeprefix("src/")
        unknown = {each for each in allowed - PARTS if not any(is_part(row, each) for row in above)}
        if unknown:
            raise SystemExit(
                f"layers.md: {folder} names {sorted(unknown)}, which has no row above it"
            )
        unknown = set(words(libraries)) - set(headers.values())
        if unknown:
            raise SystemExit(
                f"layers.md: {folder} names {sorted(unknown)}, which the table of headers lacks"
            )
        rows[name] = Row(folder, name, allowed, set(words(libraries)), modules == "all above")
    return Layers(rows, headers)


def is_part(row: str, module: str) -> bool:
    """Whether the row is the module's own or one of a folder in it."""
    return row == module or row.startswith(module + "/")


def allows(row: Row, module: str) -> bool:
    """Whether files of `row` may include files of the row `module`."""
    if module == row.name or module in row.modules:
        return True
    same_module = module.split("/")[0] == row.name.split("/")[0]
    return not same_module and any(is_part(module, each) for each in row.modules)


def library_of(header: str, headers: dict[str, str]) -> str | None:
    for prefix, library in headers.items():
        if header == prefix or (prefix.endswith("/") and header.startswith(prefix)):
            return library
    return None


def is_standard(header: str) -> bool:
    return "/" not in header and ("." not in header or header in STANDARD_C)


def deepest_row(path: Path, layers: Layers) -> str:
    """The row that a file of src/ belongs to; where there is none, its first folder."""
    for folder in path.parents:
        if str(folder) in layers.rows:
            return str(folder)
    return path.parts[0]


def module_of(header: str, root: Path, layers: Layers) -> str | None:
    """The row that has "x/y.h": by where the file is, so "base/../sys/file.h" is one of sys."""
    source = root / "src"
    target = (source / header).resolve()
    if target.is_file() and target.is_relative_to(source.resolve()):
        return deepest_row(target.relative_to(source.resolve()), layers)
    # A header that CMake makes is named by its module's CMakeLists.txt.
    lists = source / header.split("/")[0] / "CMakeLists.txt"
    made = lists.is_file() and f"/{header} " in lists.read_text()
    return deepest_row(Path(header), layers) if made else None


def refusal_of_runtime(header: str, row: Row) -> str | None:
    if (
        row.name == "runtime"
        or "runtime" in row.modules
        or ("runtime ABI" in row.modules and header in RUNTIME_ABI)
    ):
        return (
            None if ".." not in header.split("/") else "a path upward leaves the runtime's headers"
        )
    return "the row allows no such header of the runtime"


def refusal_of_quoted(header: str, file: Path, root: Path, row: Row, layers: Layers) -> str | None:
    """Why `file` may not include "header": a file beside it, of a module, or of the runtime."""
    if (file.parent / header).exists():
        beside = (file.parent / header).resolve().relative_to(root.resolve())
        return (
            None
            if str(beside).startswith(row.folder + "/")
            else f"{beside} lies outside {row.folder}"
        )
    if header.startswith("kiln/"):
        return refusal_of_runtime(header, row)
    module = module_of(header, root, layers)
    if not module and "/" not in header and (root / "runtime/src" / header).is_file():
        # What the archive of the runtime is made of, for what is linked with it.
        return None if "runtime sources" in row.modules else "the row has no runtime sources"
    if not module:
        return "no module has this file; a header of the system or of a library stands in <...>"
    return None if allows(row, module) else f"module {module} is not in its row"


def refusal_of_bracketed(header: str, root: Path, row: Row, layers: Layers) -> str | None:
    """Why `row` may not include <header>: of the system, of a library, or of the runtime."""
    if header.startswith("kiln/"):
        return refusal_of_runtime(header, row)
    library = library_of(header, layers.headers)
    if (library and library in row.libraries) or is_standard(header):
        return None
    if library:
        return f"library {library} is not in its row"
    if module_of(header, root, layers):
        return "a header of a module stands in quotes"
    return "no row of layers.md knows this header"


def refusal(line: str, file: Path, root: Path, row: Row, layers: Layers) -> str | None:
    """Why `file` of module `row` may not have this line; None if it may."""
    match = INCLUDE.match(line)
    if not match:
        return None
    bracketed, quoted = match.groups()
    if not bracketed and not quoted:
        name = line.split("include", 1)[1].strip()
        return f"may not include {name}: a computed name cannot be checked"
    why = (
        refusal_of_bracketed(bracketed, root, row, layers)
        if bracketed
        else refusal_of_quoted(quoted, file, root, row, layers)
    )
    return f"may not include {bracketed or quoted}: {why}" if why else None


def used_by(line: str, root: Path, layers: Layers) -> str | None:
    """Which name of a row this line needs there."""
    match = INCLUDE.match(line)
    header = match and (match.group(1) or match.group(2))
    if not match or not header:
        return None
    if header.startswith("kiln/"):
        return "runtime ABI" if header in RUNTIME_ABI else "runtime"
    if match.group(1):
        return library_of(header, layers.headers)
    in_runtime = "/" not in header and (root / "runtime/src" / header).is_file()
    return "runtime sources" if in_runtime else module_of(header, root, layers)


def sources_of(root: Path, row: Row, layers: Layers) -> list[Path]:
    inner = [root / other.folder for other in layers.rows.values() if other.name != row.name]
    inner = [folder for folder in inner if folder.is_relative_to(root / row.folder)]
    found = []
    for file in sorted((root / row.folder).rglob("*")):
        made_by_build = row.folder == "kernels" and "build" in file.relative_to(root).parts[1:-1]
        elsewhere = any(file.is_relative_to(folder) for folder in inner) or made_by_build
        if file.suffix in SOURCE_SUFFIXES and file.is_file() and not elsewhere:
            found.append(file)
    return found


def violations_of(row: Row, root: Path, layers: Layers) -> list[str]:
    found = []
    used: set[str | None] = set()
    for file in sources_of(root, row, layers):
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            why = refusal(line, file, root, row, layers)
            if why:
                found.append(f"{file.relative_to(root)}:{number}: {why}")
            used.add(used_by(line, root, layers))
    named = row.libraries | (set() if row.names_all else row.modules)
    for name in sorted(each for each in named if not any(is_part(use or "", each) for use in used)):
        found.append(
            f"docs/design/layers.md: the row of {row.folder} names {name}, "
            "which no file there includes"
        )
    return found


def violations(root: Path, layers: Layers) -> list[str]:
    found = []
    known = {row.folder for row in layers.rows.values()}
    for folder in sorted((root / "src").glob("*/")):
        has_row = any(is_part(row, f"src/{folder.name}") for row in known)
        if folder.is_dir() and any(folder.rglob("*.*")) and not has_row:
            found.append(f"src/{folder.name}: docs/design/layers.md has no row for it")
        for file in sorted(folder.rglob("*")) if has_row else []:
            row = deepest_row(file.relative_to(root / "src"), layers)
            if file.suffix in SOURCE_SUFFIXES and row not in layers.rows:
                found.append(f"{file.relative_to(root)}: docs/design/layers.md has no row for it")
    for row in layers.rows.values():
        if (root / row.folder).is_dir():
            found += violations_of(row, root, layers)
        else:
            found.append(f"docs/design/layers.md: a row for {row.folder}, which does not exist")
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
