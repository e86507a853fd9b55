# SPDX-License-Identifier: Apache-2.0
"""Does every command of the documentation run as it is written?

A block of commands is ```sh. They run in a folder with the files that the pages speak of
(tests/python/guides, and what the page itself shows), one after another. Where that cannot be, the
line below the block is a comment, "<!-- Not run by the tests: REASON -->". Other blocks are
```usage (a synopsis), ```output, ```text, or a language. Options are held both ways: what a page
writes exists, and what --help lists is in a page.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "guides"
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/guide/*.md")),
    *sorted(ROOT.glob("docs/reference/*.md")),
    ROOT / "docs/learn/README.md",
]
LESSONS = sorted(ROOT.glob("docs/learn/[0-9]*.md"))  # test_lessons.py runs their cells
LANGUAGES = {"sh", "usage", "output", "text", "cpp", "python", "toml", "json", "cmake", "yaml"}
EXCUSE = "<!-- Not run by the tests: "


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    excuse: str


def blocks_of(text: str) -> list[Block]:
    found = []
    for match in re.finditer(r"^```(.*)\n((?:.*\n)*?)```\n(?=(.*\n)?)", text, re.MULTILINE):
        language, body, below = match.groups()
        excuse = (
            (below or "").strip().removeprefix(EXCUSE).removesuffix(" -->")
            if (below or "").startswith(EXCUSE)
            else ""
        )
        found.append(Block(language.strip(), body, text[: match.start()].count("\n") + 1, excuse))
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_language(page):
    found = blocks_of(page.read_text())
    unknown = [
        f"{name_of(page)}:{b.line}: {b.language!r}" for b in found if b.language not in LANGUAGES
    ]
    assert not unknown


def test_an_excuse_is_seen():
    text = f"```sh\na\n```\n{EXCUSE}it needs a GPU.\n```sh\nb\n```\nText.\n```sh\nc\n```\n"
    assert [block.excuse for block in blocks_of(text)] == ["it needs a GPU.", "", ""]


def test_no_page_with_commands_is_left_out():
    known = {*PAGES, *LESSONS}
    others = [page for page in ROOT.glob("docs/**/*.md") if page not in known]
    with_commands = [name_of(page) for page in others if commands_in(page)]
    assert not with_commands
    # In a lesson a command is a cell; one that is not has its reason below it.
    without_reason = [name_of(page) for page in LESSONS for b in commands_in(page) if not b.excuse]
    assert not without_reason


def test_tensors_of_a_page_are_where_kernels_run():
    """On a machine with a GPU an op refuses a CPU tensor, so that Python on a page names a device.
    kiln.counters takes CPU tensors everywhere, and the gallery's script calls torch alone."""
    made = re.compile(r"torch\.(?:randn|rand|zeros|ones|empty|arange|full|randint|tensor)\(")
    written = [*PAGES, *LESSONS, *ROOT.glob("templates/**/*.md"), *ROOT.glob("templates/**/*.py")]
    lacking = [
        f"{name_of(page)}: {line.strip()}"
        for page in written
        for line in page.read_text().splitlines()
        if made.search(line)
        and not re.search(r"device=|kiln\.counters\(", line)
        and page.name != "gallery.md"
    ]
    assert not lacking


def commands_in(page: Path) -> list[Block]:
    return [block for block in blocks_of(page.read_text()) if block.language == "sh"]


def prepare(folder: Path, page: Path) -> None:
    """The files of the guides, and those that the page shows: a C++ block that registers ops is the
    source that its commands name."""
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    shutil.copy(FILES.parent / "sources" / "torch_add.cu", folder)
    (folder / "helper.cu").write_text("int helper() { return 1; }\n")
    for block in blocks_of(page.read_text()):
        if block.language == "cpp" and "weighted_sum" in block.text:
            (folder / "lists.cu").write_text(block.text)
        elif named := re.match(r"(?://|#) (\w+\.\w+)\n", block.text):
            (folder / named[1]).write_text(block.text)


def environment(command: Path) -> dict[str, str]:
    bin_folder, package = command.parent, command.parents[2]
    return {
        **os.environ,
        "PATH": f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(package),
        "KILN_PYTHON": sys.executable,
        "NO_COLOR": "1",
    }


# Much time of one core each: profilers that start anew, every project of the gallery, every
# variant of a kernel, timings.
SLOW = {"docs/gallery.md", *(f"docs/guide/{name}.md" for name in ("bench", "profile", "tune"))}
RUN = [
    pytest.param(page, id=name_of(page), marks=[pytest.mark.long] if name_of(page) in SLOW else [])
    for page in PAGES
    if any(block.language == "sh" and not block.excuse for block in blocks_of(page.read_text()))
]


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_run(command, tmp_path, page):
    prepare(tmp_path, page)
    for block in blocks_of(page.read_text()):
        if block.language != "sh" or block.excuse:
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=tmp_path, env=environment(command), capture_output=True, text=True, timeout=600,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, (
            f"{name_of(page)}:{block.line}: exit code {done.returncode}\n{block.text}\n"
            f"{done.stdout}\n{done.stderr}"
        )


@functools.lru_cache(maxsize=None)
def help_of(command: Path, *names: str) -> str:
    """Of a command, and of the commands below it: kiln cache prune."""
    line = [str(command), *names, "--help"]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return text + "".join(help_of(command, *names, name) for name in below(text) if names)


def below(help_text: str) -> list[str]:
    return re.findall(r"^  ([a-z]+)  +\S", help_text, re.MULTILINE)


def commands_of(command: Path) -> list[str]:
    return below(help_of(command))


def options_in(help_text: str) -> set[str]:
    """Those that a line starts with: `  -o,--output FILE  ...`."""
    found = set()
    for line in re.findall(r"^ +(-.*)$", help_text, re.MULTILINE):
        head = re.split(r"  +", line.strip(), maxsplit=1)[0]
        found.update(re.findall(r"--[a-z][\w-]*", head))
    return found


def test_every_option_of_help_is_in_a_page(command):
    """In the guide of its command, or in a page about the options that many share."""
    names = commands_of(command)
    assert {"build", "bench", "tune"} <= set(names)
    shared = "".join(
        (ROOT / page).read_text() for page in ("docs/guide/build.md", "docs/reference/commands.md")
    )
    lacking = []
    for name in names:
        guide = ROOT / f"docs/guide/{name}.md"
        reference = ROOT / f"docs/reference/{name}.md"
        text = shared + "".join(one.read_text() for one in (guide, reference) if one.is_file())
        for option in sorted(options_in(help_of(command, name)) - {"--help", "--version"}):
            if not re.search(rf"{option}(?![\w-])", text):
                lacking.append(f"{name} {option}")
    assert not lacking


def test_every_option_in_a_page_exists(command):
    """Of commands in blocks and in `kiln ...` of running text."""
    names = set(commands_of(command))
    wrong = []
    for page in [*PAGES, ROOT / "templates/project/README.md"]:
        text = page.read_text()
        written = [b.text for b in blocks_of(text) if b.language in ("sh", "usage")]
        written += re.findall(r"`(kiln [^`]+)`", text)
        for line in "\n".join(written).replace("\\\n", " ").splitlines():
            for name, words in re.findall(r"\bkiln ([a-z]+)((?: [^`;&|]*)?)", line):
                if name not in names:
                    continue
                words = words.split(" -- ")[0].split(".py ")[0]
                for option in re.findall(r"(?<!\S)\[?(--[a-z][\w-]*)", words):
                    if option not in options_in(help_of(command, name)) and option != "--help":
                        wrong.append(f"{name_of(page)}: kiln {name} {option}")
    assert not wrong
