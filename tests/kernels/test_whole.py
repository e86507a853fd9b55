# SPDX-License-Identifier: Apache-2.0
"""Do the kernels pass kiln's own test of an op, and do they stay inside the memory of their
tensors?"""

import subprocess
import sys
from pathlib import Path

import kiln
import pytest
import torch

HERE = Path(__file__).resolve().parent

REFERENCES = {
    "my_add": lambda a, b: a + b,
    "my_fast_add": lambda a, b: a + b,
    "cust_add": lambda x, value: x + value,
    "fused_abs": lambda x: torch.sqrt(x * x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", REFERENCES)
def test_of_kiln(kernels, device, name, dtype):
    """Strides, alignments, sizes, poisoned outputs, inputs left alone, repeatability, opcheck."""
    op = getattr(kernels, name)
    op.reference(REFERENCES[name])
    x = torch.randn(33, 70, device=device).to(dtype)
    second = {"fused_abs": (), "cust_add": (3,)}.get(
        name, (torch.randn(70, device=device).to(dtype),)
    )
    kiln.test(op, x, *second)


@pytest.mark.skipif(kiln.device() != "cpu", reason="for the engine, whose memory is the host's")
def test_no_access_beside_the_tensor(kernels):
    """Tensors that end where a page without access begins: an access behind them ends the
    process."""
    command = [sys.executable, HERE / "guarded.py", kernels.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stdout.split()[-1] == "done"
