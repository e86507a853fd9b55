#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the lists that people read name everything, in order? Prints each fault, exits 1 for one.

Makefile: a target has a rule, a row of `make help` and a place in .PHONY, or none of the three; the
rows of a group are sorted; LONG has every long test. CONTRIBUTING.md: each folder of tests/ has one
row, each long test has one, and the rows are sorted. docs/results/README.md: each page has a row.
docs/README.md and docs/design/README.md: each page of guide, reference and design has a row.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from check_hygiene import tracked_files

LONG_GROUP = "Long tests"


def help_groups(makefile: str) -> dict[str, list[str]]:
    """Heading to the targets below it, as `make help` prints them."""
    groups: dict[str, list[str]] = {}
    heading = ""
    for text in re.findall(r'^\t@echo "(.*)"$', makefile, re.MULTILINE):
        row = re.match(r"make (\S+)  +\S", text)
        if row:
            groups.setdefault(heading, []).append(row.group(1))
        else:
            heading = text
    return groups


def words_after(name: str, makefile: str) -> list[str]:
    """The words of `name: ...` or `name := ...`, over continued lines."""
    found = re.search(rf"^{re.escape(name)}\s*:?[:=]((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    return found.group(1).replace("\\\n", " ").split() if found else []


def in_order(names: list[str], where: str) -> list[str]:
    for one, next_one in zip(names, sorted(names)):
        if one != next_one:
            return [f"{where}: {one} stands where {next_one} belongs; the rows are sorted"]
    return []


def faults_of_makefile(makefile: str) -> list[str]:
    groups = help_groups(makefile)
    rows = [name for names in groups.values() for name in names]
    rules = set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE)) - {"help"}
    phony = set(words_after(".PHONY", makefile)) - {"help"}
    found = []
    for name in sorted(set(rows) | rules | phony):
        lacks = [
            what
            for what, names in (
                ("rule", rules),
                ("row in help", set(rows)),
                ("place in .PHONY", phony),
            )
            if name not in names
        ]
        found += [f"Makefile: target {name} has no {what}" for what in lacks]
    for heading, names in groups.items():
        found += in_order(names, f"Makefile: help, {heading!r}")
        if heading.startswith(LONG_GROUP):
            wanted = [name for name in names if name != "test-long"]
            run = words_after("LONG", makefile)
            found += [f"Makefile: LONG lacks {name}" for name in wanted if name not in run]
            found += [
                f"Makefile: LONG names {name}, which is not a long test"
                for name in run
                if name not in wanted
            ]
    return found


def faults_of_long_tests(contributing: str, makefile: str) -> list[str]:
    """Each has a row with its time and its sample."""
    rows = [row.removeprefix("make ") for row in rows_of(contributing) if row.startswith("make ")]
    long = words_after("LONG", makefile)
    found = [f"CONTRIBUTING.md: no row for make {name}" for name in long if name not in rows]
    found += [f"CONTRIBUTING.md: make {name} is not in LONG" for name in rows if name not in long]
    return found + in_order(rows, "CONTRIBUTING.md, long tests")


def rows_of(text: str) -> list[str]:
    """The first cell of each row of its tables, without marks."""
    return [cell.strip().strip("`") for cell in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)]


def faults_of_contributing(text: str, folders: list[str]) -> list[str]:
    rows = [row for row in rows_of(text) if row.startswith("tests/")]
    named = [row.split("/")[1] for row in rows]
    found = [f"CONTRIBUTING.md: no row for tests/{name}" for name in folders if name not in named]
    found += [f"CONTRIBUTING.md: a row for tests/{name}, which does not exist"
              for name in named if name not in folders]  # fmt: skip
    found += [f"CONTRIBUTING.md: {named.count(name)} rows for tests/{name}"
              for name in folders if named.count(name) > 1]  # fmt: skip
    return found + in_order(rows, "CONTRIBUTING.md")


def faults_of_results(readme: str, pages: list[str]) -> list[str]:
    """A page is named whole, or by a pattern such as engine-<machine>.md."""
    names = re.findall(
        r"[\w<>-]+\.(?:md|json)", "\n".join(re.findall(r"^\|.*$", readme, re.MULTILINE))
    )
    patterns = [re.escape(name).replace("<machine>", r"\w+") for name in names]
    found = []
    for page in pages:
        twin = re.sub(r"\.json$", ".md", page)  # the numbers of a page, beside it
        if not any(re.fullmatch(pattern, one) for pattern in patterns for one in (page, twin)):
            found.append(f"docs/results/README.md: no row for {page}")
    return found


def faults_of_index(index: str, readme: str, pages: list[str]) -> list[str]:
    """`pages` as the index links them: relative to its folder."""
    linked = re.findall(r"^\|\s*\[[^]]*\]\(([^)#]+)\)", readme, re.MULTILINE)
    return [f"{index}: no row for {page}" for page in pages if page not in linked]


def faults_of_mnemonics(name: str, text: str) -> list[str]:
    """src/ptx/instructions.def is the only place of the engine that knows mnemonics."""
    asks = re.compile(r"\bmnemonic\s*[!=]=|\bmnemonic\.(?:starts_with|ends_with|back|front)\b")
    return [
        f"{name}:{number}: asks for a mnemonic; give its row of instructions.def a trait"
        for number, line in enumerate(text.splitlines(), 1)
        if asks.search(line)
    ]


def faults_of_traits(table: str) -> list[str]:
    """What never parks cannot park."""
    rows = re.findall(r'^PTX_FORM\(.*?, "(\w+)", .*"([^"]*)"\)$', table, re.MULTILINE)
    return ["instructions.def: no row was read"] * (not rows) + [
        f"instructions.def: a row of {mnemonic} is both straight and parks"
        for mnemonic, traits in rows
        if {"straight", "parks"} <= set(traits.split())
    ]


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    names = [Path(name) for name in tracked_files(root)]
    folders = sorted(
        {name.parts[1] for name in names if name.parts[0] == "tests" and len(name.parts) > 2}
    )
    results = root / "docs/results"
    pages = [
        name.name for name in names if root / name.parent == results and name.name != "README.md"
    ]
    makefile, contributing = (root / "Makefile").read_text(), (root / "CONTRIBUTING.md").read_text()
    found = faults_of_makefile(makefile) + faults_of_long_tests(contributing, makefile)
    found += faults_of_contributing(contributing, folders)
    found += faults_of_results((results / "README.md").read_text(), pages)
    for index, folders_below in (("docs", ("guide", "reference")), ("docs/design", (".",))):
        listed = [
            str(name.relative_to(index))
            for name in names
            if name.suffix == ".md" and name.name != "README.md"
            if any(name.parent == Path(index) / folder for folder in folders_below)
        ]
        page = f"{index}/README.md"
        found += faults_of_index(page, (root / page).read_text(), listed)
    for name in names:
        if name.suffix in (".cpp", ".h") and name.is_relative_to("src/engine"):
            # bench/ has an interpreter of its own, to compare with.
            if not name.is_relative_to("src/engine/bench"):
                found += faults_of_mnemonics(str(name), (root / name).read_text())
    found += faults_of_traits((root / "src/ptx/instructions.def").read_text())
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
