# SPDX-License-Identifier: Apache-2.0
"""Can every exercise of `kiln learn` be solved, and does its check tell done from not done?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from learn_solutions import SOLUTIONS, solved
from of_many import a_sample

from kiln._learn import main as learn
from kiln._learn.checks import NotYet
from kiln._learn.exercises import EXERCISES, FOLDER, Exercise

ROOT = Path(__file__).resolve().parents[2]


def name_of(one: Exercise) -> str:
    return one.name


def test_every_exercise_has_a_file_hints_a_lesson_and_a_solution():
    assert {one.name for one in EXERCISES} == set(SOLUTIONS)
    assert {one.file for one in EXERCISES} == {
        path.name for path in FOLDER.iterdir() if path.is_file()
    }
    for one in EXERCISES:
        assert len(one.hints) >= 2
        (lesson,) = (ROOT / "docs" / "learn").glob(f"{one.lesson:02}-*.md")
        assert f"`{one.name}`" in lesson.read_text(), f"{lesson.name} does not name {one.name}"


@pytest.mark.parametrize("one", a_sample(EXERCISES, 4), ids=name_of)
def test_an_exercise_fails_as_it_is_and_passes_when_solved(command, tmp_path, one):
    text = (FOLDER / one.file).read_text()
    path = tmp_path / one.file
    path.write_text(text)
    with pytest.raises(NotYet):
        one.check(path)
    path.write_text(solved(one.name, text))
    one.check(path)


def test_no_exercise_shows_its_solution():
    for one in EXERCISES:
        for old, new in SOLUTIONS[one.name]:
            added = new.replace(old, "").strip()
            assert not added or added not in (FOLDER / one.file).read_text() or old in new


def run(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kiln._learn.main", *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(learn.__file__).parents[2])}


def test_the_way_through(command, tmp_path):
    """List, start, check, hint, edit, check: with the one exercise that needs no compiler."""
    code, told = run(tmp_path)
    assert code == 0 and told.count("[ ]") == len(EXERCISES) and "kiln learn start" in told
    code, told = run(tmp_path, "check", "timer")
    assert code == 2 and "kiln learn start" in told
    code, told = run(tmp_path, "start")
    assert code == 0 and f"{len(EXERCISES)} exercises written" in told
    code, told = run(tmp_path, "check", "timer")
    assert code == 1 and "a call takes 50 ms" in told and "kiln learn hint timer" in told
    assert "hint 1 of 2" in run(tmp_path, "hint", "timer")[1]
    assert "hint 2 of 2" in run(tmp_path, "hint", "timer")[1]
    file = tmp_path / "kiln-exercises" / "timer.py"
    file.write_text(solved("timer", file.read_text()))
    code, told = run(tmp_path, "check", "timer")
    assert code == 0 and told.startswith("[x] timer")
    assert "[x] timer" in run(tmp_path)[1]
    assert "0 exercises written" in run(tmp_path, "start")[1], "work would be lost"
    file.write_text(file.read_text() + "# more\n")
    assert "[ ] timer" in run(tmp_path)[1], "another file than the one that passed"


def test_the_lessons_as_notebooks(command, tmp_path):
    code, told = run(tmp_path, "notebooks", "--folder", "here")
    assert code == 0 and "10 notebooks written to here" in told
    first = tmp_path / "here" / "01-launch.ipynb"
    text = first.read_text()
    # No link to a page that is not there: the command has it.
    assert "%load_ext kiln" in text and "`kiln docs results/bench`" in text and ".html" not in text
    first.write_text("mine")
    code, told = run(tmp_path, "notebooks", "--folder", "here")
    assert code == 0 and "0 notebooks written to here, 10 kept" in told
    assert first.read_text() == "mine"


def test_mistakes_on_the_command_line(tmp_path):
    assert run(tmp_path, "chek")[0] == 2
    code, told = run(tmp_path, "check", "tmier")
    assert code == 2 and "there is no exercise 'tmier'" in told
    code, told = run(tmp_path, "notebooks", "here")
    assert code == 2 and "kiln learn notebooks --folder here" in told
    code, told = run(tmp_path, "start", "grid")
    assert code == 2 and "kiln learn check grid" in told
    assert not list(tmp_path.iterdir()), "a mistake writes nothing"


@pytest.mark.parametrize(
    "state",
    ["[]", "{", '{"passed": 5, "hints": []}', '{"passed": {"grid": 7}, "hints": {"a": ""}}'],
)
def test_a_damaged_list_of_what_is_done_is_begun_again(tmp_path, state):
    run(tmp_path, "start")
    (tmp_path / "kiln-exercises" / ".kiln-learn.json").write_text(state)
    code, told = run(tmp_path)
    assert code == 0 and "0 of 12 done" in told
    assert "grid, hint 1 of" in run(tmp_path, "hint", "grid")[1]


def test_a_reader_that_has_seen_enough(tmp_path):
    """kiln learn | head -1"""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "kiln._learn.main"],
        cwd=tmp_path, env=environment(), stdout=write, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 0 and done.stderr == ""


def test_a_watch_checks_again_when_the_file_is_saved(command, tmp_path):
    run(tmp_path, "start")
    file = tmp_path / "kiln-exercises" / "timer.py"
    with subprocess.Popen(
        [sys.executable, "-m", "kiln._learn.main", "watch", "timer"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            told = ""
            while "watching" not in told:
                line = process.stdout.readline()
                assert line, told
                told += line
            file.write_text(solved("timer", file.read_text()))
            assert "[x] timer" in process.communicate(timeout=120)[0]
            assert process.returncode == 0
        finally:
            process.kill()
