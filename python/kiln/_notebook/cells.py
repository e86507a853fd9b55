# SPDX-License-Identifier: Apache-2.0
"""Which file does a cell become, which ops does it have, and which line of it does a message mean?

The line that says %%kiln is line 1 of the cell and of the file, so that line numbers of compilers
and checkers are those that a notebook shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from ..errors import KilnError
from ..inline import HEADER, cache_folder, is_for_torch, write_source

_OP = re.compile(r"^[ \t]*KILN_OP\s*\(\s*([A-Za-z_]\w*)", re.MULTILINE)
_TORCH_OPS = re.compile(r"\b(?:PYBIND11_MODULE|TORCH_LIBRARY\w*)\s*\(")
_MAIN = re.compile(r"^[ \t]*(?:int|auto)\s+main\s*\(", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A cell as a file, and how it is built."""

    path: Path
    name: str
    flags: tuple[str, ...]  # the cell's own build options
    ops: tuple[str, ...] = ()


def write_cell(body: str, name: str, flags: Sequence[str], program: bool) -> Cell:
    """Writes the cell's file. A program is left as it is; a cell of ops gets kiln/op.h if it has
    neither that nor torch's headers."""
    ops = tuple(dict.fromkeys(_OP.findall(body)))
    if not program and not ops and not _TORCH_OPS.search(body):
        main = _MAIN.search(body)
        raise KilnError(
            "this cell has no op",
            "it has a main(): it is a program" if main else "no KILN_OP registers a function",
            "%%kiln run builds and runs it"
            if main
            else 'add KILN_OP(function, "parameter, parameter"), or main() and %%kiln run',
        )
    name = name or (f"cell_{ops[0]}" if ops else "cell")
    include = not program and not HEADER.search(body) and not is_for_torch(body, None)
    first = "#include <kiln/op.h>" if include else "//"
    return Cell(
        write_source(f"{first}\n{body}", name, cache_folder("notebook")), name, tuple(flags), ops
    )


def in_words_of_the_notebook(text: str, cells: Iterable[Cell], now: Optional[Cell] = None) -> str:
    """Paths of cells become their names; in the cell that runs now, `name.cu(8):` becomes
    `line 8 of this cell:`."""
    for cell in cells:
        text = text.replace(f"{cell.path.parent}/", "")
    # The last cell is what %kiln takes where a shell's kiln takes a file.
    text = re.sub(r"(?<!%)\bkiln build -v(?= prints|$)", "%kiln build -v", text, flags=re.MULTILINE)
    if now is None:
        return text
    file = re.escape(now.path.name)
    text = re.sub(rf"\b{file}[(:](\d+)\)?(?::\d+)?(?=:)", r"line \1 of this cell", text)
    return re.sub(rf"(?<=compile )(?:\S*/)?{file}\b", "this cell", text)
