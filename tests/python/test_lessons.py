# SPDX-License-Identifier: Apache-2.0
"""Does every lesson run, and show what its page says? Each is executed as a notebook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from of_many import a_sample

pytestmark = pytest.mark.one_in(2)

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "notebook-tools"
LESSONS = sorted((ROOT / "docs" / "learn").glob("[0-9][0-9]-*.md"))


def test_there_are_lessons():
    assert len(LESSONS) == 10
    index = (ROOT / "docs" / "learn" / "README.md").read_text()
    assert all(f"({lesson.name})" in index for lesson in LESSONS)


@pytest.mark.parametrize("lesson", a_sample(LESSONS, 3), ids=lambda path: path.stem)
def test_a_lesson_shows_what_its_page_says(command, lesson):
    if not (TOOLS / "nbclient").is_dir():
        pytest.skip(f"{TOOLS} has no nbclient; `tools/bootstrap test` installs it")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "lessons.py"), "--check", lesson.name],
        capture_output=True, text=True, timeout=900, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_notebooks_have_the_cells_of_the_pages(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "lessons.py"), "--notebooks", str(tmp_path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for lesson in LESSONS:
        notebook = json.loads((tmp_path / f"{lesson.stem}.ipynb").read_text())
        code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert code[0].startswith("%load_ext kiln")
        page = lesson.read_text()
        assert all(cell in page for cell in code)
        # What a cell shows appears when it is run, not as text above it.
        assert not any("```output" in cell["source"] for cell in notebook["cells"])
        # Where a site was made, a notebook lies beside its pages.
        assert not any(".md)" in cell["source"] for cell in notebook["cells"])
