#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How are the pages of docs/gallery.md made? By running its commands on its sources.

tools/gallery.py [FOLDER]    build/gallery unless FOLDER is given; KILN_BIN names the kiln to use

A block whose first line is a comment with a file's name is that file; each ```sh block is run in
the folder. Pages that exist and are newer than the page and kiln are kept.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "gallery.md"
_FILE = re.compile(r"^```\w+\n(?://|#) ([\w.]+\.\w+)\n((?:.*\n)*?)```$", re.MULTILINE)
_COMMANDS = re.compile(r"^```sh\n((?:.*\n)*?)```$", re.MULTILINE)
_PAGE = re.compile(r"--html (\w+\.html)")


def pages(text: str) -> list[str]:
    return _PAGE.findall(text)


def with_pictures(text: str) -> str:
    """The page for the site: below each command what it makes."""

    def shown(block: re.Match[str]) -> str:
        made = _PAGE.search(block[0])
        if not made:
            return block[0]
        address, name = f"gallery/{made[1]}", made[1].removesuffix(".html")
        # As HTML: mkdocs looks for the targets of Markdown links before these pages are there.
        return (
            f'{block[0]}\n<iframe src="{address}" title="{name}" loading="lazy" '
            'style="width:100%;height:520px;border:1px solid #8886;border-radius:6px"></iframe>\n'
            f'<a href="{address}">Open the page</a>\n'
        )

    return _COMMANDS.sub(shown, text)


def is_new(folder: Path, kiln: str, names: list[str]) -> bool:
    made = [folder / name for name in names]
    if not all(one.is_file() for one in made):
        return False
    return min(one.stat().st_mtime for one in made) > max(
        SOURCE.stat().st_mtime, Path(kiln).stat().st_mtime
    )


def make(folder: Path, kiln: str) -> int:
    text = SOURCE.read_text(encoding="utf-8")
    if is_new(folder, kiln, pages(text)):
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _FILE.findall(text):
        (folder / name).write_text(content, encoding="utf-8")
    # A cache of its own: the page of a build shows a build.
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "KILN_BIN": kiln}
    environment["PATH"] = f"{Path(kiln).parent}:{environment['PATH']}"
    for line in "".join(_COMMANDS.findall(text)).splitlines():
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            print(
                f"error: cannot make the gallery\n  why: '{line}' ended with exit status "
                f"{done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}",
                file=sys.stderr,
            )
            return 1
    print(f"{folder}: {len(pages(text))} pages")
    return 0


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "gallery").resolve()
    stage = ROOT / "build" / "release" / "stage"
    if not (stage / "kiln" / "bin" / "kiln").is_file():
        stage = ROOT / "build" / "quick" / "stage"
    kiln = os.environ.get("KILN_BIN") or str(stage / "kiln" / "bin" / "kiln")
    os.environ.setdefault("PYTHONPATH", str(stage))
    return make(folder, kiln)


if __name__ == "__main__":
    sys.exit(main())
