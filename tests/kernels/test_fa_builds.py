# SPDX-License-Identifier: Apache-2.0
"""Does fa_s512 compile as fast as it should, and does its build refuse what makes a kernel slow?
The times are recorded ones, printed by benchmarks/tune.py on an idle machine: a busy one would fail
for no reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_each_path_compiles_in_ten_seconds_an_architecture() -> None:
    recorded = json.loads((ROOT / "docs" / "results" / "fa_builds.json").read_text())
    seen = {(row["path"], row["arch"]): row["slowest_source_s"] for row in recorded["rows"]}
    assert set(seen) == {
        (path, arch) for path in ("Hopper", "portable") for arch in ("8.0", "9.0a")
    }
    assert all(0 < seconds <= 10 for seconds in seen.values()), seen


def test_the_project_asks_for_findings_as_errors() -> None:
    assert 'findings = "error"' in (ROOT / "kernels" / "fa_s512" / "kiln.toml").read_text()


# The code for one shape alone, which compiles in seconds.
ONE_SHAPE = ["HEAD_DIM=64", "FA_PORTABLE_ALONE=1", "P_BF16_ALONE=1", "P_CAUSAL=0"]


@pytest.mark.parametrize(
    "defines, code, words",
    [
        (["P_BLOCK_N=32", *ONE_SHAPE], 0, '"right": true'),
        (["P_BLOCK_N=24", *ONE_SHAPE], 1, "P_BLOCK_N must be a multiple of 16"),
        (["P_BLOCK_N"], 2, "'P_BLOCK_N' is no NAME=VALUE"),
    ],
    ids=["right", "does not build", "no define"],
)
def test_the_script_tells_of_one_configuration(device, defines, code, words) -> None:
    if device != "cpu":
        pytest.skip("benchmarks/fa_s512.py has the GPU")
    import kiln

    line = [
        sys.executable,
        str(ROOT / "kernels/fa_s512/fa_s512_tunable.py"),
        "--portable",
        *defines,
    ]
    done = subprocess.run(
        [*line, "--head-dim", "64", "--length", "70", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(kiln.__file__).parents[1]),
            "KILN_DEVICE": "engine",  # otherwise torch, slow to import, is asked for a GPU
        },
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
    assert '"us"' not in done.stdout  # nothing is timed without a GPU
