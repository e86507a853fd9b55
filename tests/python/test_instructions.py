# SPDX-License-Identifier: Apache-2.0
"""Does benchmarks/instructions.py count the same for the same program, and judge more as more?

All of it is `make instructions-bars`; this is the part that takes seconds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import instructions  # noqa: E402


@pytest.fixture(autouse=True)
def valgrind() -> None:
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind here: tools/bootstrap test installs it")


@pytest.mark.long
def test_a_no_change_build_takes_as_many_instructions_as_itself(
    command: Path, tmp_path: Path
) -> None:
    stage = command.parents[2]
    words = [str(stage), "--stage", str(stage), "--parts", "no-change", "--pairs", "0"]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/instructions.py", *words, "--write", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "instructions.md").read_text()
    row = re.search(
        r"no-change `kiln build` \| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| 1.01 \| holds", page
    )
    assert row, page
    assert int(row.group(1).replace(",", "")) > 1_000_000
    assert abs(float(row.group(3)) - 1) < 0.002


@pytest.mark.long
def test_it_counts_what_a_program_does() -> None:
    def loop(times: int) -> int:
        script = f"for _ in range({times}): pass"
        command = [sys.executable, "-S", "-c", script]  # not -I, which ignores the hash seed
        return sum(instructions.counted(command, {"PYTHONHASHSEED": "0"}).values())

    first, second, third = loop(0), loop(300_000), loop(600_000)
    assert 0.98 < (third - second) / (second - first) < 1.02


def test_more_than_the_bar_is_over_and_the_page_shows_both() -> None:
    counts = {
        "before": {instructions.NO_CHANGE: 1_000_000.0, instructions.CALLS[2]: 100.0},
        "after": {instructions.NO_CHANGE: 1_011_000.0, instructions.CALLS[2]: 300.0},
    }
    page = instructions.markdown(counts, {}, ["one", "two"], {})
    assert "| 1,000,000 | 1,011,000 | 1.0110 | 1.01 | OVER |" in page
    assert "| 100 | 300 | 3.0000 |  | not judged |" in page
    assert instructions.verdict(instructions.NO_CHANGE, 1.0099) == "holds"


def test_a_base_that_is_no_stage_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/instructions.py", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "fix: BASE=" in done.stderr
