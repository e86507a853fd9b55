# SPDX-License-Identifier: Apache-2.0
"""Does the page of `kiln diff --html` show what an edit did: sorted, with code, no network?"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from devtools import Browser
from looks import check_looks

BEFORE = """\
template <typename T, int N>
__global__ void scale(const T* a, T* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * T(N);
}
template __global__ void scale<float, 2>(const float*, float*, int);
template __global__ void scale<double, 2>(const double*, double*, int);
__global__ void same(float* p) { p[threadIdx.x] += 1; }
"""
AFTER = BEFORE.replace("b[i] = a[i] * T(N)", "for (int k = 0; k < N; ++k) b[i + k] = a[i] / T(3)")
FIRST = "document.querySelector('table.sortable tbody tr').textContent"
READY = "document.readyState === 'complete'"


@pytest.fixture(scope="module")
def page(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("diff")
    for name, text in (("before", BEFORE), ("after", AFTER)):
        (folder / f"{name}.cu").write_text(text)
        build = ["nvcc", "-cubin", "-arch=sm_90", f"{name}.cu", "-o", f"{name}.cubin"]
        subprocess.run(build, cwd=folder, check=True)
    diff = [command, "diff", "before.cubin", "after.cubin", "--sass", "--html", "page.html"]
    subprocess.run(diff, cwd=folder, check=True, capture_output=True)
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser(browser: Browser, page: Path) -> Browser:
    browser.open(page, READY)
    return browser


def test_it_says_what_changed_and_shows_the_code(browser: Browser) -> None:
    summary = browser.run("document.getElementById('summary').textContent")
    assert summary.startswith("2 kernels changed") and summary.endswith("1 unchanged.")
    rows = browser.run("document.querySelectorAll('table.sortable tbody tr').length")
    assert rows == 2
    assert browser.run("document.querySelectorAll('.diff .plus').length") > 0


def test_a_head_sorts_by_keyboard_too(browser: Browser) -> None:
    head = "document.querySelector('table.sortable th button')"
    browser.run(f"{head}.focus()")
    order = []
    for direction in ("ascending", "descending"):
        browser.press("Enter")
        assert browser.run(f"{head}.parentNode.getAttribute('aria-sort')") == direction
        order.append(browser.run(FIRST))
    assert "double" in order[0] and "float" in order[1]


def test_every_look_can_be_read(browser: Browser) -> None:
    check_looks(browser, "diff")


def test_no_complaint_and_no_request(browser: Browser, page: Path) -> None:
    assert browser.complaints() == []
    assert len(page.read_bytes()) < 1_000_000
