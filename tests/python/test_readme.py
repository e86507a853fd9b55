# SPDX-License-Identifier: Apache-2.0
"""Does the README's first kernel do what the README says?"""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_first_kernel(command, tmp_path, python):
    (tmp_path / "add.cu").write_text(blocks("cpp")[0])
    printed = python(
        blocks("python")[0] + "\nassert torch.equal(add.my_add(x, x), x + x)\nprint('same')\n"
    )
    assert printed.splitlines()[-1] == "same"
