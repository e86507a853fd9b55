# SPDX-License-Identifier: Apache-2.0
"""Does the code of the README and of the guide to ops do what they say?"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_first_kernel_is_the_one_that_kiln_new_writes(command, tmp_path):
    subprocess.run([command, "new", "--minimal", "add"], cwd=tmp_path, check=True)
    assert (tmp_path / "add.cu").read_text() == blocks("cpp")[0]


def test_the_next_steps_are_five():
    page = (ROOT / "README.md").read_text()
    (steps,) = re.findall(r"## Where to go next\n(.*?)\n## ", page, re.DOTALL)
    assert len(re.findall(r"\]\(", steps)) == 5


def test_first_kernel(command, tmp_path, python):
    (tmp_path / "add.cu").write_text(blocks("cpp")[0])
    printed = python(
        blocks("python")[0]
        + "\ntorch.testing.assert_close(ops.add(x, x, 0.5), 1.5 * x)\nprint('same')\n"
    )
    assert printed.splitlines()[-1] == "same"


@pytest.mark.long
def test_the_kernel_of_the_first_page_of_the_site(command, tmp_path, python):
    (tmp_path / "add.cu").write_text(blocks("cpp", "docs/index.md")[0])
    printed = python(blocks("python", "docs/index.md")[0] + "\nprint(ops.add(x, x).equal(2 * x))\n")
    assert printed.splitlines()[-1] == "True"


def test_the_guide_to_triton(command, tmp_path, python):
    pytest.importorskip("triton")
    # Triton reads the source of a kernel from its file.
    (tmp_path / "guide.py").write_text(blocks("python", "docs/guide/triton.md")[0])
    assert python("from guide import *\nprint(out.equal(x + y))\n").strip() == "True"


def test_the_guide_to_ptx(command, tmp_path, python):
    (tmp_path / "scale.cu").write_text(
        "__global__ void scale(const float* x, float* y, float by, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = by * x[i];\n}\n"
    )
    ptx = subprocess.run(
        [command, "inspect", "--ptx", "scale.cu"], cwd=tmp_path, check=True, capture_output=True
    )
    (tmp_path / "scale.ptx").write_bytes(ptx.stdout)
    printed = python(blocks("python", "docs/guide/ptx.md")[0] + "\nprint((y == 2 * x).all())\n")
    assert printed.strip() == "True"


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
