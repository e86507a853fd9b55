# SPDX-License-Identifier: Apache-2.0
"""Does one line in a scaffolded project clean, build, test and benchmark?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
def test_one_line_cleans_builds_tests_and_benchmarks(command: Path, tmp_path: Path) -> None:
    subprocess.run([command, "new", "one_line"], cwd=tmp_path, check=True, capture_output=True)
    project = tmp_path / "one_line"
    left_behind = project / "build/kiln/obj/left_behind.o"
    left_behind.parent.mkdir(parents=True)
    left_behind.write_text("")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(command.parents[2]),
    }
    line = [command, "test", "--fresh", "--bench"]
    done = subprocess.run(line, cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not left_behind.exists()
    told = [
        row.split()[1]
        for row in (done.stdout + done.stderr).splitlines()
        if row.startswith("passed ")
    ]
    assert told == ["build", "main.cu", "tests", "bench"]
    assert "one_line against torch.add: " in done.stdout + done.stderr
