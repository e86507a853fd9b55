# SPDX-License-Identifier: Apache-2.0
"""Do calls give the same through the compat headers as through torch's? A sample of
tools/compat-probes: what torch's headers gave is stored, beside each expression."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import kiln
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
PROBES = Path(__file__).with_name("compat_probes")
sys.path[:0] = [str(ROOT / "tools"), str(PROBES)]
from compare import allowed_texts, plain, reason_of  # noqa: E402
from compat_probes import source  # noqa: E402

# The stored texts are those of this torch.
pytestmark = pytest.mark.skipif(
    torch.__version__.split(".")[:2] != ["2", "15"], reason="stored for torch 2.15"
)


def rows() -> list[list[str]]:
    """Chapter, probe, and what torch's headers gave; without those that kiln's headers may lack."""
    allowed = allowed_texts()
    found = [json.loads(line) for line in (PROBES / "expected.jsonl").read_text().splitlines()]
    return [row for row in found if not reason_of(row[1], ["refused"], row[2:], allowed)]


STAGE = Path(kiln.__file__).parents[1]


def differing(library: Path, stored: list[list[str]]) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(PROBES / "compare.py"), str(library), str(STAGE)],
        input=json.dumps(list(range(len(stored)))),
        capture_output=True,
        text=True,
        check=False,
    )
    results = {line[0]: line[1:] for line in map(json.loads, done.stdout.splitlines())}
    assert len(results) == len(stored), done.stderr[-3000:]
    return [
        f"{row[1]}\n  kiln:  {results[n]}\n  torch: {row[2:]}"
        for n, row in enumerate(stored)
        if plain(results[n]) != plain(row[2:])
    ]


def test_a_sample_gives_what_torchs_headers_give(command, tmp_path):
    stored = rows()
    assert len(stored) > 200
    text = tmp_path / "probes.cpp"
    text.write_text(source({n: row[1] for n, row in enumerate(stored)}, set()))
    built = subprocess.run(
        [
            str(command),
            "build",
            str(text),
            "--compat=require",
            "--json",
            "--cflag",
            "-O0",
            f"-I{PROBES}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    library = Path(json.loads(built.stdout)["library"])
    assert differing(library, stored) == []
    # A difference is seen.
    wrong = [list(row) for row in stored]
    wrong[0][3] += "1"
    assert len(differing(library, wrong)) == 1
