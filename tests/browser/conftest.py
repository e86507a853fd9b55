# SPDX-License-Identifier: Apache-2.0
"""What do the tests of all pages share? The kiln that makes them, and one browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devtools import Browser, find_browser

ROOT = Path(__file__).resolve().parents[2]
STAGE = Path(os.environ.get("KILN_STAGE_DIR") or ROOT / "build" / "release" / "stage")
sys.path.insert(0, str(STAGE))


@pytest.fixture(scope="session")
def command() -> str:
    return os.environ.get("KILN_BIN") or str(STAGE / "kiln" / "bin" / "kiln")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_browser()
    if not program:
        pytest.skip("no chromium")
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def browser(chromium: Browser) -> Browser:
    """As a new one: nothing shown, no theme asked for, nothing said. A file whose tests share a
    page opens it in a fixture of the same name."""
    chromium.call("Page.navigate", url="about:blank")
    chromium.theme("")
    chromium.width(0)
    chromium.messages.clear()
    return chromium


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, dict], Path]:
    """A page that the measuring library writes: its file's name, the kind of page, what it
    shows."""
    from kiln import _measure

    folder = tmp_path_factory.mktemp("pages")

    def write(name: str, kind: str, value: dict) -> Path:
        page = folder / f"{name}.html"
        page.write_text(_measure.render(kind, value))
        return page

    return write
