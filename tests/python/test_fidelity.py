# SPDX-License-Identifier: Apache-2.0
"""Does -v say how many instructions of a run were exact, and what the others decided?"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

pytestmark = [
    pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="counted on the engine"),
]

# Line 5 is decided by an approximate value.
SOURCE = """#include <cstdio>
__global__ void plain(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] += 1; }
__global__ void fast(float* y) { y[threadIdx.x] = __expf(y[threadIdx.x]); }
__global__ void decides(float* y) {
  for (int i = 0; i < 100; ++i) { if (__sinf(y[threadIdx.x]) > 0.5f) return; y[threadIdx.x] *= 2; }
}
int main(int count, char** words) {
  float* y;
  cudaMalloc(&y, 256);
  cudaMemset(y, 0, 256);
  plain<<<2, 64>>>(y, 64);
  if (count > 1) fast<<<1, 64>>>(y);
  if (count > 2) decides<<<1, 64>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fidelity") / "exp.cu"
    path.write_text(SOURCE)
    return path


def stderr_of(command: Path, source: Path, *words: str) -> str:
    done = subprocess.run(
        [command, *words], cwd=source.parent, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_an_exact_run(command: Path, source: Path) -> None:
    said = stderr_of(command, source, "run", "exp.cu", "-v")
    assert re.search(r"^fidelity: \d+ warp instructions: all exact$", said, re.MULTILINE)
    assert "fidelity" not in stderr_of(command, source, "run", "exp.cu")


def test_approximations_have_their_bound_and_their_count(command: Path, source: Path) -> None:
    said = stderr_of(command, source, "sanitize", "exp.cu", "-v", "--only=memory", "--", "fast")
    assert re.search(r"exact, 2 approximate; no approximate value decides a branch$", said, re.M)
    assert re.search(r"^  2 x ex2\.approx\.\S*f32: a GPU may differ by 2 ulp$", said, re.M)


def test_a_branch_that_an_approximate_value_decides(command: Path, source: Path) -> None:
    said = stderr_of(command, source, "run", "exp.cu", "-v", "--", "fast", "too")
    assert re.search(r"approximate values decide branches at \S*exp\.cu:5$", said, re.M)


def test_what_has_machine_code(command: Path, source: Path) -> None:
    said = stderr_of(command, source, "run", "exp.cu", "-v")
    if platform.machine() == "aarch64":
        assert re.search(r"^compiled: \d+ of \d+ warp instructions have machine code", said, re.M)
        assert re.search(r"^  interpreted: .*ret", said, re.M)
