# SPDX-License-Identifier: Apache-2.0
"""Is every page that kiln can write among those that are looked at here?"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Commands with an option that writes a page, and the names of its pictures.
PAGES = {
    ("bench", "--html"): ["bench", "cold"],
    ("build", "--html"): ["build-timeline"],
    ("counters", "--html"): ["counters"],
    ("diff", "--html"): ["diff"],
    ("inspect", "--html"): ["inspect"],
    ("inspect", "--svg"): ["inspect-svg"],
    ("profile", "--html"): ["profile"],
    ("sanitize", "--html"): ["sanitize"],
    ("tune", "--html"): ["tune", "tune-untimed"],
}


def printed(command: str, *words: str) -> str:
    return subprocess.run([command, *words], capture_output=True, text=True, check=True).stdout


def test_every_option_that_writes_a_page_is_known(command: str) -> None:
    found = set()
    names = re.findall(r"^  (\w[\w-]*)  +\S", printed(command, "--help"), re.MULTILINE)
    assert {"bench", "build", "tune"} <= set(names)
    for name in names:
        help_text = printed(command, name, "--help")
        # An option and its description, until the next one.
        for option, text in re.findall(
            r"^ +.*?(--[\w-]+)(.*(?:\n {20,}.*)*)", help_text, re.MULTILINE
        ):
            if re.search(r"\bpage\b|\bpicture\b|\bSVG\b|\bHTML\b", text) and "FILE" in text:
                found.add((name, option))
    assert found == set(PAGES)


def test_every_page_is_looked_at() -> None:
    tests = "".join(path.read_text() for path in sorted(HERE.glob("test_*_page*.py")))
    tests += (HERE / "test_build_timeline.py").read_text()
    for names in PAGES.values():
        for name in names:
            assert f'"{name}"' in tests, name
