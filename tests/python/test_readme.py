# SPDX-License-Identifier: Apache-2.0
"""Does the README's first kernel do what the README says?"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


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
