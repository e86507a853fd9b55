# SPDX-License-Identifier: Apache-2.0
"""How do the pages of docs/ become a site that works without a network?

tools/docs [FOLDER]: build/site unless FOLDER is given. Pages of the gallery come from build/gallery
(tools/gallery.py). docs/README.md, the index that people read
in the repository, decides which pages there are and in which order. Warnings of mkdocs, such as a
link without a target, end the build.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path
from gallery import with_pictures
from lessons import LESSONS, write_notebooks

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_FOREIGN_WORKER = "https://unpkg.com/iframe-worker/shim"
_WORKER = "assets/worker.js"
_STYLE = "assets/site.css"
# Sources have 100 columns: the page is wide enough for them.
_CSS = ".md-grid { max-width: 72rem; }\n"
_ROW = re.compile(r"^\| \[[^]]*\]\(([^)#]+\.md)\)", re.MULTILINE)
_OUTSIDE = re.compile(
    r"\[([^]]+)\]\((?:\.\./)+(?:src|runtime|kernels|tests|tools|benchmarks)/[^)]*\)"
)


def title_of(page: Path) -> str:
    heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return heading.group(1).replace("`", "") if heading else page.stem


def rows_below(heading: str, index: str) -> list[str]:
    """The pages that the tables of a section link, in their order."""
    found = re.search(
        rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL
    )
    return _ROW.findall(found.group(1)) if found else []


def navigation(docs: Path = DOCS) -> list[dict[str, Any]]:
    """The index's sections, then what lies in design and results."""
    index = (docs / "README.md").read_text(encoding="utf-8")
    sections: list[dict[str, Any]] = [{"kiln": "index.md"}]
    for heading in re.findall(r"^## (.+)$", index, re.MULTILINE):
        pages: list[Any] = rows_below(heading, index)
        folder = docs / heading.lower()
        if not pages and (folder / "README.md").is_file():
            others = sorted(one.name for one in folder.glob("*.md") if one.name != "README.md")
            pages = [f"{folder.name}/{name}" for name in ("README.md", *others)]
        sections.append({heading: [{title_of(docs / page): page} for page in pages]})
    return sections


def _palette(media: str, scheme: str, icon: str, following: str) -> dict[str, Any]:
    return {
        "media": f"(prefers-color-scheme{media})", "scheme": scheme, "primary": "black",
        "toggle": {"icon": f"material/{icon}", "name": f"Theme: {following}"},
    }  # fmt: skip


def configuration(to: Path) -> dict[str, Any]:
    return {
        "site_name": "kiln",
        "docs_dir": str(DOCS),
        "site_dir": str(to),
        # Links name files: the site is read from a disk, where a folder is no page.
        "use_directory_urls": False,
        "exclude_docs": "/README.md\n*.json\n",
        "nav": navigation(),
        "theme": {
            "name": "material",
            "font": False,  # else every page loads fonts from a server
            "features": ["navigation.tabs", "navigation.top", "search.highlight"],
            # The first follows the reader's system, also when it changes; a button goes through
            # them, and the browser remembers the choice.
            "palette": [
                _palette("", "default", "brightness-auto", "Light"),
                _palette(": light", "default", "brightness-7", "Dark"),
                _palette(": dark", "slate", "brightness-4", "As the system"),
            ],
        },
        "markdown_extensions": ["tables", "toc", "pymdownx.highlight", "pymdownx.superfences"],
        # offline: the index of the search becomes a script, which pages may load from a disk.
        "plugins": ["search", "offline"],
        "hooks": [str(Path(__file__))],
        "extra": {"generator": False},
        "extra_css": [_STYLE],
        "validation": {"links": {"anchors": "warn", "unrecognized_links": "warn"}},
    }


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A hook of mkdocs. Sources are in the repository and not on the site: their names stay,
    without a link. The README there is the first page here."""
    markdown = _OUTSIDE.sub(r"\1", markdown)
    if page.file.src_uri == "gallery.md" and (ROOT / "build" / "gallery").is_dir():
        markdown = with_pictures(markdown)
    if re.fullmatch(r"learn/\d\d-.*\.md", page.file.src_uri):
        name = f"{Path(page.file.src_uri).stem}.ipynb"
        # As HTML: the notebook is written after mkdocs has looked for its links' targets.
        link = f'<a href="{name}" download>This lesson as a notebook</a>'
        markdown = re.sub(r"^(# .*\n)", rf"\1\n{link}\n", markdown, count=1)
    return re.sub(r"\]\((?:\.\./)+README\.md(#[^)]*)?\)", "](../index.md)", markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """A hook of mkdocs. The plugin `offline` has every page load a script from another server."""
    up = "../" * page.url.count("/")
    return output.replace(_FOREIGN_WORKER, f"{up}{_WORKER}")


def on_post_build(config: Any) -> None:
    """A hook of mkdocs."""
    notebooks = Path(config["site_dir"]) / "learn"
    write_notebooks(LESSONS, notebooks)
    gallery = Path(config["site_dir"]) / "gallery"
    for page in sorted((ROOT / "build" / "gallery").glob("*.html")):
        gallery.mkdir(exist_ok=True)
        shutil.copyfile(page, gallery / page.name)
    shutil.copyfile(ROOT / "tools" / "site_worker.js", Path(config["site_dir"]) / _WORKER)
    (Path(config["site_dir"]) / _STYLE).write_text(_CSS, encoding="utf-8")
    index = Path(config["site_dir"]) / "404.html"  # for servers; it would load the script too
    index.unlink(missing_ok=True)


def main() -> int:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    to = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    begun = time.monotonic()
    try:
        file = to.with_name("mkdocs.yml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(configuration(to), indent=1))  # JSON is YAML
        config = load_config(config_file=str(file), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    except Abort as error:
        print(f"error: cannot build the site\n  why: {error}", file=sys.stderr)
        return 1
    pages = len(list(to.rglob("*.html")))
    print(f"{to / 'index.html'}: {pages} pages in {time.monotonic() - begun:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
