# SPDX-License-Identifier: Apache-2.0
"""Does the page of `kiln build --html` work in a real browser: every step drawn inside of the
chart, two themes, no network?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from devtools import Browser
from looks import check_looks

READY = "document.readyState === 'complete'"
# Headers are listed where a step is slow, as cub makes it on any machine.
SOURCE = """\
#include <cub/cub.cuh>
__global__ void <NAME>(float* p) { p[threadIdx.x] *= 3; }
extern "C" void launch_<NAME>(float* p) { <NAME><<<1, 32>>>(p); }
"""


@pytest.fixture(scope="module")
def page(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("timeline")
    (folder / "twice.cu").write_text(SOURCE.replace("<NAME>", "twice"))
    subprocess.run(
        [
            command,
            "build",
            "twice.cu",
            "--arch",
            "8.0;9.0",
            "--html",
            "page.html",
            "--trace",
            "page.trace.json",
        ],  # fmt: skip
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        check=True,
    )
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser(browser: Browser, page: Path) -> Browser:
    browser.open(page, READY)
    return browser


def titles(browser: Browser) -> list[str]:
    return browser.run("[...document.querySelectorAll('svg rect title')].map((t) => t.textContent)")


def test_every_step_and_program_is_drawn_and_listed(browser: Browser) -> None:
    drawn = titles(browser)
    for what in (
        "parse twice.cu",
        "compute_80",
        "compute_90",
        "compile twice.cu for the host",
        "pack",
        "link libtwice.so",
    ):
        assert any(what in title for title in drawn), what
    for program in ("cudafe++", "cicc", "ptxas", "fatbinary"):
        assert any(title.startswith(program + ":") for title in drawn), program
    rows = browser.run("document.querySelectorAll('table')[0].rows.length")
    assert rows == 1 + 6
    assert browser.run("document.querySelectorAll('table')[1].textContent.includes('cub.cuh')")


def test_bars_lie_inside_of_the_chart_and_steps_of_a_row_do_not_overlap(browser: Browser) -> None:
    boxes = browser.run(
        "[...document.querySelectorAll('svg rect')].map((r) => ['x', 'y', 'width', "
        "'height'].map((n) => +r.getAttribute(n)))"
    )
    wide, high = browser.run(
        "document.querySelector('svg').getAttribute('viewBox').split(' ').slice(2).map(Number)"
    )
    assert boxes
    for x, y, width, height in boxes:
        assert x >= 0 and x + width <= wide + 1, (x, width)
        assert y >= 0 and y + height <= high, (y, height)
    rows: dict[float, list[list[float]]] = {}
    for box in boxes:
        rows.setdefault(box[1], []).append(box)
    for row in rows.values():
        row.sort()
        for before, after in zip(row, row[1:]):
            assert before[0] + before[2] <= after[0] + 1.5, (before, after)


def test_every_look_can_be_read(browser: Browser) -> None:
    grounds = []
    for theme in ("light", "dark"):
        browser.theme(theme)
        grounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]
    check_looks(browser, "build-timeline")


def test_no_error_no_network_and_the_trace_says_the_same(browser: Browser, page: Path) -> None:
    assert not [
        m
        for m in browser.messages
        if m.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
    ]
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    trace = json.loads(page.with_suffix(".trace.json").read_text())
    names = {event["name"] for event in trace["traceEvents"]}
    assert {title.split(": ")[0] for title in titles(browser)} <= names
