# SPDX-License-Identifier: Apache-2.0
"""Does the check of looks see what cannot be read, and accept a page that can be?"""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools import Browser
from looks import faults_of_look

READY = "document.readyState === 'complete'"
GOOD = """<p style="color: #444">text</p>
<svg width="400" viewBox="0 0 400 40"><rect width="400" height="40" fill="#024"/>
<text x="8" y="20" font-size="12" fill="#fff">a label on a bar</text></svg>"""


def faults(browser: Browser, folder: Path, body: str) -> list[str]:
    page = folder / "page.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><body>{body}</body>')
    browser.open(page, READY)
    return faults_of_look(browser)


def test_leaves_a_good_page_alone(browser: Browser, tmp_path: Path) -> None:
    assert faults(browser, tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("pale", "#444", "#bbb"),
        ("pale", 'fill="#fff"', 'fill="#246"'),
        ("pale", "color: #444", "color: #444; background: color-mix(in srgb, #444 90%, #fff)"),
        ("pale", "color: #444", "opacity: 0.3"),
        ("cut", 'x="8"', 'x="350"'),
        ("cut", 'y="20"', 'y="4"'),
        ("too small", 'viewBox="0 0 400 40"', 'viewBox="0 0 800 80"'),
        ("too wide", "color: #444", "width: 4000px"),
    ],
)
def test_sees_a_fault(browser: Browser, tmp_path: Path, what: str, old: str, new: str) -> None:
    assert old in GOOD
    found = faults(browser, tmp_path, GOOD.replace(old, new))
    assert [fault.split(":")[0] for fault in found] == [what], found


def test_a_narrow_window_is_one(browser: Browser, tmp_path: Path) -> None:
    body = '<p style="width: 800px">text</p>'
    assert faults(browser, tmp_path, body) == []
    browser.width(700)
    assert [fault.split(":")[0] for fault in faults_of_look(browser)] == ["too wide"]
    browser.width(0)
