# SPDX-License-Identifier: Apache-2.0
"""What is in a lesson, and how does it become a notebook?

A lesson is a page of docs/learn. Its ```python blocks and the ```cpp blocks that start with %%kiln
are the cells; an ```output block or a picture right below a cell is what it shows. Imports nothing
of kiln: tools/lessons.py reads this file without a build.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

_BLOCK = re.compile(
    r"^```(?:python|cpp(?=\n%%kiln))\n(?P<code>(?:.*\n)*?)```\n"
    r"(?:```output\n(?P<output>(?:.*\n)*?)```\n|!\[(?P<alt>[^]]*)\]\((?P<picture>[^)]*)\)\n)?",
    re.MULTILINE,
)
_LINK = re.compile(r"\[(?P<text>[^]]*)\]\(\.\./(?P<page>[\w/-]+)\.md(?P<anchor>#[\w-]+)?\)")


@dataclass
class Cell:
    code: str
    output: Optional[str] = None  # what the page shows below it
    picture: Optional[str] = None
    alt: str = ""


@dataclass
class Lesson:
    path: Path
    parts: list[Union[str, Cell]] = field(default_factory=list)  # text and cells, in order

    @property
    def cells(self) -> list[Cell]:
        return [part for part in self.parts if isinstance(part, Cell)]


def read_lesson(path: Path) -> Lesson:
    text, lesson, at = path.read_text(encoding="utf-8"), Lesson(path), 0
    for block in _BLOCK.finditer(text):
        lesson.parts.append(text[at : block.start()])
        lesson.parts.append(
            Cell(block["code"], block["output"], block["picture"], block["alt"] or "")
        )
        at = block.end()
    lesson.parts.append(text[at:])
    return lesson


def lessons_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]-*.md"))


def link_to_site(text: str, page: str, anchor: str) -> str:
    """For notebooks in a site."""
    return f"[{text}](../{page}.html{anchor})"


def link_to_docs(text: str, page: str, _anchor: str) -> str:
    """For notebooks anywhere else: the command has the pages."""
    return f"{text}: `kiln docs {page}`"


def notebook_of(lesson: Lesson, link: Any = link_to_site) -> dict[str, Any]:
    """nbformat 4.5, without outputs: they come when somebody runs it."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(lesson.parts):
        shared = {"id": f"part-{number}", "metadata": {}}
        if isinstance(part, Cell):
            code = {"cell_type": "code", "execution_count": None, "outputs": []}
            cells.append({**shared, **code, "source": part.code.rstrip("\n")})
        elif part.strip():
            # Pages link each other as .md; next to a notebook lie notebooks.
            text = re.sub(r"\]\((\d\d-[\w-]+)\.md\)", r"](\1.ipynb)", part.strip())
            text = _LINK.sub(lambda m: link(m["text"], m["page"], m["anchor"] or ""), text)
            cells.append({**shared, "cell_type": "markdown", "source": text})
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}


def write_notebooks(
    lessons: Path, folder: Path, link: Any = link_to_site, keep: bool = False
) -> list[Path]:
    """Those that were written. keep: files that exist stay as they are."""
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for path in lessons_in(lessons):
        file = folder / f"{path.stem}.ipynb"
        if not (keep and file.exists()):
            notebook = json.dumps(notebook_of(read_lesson(path), link), indent=1)
            file.write_text(notebook + "\n", encoding="utf-8")
            written.append(file)
    return written
