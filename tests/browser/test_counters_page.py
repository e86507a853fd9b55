# SPDX-License-Identifier: Apache-2.0
"""Does the page of `kiln counters --html` work in a real browser: heat by any metric, PTX, the
picture of a warp, no network?"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from devtools import Browser
from looks import check_looks

SOURCE = """\
#include <cuda_runtime.h>
__global__ void turn(const float* a, float* b, int width) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * width + x];
  __syncthreads();
  for (int k = 0; k < 32; k += 8) b[(y + k) * width + x] = 2 * tile[threadIdx.x][threadIdx.y + k];
}
__global__ void spread(const float* a, float* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i * 9] = a[i] + 1;  // </script> far apart
}
int main() {
  float *a, *b;
  cudaMalloc(&a, 1 << 20);
  cudaMalloc(&b, 1 << 20);
  turn<<<dim3(2, 2), dim3(32, 8)>>>(a, b, 64);
  spread<<<8, 128>>>(a, b);
  return cudaDeviceSynchronize();
}
"""
LINES = 300  # of the long kernel, each with work of its own
READY = "document.documentElement.dataset.ready === 'yes'"
MOST_BYTES = 500_000


@pytest.fixture(scope="module")
def page(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("counters")
    (folder / "two.cu").write_text(SOURCE)
    subprocess.run([command, "counters", "two.cu", "--html", "page.html"], cwd=folder, check=True)
    return folder / "page.html"


def long_source() -> str:
    """A kernel of LINES lines: accesses of both memories, sums, branches."""
    kinds = (
        "  sum += a[i + {k} * n];",
        "  tile[(threadIdx.x * {k}) % 256] = sum * {k}.5f;",
        "  sum = tile[(threadIdx.x + {k}) % 256] - sum * sum;",
        "  if (sum > {k}.25f) b[i + {k}] = sum + expf(sum);",
    )
    body = [kinds[k % len(kinds)].format(k=k) for k in range(LINES)]
    return "\n".join(
        [
            "__global__ void long_one(const float* a, float* b, int n) {",
            "  __shared__ float tile[256];",
            "  int i = blockIdx.x * blockDim.x + threadIdx.x; float sum = 0;",
            *body,
            "  b[i] = sum;",
            "}",
            "int main() {",
            "  float *a, *b;",
            "  cudaMalloc(&a, 4 << 20);",
            "  cudaMalloc(&b, 4 << 20);",
            "  long_one<<<4, 128>>>(a, b, 512);",
            "  return cudaDeviceSynchronize();",
            "}",
        ]
    )


@pytest.fixture(scope="module")
def browser(browser: Browser, page: Path) -> Browser:
    browser.open(page, READY)
    return browser


def choose(browser: Browser, select: str, value: str) -> None:
    browser.run(
        f"(() => {{ const s = document.getElementById('{select}'); s.value = '{value}';"
        " s.dispatchEvent(new Event('change')); })()"
    )


def heat(browser: Browser) -> dict[str, str]:
    return browser.run(
        "Object.fromEntries([...document.querySelectorAll('#source tr.has')].map("
        "(r) => [r.dataset.at, r.cells[0].textContent]))"
    )


def test_heat_follows_the_metric_and_the_launch(browser: Browser) -> None:
    choose(browser, "launch", "0")
    choose(browser, "metric", "bank_conflicts")
    assert {at: n for at, n in heat(browser).items() if n} == {"two.cu:7": "3,968"}
    choose(browser, "launch", "1")
    choose(browser, "metric", "sectors_per_request")
    assert heat(browser)["two.cu:11"] == "18", "four of the load, 32 of the store"


def test_a_line_shows_ptx_and_a_warp(browser: Browser) -> None:
    choose(browser, "launch", "0")
    browser.run("document.querySelector('#source tr[data-at=\"two.cu:7\"]').click()")
    assert "ld.shared" in browser.run("document.getElementById('ptx').textContent")
    assert "32 words in a bank" in browser.run("document.getElementById('warp').textContent")
    crowded = browser.run("document.querySelectorAll('#warp .lane.two').length")
    assert crowded == 32, "every lane waits for the same bank"
    assert "far apart" in browser.run(
        "(() => { const s = document.getElementById('launch'); s.value = '1';"
        " s.dispatchEvent(new Event('change'));"
        " return document.getElementById('source').textContent; })()"
    )


def test_page_is_small_and_silent(browser: Browser, page: Path) -> None:
    assert page.stat().st_size < MOST_BYTES
    assert browser.complaints() == []


def test_page_of_a_long_kernel_is_small_and_opens_offline(
    command: str, browser: Browser, page: Path
) -> None:
    folder = page.parent
    (folder / "long.cu").write_text(long_source())
    subprocess.run([command, "counters", "long.cu", "--html", "long.html"], cwd=folder, check=True)
    size = (folder / "long.html").stat().st_size
    assert size < MOST_BYTES, size
    browser.open(folder / "long.html", READY)  # a browser without a network
    assert len(heat(browser)) >= LINES
    assert browser.complaints() == []
    browser.open(page, READY)


def test_looks(browser: Browser) -> None:
    choose(browser, "launch", "0")
    check_looks(browser, "counters")
