# SPDX-License-Identifier: Apache-2.0
"""Does the page of `kiln inspect --html` work in a real browser: links, search, folding, no error,
no network?"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from devtools import Browser
from looks import check_looks

SOURCE = """\
__device__ __forceinline__ float series(float x, int k) {
  float s = 0;
  for (int i = 0; i < k; ++i) s += __sinf(x * i);
  return s;
}
__global__ void first(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = series(a[i], n);
}
__global__ void second(double* p) { p[threadIdx.x] *= 3; }
"""
READY = "document.documentElement !== null && document.documentElement.dataset.ready === 'yes'"
LIT = "document.querySelectorAll('#{pane} .line.{kind}').length"


@pytest.fixture(scope="module")
def page(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("page")
    (folder / "two.cu").write_text(SOURCE)
    build = [
        "nvcc",
        "-lineinfo",
        "-arch=sm_90",
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "-cudart=none",
        "two.cu",
        "-o",
        "two.so",
    ]
    subprocess.run(build, cwd=folder, check=True)
    inspect = [command, "inspect", "two.so", "--sources", "."]
    subprocess.run([*inspect, "--html", "page.html", "--svg", "bytes.svg"], cwd=folder, check=True)
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser(browser: Browser, page: Path) -> Browser:
    browser.open(page, READY)
    choose(browser, "first")
    return browser


def choose(browser: Browser, kernel: str) -> None:
    browser.run(
        "(() => { const p = document.getElementById('pick');"
        f"p.value = [...p.options].find((o) => o.textContent.includes('{kernel}')).value;"
        "p.dispatchEvent(new Event('change')); })()"
    )


def count(browser: Browser, pane: str, kind: str) -> int:
    return browser.run(LIT.format(pane=pane, kind=kind))


def test_a_page_is_one_small_file(page: Path) -> None:
    text = page.read_text()
    assert len(text) < 1_000_000
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in text.replace("http://www.w3.org/2000/svg", ""), word


def test_a_click_on_a_source_line_lights_its_sass_and_ptx(browser: Browser) -> None:
    line = "#" + browser.run("document.querySelector('#source .line.linked').id")
    assert count(browser, "sass", "pinned") == 0
    browser.click(line)
    assert count(browser, "source", "pinned") == 1
    lit = count(browser, "sass", "pinned")
    assert lit > 0
    assert count(browser, "ptx", "pinned") > 0
    # Exactly those that come from it.
    assert lit == browser.run(
        f"(() => {{ const key = document.querySelector('{line}').keys[0];"
        "return [...document.querySelectorAll('#sass .line.linked')].filter((l) => "
        "l.keys.includes(key)).length; })()"
    )
    browser.click(line)
    assert count(browser, "sass", "pinned") == 0


def test_a_click_on_sass_shows_the_calls_it_was_inlined_into(browser: Browser) -> None:
    browser.run(
        "document.querySelectorAll('#sass .line.linked')"
        ".forEach((l) => { if (l.keys.length > 1) l.dataset.inlined = '1'; })"
    )
    browser.click("#sass .line[data-inlined]")
    assert "called from" in browser.run("document.getElementById('stack').textContent")
    assert "series" in browser.run("document.getElementById('stack').textContent")
    assert count(browser, "source", "pinned") >= 2
    browser.click("#sass .line[data-inlined]")


def test_hovering_lights_and_leaving_puts_out(browser: Browser) -> None:
    browser.hover("#sass .line.linked")
    assert count(browser, "source", "lit") > 0
    browser.hover("header h1")
    assert count(browser, "source", "lit") == 0


def test_search_hides_other_kernels_and_marks_lines(browser: Browser) -> None:
    shown = (
        "[...document.querySelectorAll('#kernels tr.row')].filter((r) => "
        "!r.classList.contains('hidden')).length"
    )
    assert browser.run(shown) == 2
    typed = (
        "(() => {{ const s = document.getElementById('search'); s.value = '{}';"
        "s.dispatchEvent(new Event('input')); }})()"
    )
    browser.run(typed.format("second"))
    assert browser.run(shown) == 1
    browser.run(typed.format("EXIT"))
    assert count(browser, "sass", "found") > 0
    browser.run(typed.format(""))
    assert browser.run(shown) == 2


def test_a_row_of_the_table_chooses_the_kernel(browser: Browser) -> None:
    browser.run(
        "[...document.querySelectorAll('#kernels tr.row')]"
        ".find((r) => r.textContent.includes('second')).dataset.mine = '1'"
    )
    browser.click("#kernels tr[data-mine]")
    assert "second" in browser.run("document.getElementById('pick').selectedOptions[0].textContent")
    assert "DMUL" in browser.run("document.getElementById('sass').textContent") or not shutil.which(
        "nvdisasm"
    )


def test_panes_scroll_by_themselves(browser: Browser) -> None:
    """A long listing must not push the others out of sight."""
    choose(browser, "first")
    assert browser.run(
        "document.getElementById('sass').scrollHeight > "
        "document.getElementById('sass').clientHeight"
    )
    assert browser.run(
        "(() => { const d = document.querySelector('#code > div'); return d.scrollHeight <= "
        "d.clientHeight + 1; })()"
    )


def test_sections_fold(browser: Browser) -> None:
    height = "document.getElementById('overview').getBoundingClientRect().height"
    before = browser.run(height)
    browser.click("#overview > summary")
    assert browser.run(height) < before
    browser.click("#overview > summary")
    assert browser.run(height) == before


def test_the_button_changes_the_theme(browser: Browser) -> None:
    browser.theme("light")
    seen = []
    for _ in range(3):
        seen.append(browser.run("getComputedStyle(document.body).backgroundColor"))
        browser.click("#theme")
    assert seen[0] == seen[2] != seen[1]


def test_every_look_can_be_read(browser: Browser, page: Path) -> None:
    """Without a choice of the button's, the page looks as the system asks."""
    browser.open(page, READY)
    choose(browser, "first")
    browser.run("document.querySelector('#sass .line.linked').click()")
    check_looks(browser, "inspect")


def test_no_complaint_and_no_request(browser: Browser) -> None:
    assert browser.complaints() == []


def test_hostile_names_stay_text(browser: Browser, command: str, tmp_path: Path) -> None:
    """A file whose name is markup must not become markup."""
    name = "<img src=x onerror=document.title=1>.ptx"
    (tmp_path / name).write_text(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
    )
    subprocess.run([command, "inspect", name, "--html", "page.html"], cwd=tmp_path, check=True)
    browser.open(tmp_path / "page.html", READY)
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.title") == name


def test_the_picture_of_its_bytes_can_be_read(browser: Browser, page: Path) -> None:
    browser.open(page.with_name("bytes.svg"), "document.readyState === 'complete'")
    assert "SASS" in browser.run("document.documentElement.textContent")
    check_looks(browser, "inspect-svg")
