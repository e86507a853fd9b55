# SPDX-License-Identifier: Apache-2.0
"""Does the site's search work from a disk, and does a page ask no other machine for anything?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from devtools import Browser

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "site-tools"
RESULTS = ".md-search-result__item"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not TOOLS.is_dir():
        pytest.skip(f"{TOOLS} does not exist; `tools/bootstrap test` installs mkdocs-material")
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "site.py"), str(folder)],
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_search_works_from_a_disk_and_nothing_is_asked_of_others(
    browser: Browser, site: Path
) -> None:
    # The frame is there once the theme's script has started its worker.
    browser.open(site / "guide" / "sanitize.html", "!!document.querySelector('iframe')")
    found, end = "", time.monotonic() + 60
    while not found and time.monotonic() < end:
        browser.run(
            "{ const box = document.querySelector('.md-search__input'); box.focus();"
            "box.value = 'bank conflict';"
            "box.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true})); }"
        )
        time.sleep(0.2)
        found = browser.run(
            f"[...document.querySelectorAll('{RESULTS} a')].map((one) => one.href).join(' ')"
        )
    assert "glossary.html" in str(found)
    loaded = browser.run(
        "performance.getEntriesByType('resource').map((one) => one.name).join(' ')"
    )
    assert "https://" not in str(loaded) and "http://" not in str(loaded)
    if os.environ.get("KILN_SCREENSHOTS"):
        browser.screenshot(Path(os.environ["KILN_SCREENSHOTS"]) / "site.png")
