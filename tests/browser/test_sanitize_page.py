# SPDX-License-Identifier: Apache-2.0
"""Does the page of `kiln sanitize` work in a real browser: both lines of a race and their sources,
two themes, a narrow window, no network?"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from devtools import Browser
from looks import check_looks

READY = "document.readyState === 'complete'"
SOURCE = """\
#include <cstdio>
__global__ void reversed(const int* x, int* y) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];  // </script> stays text
  y[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void beyond(int* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main() {
  int *x, *y;
  cudaMalloc(&x, 64 * sizeof(int));
  cudaMalloc(&y, 64 * sizeof(int));
  cudaMemset(x, 0, 64 * sizeof(int));
  reversed<<<1, 64>>>(x, y);
  beyond<<<2, 64>>>(y);
  cudaDeviceSynchronize();
}
"""


@pytest.fixture(scope="module")
def page(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("sanitize")
    (folder / "mistakes.cu").write_text(SOURCE)
    done = subprocess.run(
        [command, "sanitize", "mistakes.cu", "--html", "page.html"],
        cwd=folder,
        env=os.environ | {"KILN_DEVICE": "engine"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return folder / "page.html"


def test_a_page(browser: Browser, page: Path) -> None:
    browser.messages.clear()
    browser.open(page, READY)
    text = browser.run("document.body.innerText")
    for part in (
        "mistakes.cu:4", "mistakes.cu:5", "mistakes.cu:7", "tile", "y[threadIdx.x] = tile",
        "</script> stays text",
    ):  # fmt: skip
        assert part in text, part
    check_looks(browser, "sanitize")
    assert browser.complaints() == []
