# SPDX-License-Identifier: Apache-2.0
"""Does the code of the README and of the guide to ops do what they say?"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_first_kernel_is_the_one_that_kiln_new_writes(command, tmp_path):
    subprocess.run([command, "new", "--minimal", "add"], cwd=tmp_path, check=True)
    assert (tmp_path / "add.cu").read_text() == blocks("cpp")[0]


def test_first_kernel(command, tmp_path, python):
    (tmp_path / "add.cu").write_text(blocks("cpp")[0])
    printed = python(
        blocks("python")[0]
        + "\ntorch.testing.assert_close(ops.add(x, x, 0.5), 1.5 * x)\nprint('same')\n"
    )
    assert printed.splitlines()[-1] == "same"


def test_lists_and_optionals_of_the_guide(command, tmp_path, python):
    (source,) = [block for block in blocks("cpp", "docs/guide/op.md") if "TensorList" in block]
    (tmp_path / "lists.cu").write_text(source)
    python("""
import torch, kiln
ops = kiln.load("lists.cu")
x = torch.randn(5, device=kiln.device())
close = torch.testing.assert_close
close(ops.weighted_sum([x, x], [1.0, 2.0]), 3 * x)
close(ops.weighted_sum([x, x], [1.0, 2.0], x), 4 * x)
close(ops.twice_and_half(x), (2 * x, 0.5 * x))
close(ops.halves([x, 2 * x]), [0.5 * x, x])
padded, count = ops.pad(x, 4)
assert padded.shape == (8,) and count == 8
""")
