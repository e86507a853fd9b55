# SPDX-License-Identifier: Apache-2.0
"""Is the site whole: does every page stay on this machine, every link lead somewhere, and the
search know every page? It is built once, as `make docs` builds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]

TOOLS = ROOT / "build" / "site-tools"
# Attributes by which a browser loads something by itself; a link that a reader clicks is another.
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src",
         "audio": "src", "embed": "src", "object": "data", "input": "src"}  # fmt: skip
LOADING_LINKS = {"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "icon",
                 "modulepreload", "manifest"}  # fmt: skip


class Page(HTMLParser):
    """What a page loads, what it links, and which anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)
        self.loads += in_style_sheet(" ".join(re.findall(r"<style.*?</style>", text, re.DOTALL)))

    def handle_starttag(self, tag: str, attrs: list) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag in LOADS and values.get(LOADS[tag]):
            self.loads.append(values[LOADS[tag]])
        if tag == "link" and LOADING_LINKS & set(values.get("rel", "").split()):
            self.loads.append(values.get("href", ""))
        if "srcset" in values:
            self.loads += [one.split()[0] for one in values["srcset"].split(",") if one.strip()]
        self.loads += in_style_sheet(values.get("style", ""))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


def in_style_sheet(text: str) -> list[str]:
    found = re.findall(r"url\(\s*['\"]?([^'\")]+)", text)
    return found + re.findall(r"@import\s+['\"]([^'\"]+)", text)


def leaves(address: str) -> bool:
    """Whether a browser would ask another machine for it."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ws", "wss", "ftp")


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


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    assert len(found) > 60
    return found


def test_the_check_sees_what_a_page_loads():
    page = Page(
        '<link rel="stylesheet" href="https://a/x.css"><script src="//b/y.js"></script>'
        "<style>@import 'https://c/z.css'; p { background: url(https://d/w.png) }</style>"
        '<img srcset="https://e/1.png 1x, local.png 2x"><a href="https://f/">read</a>'
        '<link rel="canonical" href="https://g/"><p style="background:url(https://h/)">'
    )
    hosts = {urlsplit(one).netloc for one in page.loads if leaves(one)}
    assert hosts == {"a", "b", "c", "d", "e", "h"}


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Page], site: Path):
    outside = [f"{path.name}: {one}" for path, page in pages.items() for one in page.loads
               if leaves(one)]  # fmt: skip
    for sheet in site.rglob("*.css"):
        outside += [f"{sheet.name}: {one}" for one in in_style_sheet(sheet.read_text())
                    if leaves(one)]  # fmt: skip
    assert not outside


def test_every_link_and_every_loaded_file_exists(pages: dict[Path, Page]):
    lost = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                lost.append(f"{path.name}: {link}")
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    lost.append(f"{path.name}: {link} has no such heading")
    assert not lost


def test_the_search_knows_every_page(site: Path):
    import json

    index = site / "search" / "search_index.json"
    known = {one["location"].split("#")[0] for one in json.loads(index.read_text())["docs"]}
    written = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    written = {one for one in written if not one.startswith("gallery/")}  # examples, not prose
    assert written <= known | {"index.html"}
    # From a disk a page may not read the index as a file, only as a script.
    assert (site / "search" / "search_index.js").is_file()


def test_the_gallery_has_a_page_of_every_command_that_writes_one():
    sys.path.insert(0, str(ROOT / "tools"))
    import gallery

    text = gallery.SOURCE.read_text(encoding="utf-8")
    commands = set(re.findall(r"^kiln (\w+) .*--html", text, re.MULTILINE))
    assert commands == {"bench", "build", "counters", "diff", "inspect", "profile", "sanitize",
                        "tune"}  # fmt: skip
    shown = Page(gallery.with_pictures(text))
    assert [f"gallery/{name}" for name in gallery.pages(text)] == shown.loads


def test_every_page_of_the_docs_is_on_the_site(site: Path):
    lost = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT / "docs")
        if str(name) == "README.md":
            continue
        html = (
            name.with_name("index.html") if name.name == "README.md" else name.with_suffix(".html")
        )
        if not (site / html).is_file():
            lost.append(str(name))
    assert not lost


def test_the_first_page_shows_a_picture_and_a_kernel(site: Path):
    first = (site / "index.html").read_text()
    assert "images/kiln.svg" in first and "__global__" in first
