# SPDX-License-Identifier: Apache-2.0
"""Does `kiln tune` time what is right on a real GPU, and can the GPU be used after each variant
that is not?"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import kiln
import pytest
import torch
from kiln.command import checked_command

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def test_every_variant_has_its_fate_and_the_gpu_works_on(tmp_path):
    source = tmp_path / "tunable.cu"
    source.write_text((ROOT / "tests" / "python" / "sources" / "tunable.cu").read_text())
    line = [
        str(checked_command()), "tune", str(source), "shift", "randn:f32:2^20", "by=2", "--vary",
        "MODE=0,1,2,3,4,5,6,7", "--vary", "BLOCK=128,256", "--where", "MODE == 0 || BLOCK == 128",
        "--shared-bytes", "(MODE == 7) * 1000000", "--limit", "10", "--json",
    ]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    seen = {tuple(o["defines"]): o["fate"] for o in result["outcomes"]}
    wanted = ["timed", "wrong", "crashed", "hung", "crashed", "pruned", "unbuildable", "pruned"]
    assert [seen[(f"MODE={mode}", "BLOCK=128")] for mode in range(8)] == wanted
    assert seen["MODE=0", "BLOCK=256"] == "timed"
    assert result["timed"] and len(result["finalists"]) == 2
    x = torch.randn(1 << 20, device="cuda")
    module = kiln.load(source, tuned=True)
    assert module.shift.choice(x, 2.0) is not None
    assert torch.equal(module.shift(x, 2.0), x + 2)
    assert torch.equal(module.shift(x[:7], 2.0), x[:7] + 2)  # nothing was tuned for this shape
