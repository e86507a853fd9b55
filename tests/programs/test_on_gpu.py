# SPDX-License-Identifier: Apache-2.0
"""Do the programs of tests/programs, which hold on the engine, hold on a real GPU? One after the
other: some end a context, and a GPU may serve one process alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import kiln
import pytest
import torch

PROGRAMS = sorted(Path(__file__).resolve().parent.glob("*.cu"))
LIMIT_S = 180

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(program: Path, tmp_path: Path):
    tool = Path(kiln.__file__).parent / "bin" / "kiln"
    major, minor = torch.cuda.get_device_capability()
    words = [tool, "run", program, "--arch", f"sm_{major}{minor}", "--build-dir", tmp_path]
    done = subprocess.run(
        words,
        env=os.environ | {"KILN_DEVICE": "cuda"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
