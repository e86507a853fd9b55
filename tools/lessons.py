#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How does a lesson of docs/learn become a notebook, and do its outputs hold?

tools/lessons.py --check [LESSON...]     runs the cells and compares what they show with the page
tools/lessons.py --update [LESSON...]    writes what they show into the page, and pictures beside it
tools/lessons.py --notebooks FOLDER      writes a notebook of each lesson, without running it

What a cell is, and what a page says that it shows: python/kiln/_learn/notebooks.py. Times are
compared as times only: any number with a unit of time equals any other.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python" / "kiln" / "_learn"))
from notebooks import Lesson, lessons_in, notebook_of, read_lesson, write_notebooks  # noqa: E402

LESSONS = ROOT / "docs" / "learn"
PICTURES = ROOT / "docs" / "images" / "learn"
_TIME = re.compile(r"\d+(?:\.\d+)? ?(?:ns|us|ms|s|%)(?![\w])|\d+(?:\.\d+)?x\b")


def page_of(lesson: Lesson) -> str:
    written = []
    for part in lesson.parts:
        if isinstance(part, str):
            written.append(part)
            continue
        language = "cpp" if part.code.startswith("%%kiln") else "python"
        written.append(f"```{language}\n{part.code}```\n")
        if part.output is not None:
            written.append(f"```output\n{part.output}```\n")
        elif part.picture is not None:
            written.append(f"![{part.alt}]({part.picture})\n")
    return "".join(written)


def shown_by(outputs: list[dict[str, Any]]) -> tuple[str, str]:
    """The text and the last SVG of a cell's outputs."""
    text, svg = "", ""
    for one in outputs:
        data = one.get("data", {})
        if one["output_type"] == "error":
            text += "\n".join(one["traceback"]) + "\n"
        elif "image/svg+xml" in data:
            svg = "".join(data["image/svg+xml"])
        elif one["output_type"] == "stream":
            if one["name"] == "stderr":  # warnings of libraries differ from machine to machine
                continue
            text += "".join(one["text"])
        elif "text/plain" in data and "<em>" not in "".join(data.get("text/html", "")):
            text += "".join(data["text/plain"]) + "\n"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "".join(line.rstrip() + "\n" for line in plain.splitlines()).lstrip("\n"), svg


def execute(lesson: Lesson) -> list[list[dict[str, Any]]]:
    """The outputs of its cells; a cell that fails is an output as well."""
    import nbclient
    import nbformat

    notebook = nbformat.from_dict(notebook_of(lesson))
    with tempfile.TemporaryDirectory(prefix="kiln-lesson-") as folder:
        nbclient.NotebookClient(
            notebook, timeout=600, allow_errors=True, kernel_name="python3",
            resources={"metadata": {"path": folder}},
        ).execute()  # fmt: skip
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def without_times(text: str) -> str:
    return re.sub(r" {2,}", " ", _TIME.sub("TIME", text)).strip()


def update(lesson: Lesson) -> None:
    for cell, outputs in zip(lesson.cells, execute(lesson)):
        text, svg = shown_by(outputs)
        if svg:
            assert cell.picture, f"{lesson.path.name}: a picture has no place: {cell.code}"
            PICTURES.mkdir(parents=True, exist_ok=True)
            (PICTURES / Path(cell.picture).name).write_text(svg, encoding="utf-8")
        # A cell whose output is of no interest has no block, as long as it says nothing bad.
        elif cell.output is not None:
            cell.output = text
        elif "error:" in text:
            cell.output = text
    lesson.path.write_text(page_of(lesson), encoding="utf-8")


def differences(lesson: Lesson) -> list[str]:
    found = []
    for cell, outputs in zip(lesson.cells, execute(lesson)):
        text, svg = shown_by(outputs)
        where = f"{lesson.path.name}: {cell.code.strip().splitlines()[-1]}"
        if cell.picture is not None:
            stored = PICTURES / Path(cell.picture).name
            if not stored.is_file() or stored.read_text(encoding="utf-8") != svg:
                found.append(f"{where}\n  the picture {stored.name} is another\n{text}")
        elif cell.output is not None and without_times(text) != without_times(cell.output):
            found.append(f"{where}\n--- the page\n{cell.output}--- the cell\n{text}")
        elif cell.output is None and any(one["output_type"] == "error" for one in outputs):
            found.append(f"{where}\n{text}")
    return found


def environment(stage: Path) -> None:
    """For this process and the kernels that it starts."""
    tools = ROOT / "build" / "notebook-tools"
    sys.path.insert(0, str(tools))
    os.environ["PYTHONPATH"] = f"{stage}:{tools}"
    os.environ["PATH"] = f"{stage / 'kiln' / 'bin'}:{os.environ['PATH']}"
    os.environ["JUPYTER_PATH"] = str(tools / "share" / "jupyter")
    os.environ.pop("KILN_BIN", None)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--notebooks", type=Path)
    parser.add_argument("lessons", nargs="*")
    words = parser.parse_args()
    paths = lessons_in(LESSONS)
    if words.lessons:
        paths = [path for path in paths if any(one in path.name for one in words.lessons)]
    if words.notebooks:
        write_notebooks(LESSONS, words.notebooks)
        return 0
    stage = os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage"
    environment(Path(stage).resolve())
    found = []
    for path in paths:
        lesson = read_lesson(path)
        if words.update:
            update(lesson)
        else:
            found += differences(lesson)
    print("\n\n".join(found) if found else f"{len(paths)} lessons hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
