# SPDX-License-Identifier: Apache-2.0
"""Which probes are drawn, and what does a source of them look like? A template at random, each slot
at random: one seed, one list. The templates: tests/python/compat_probes/calls.txt."""

from __future__ import annotations

import random
import re
from pathlib import Path

CALLS = Path(__file__).resolve().parents[1] / "tests/python/compat_probes/calls.txt"
_SLOT = re.compile(r"\$(\w+)")


def tables(text: str) -> dict[str, dict[str, list[str]]]:
    """By kind (directed, slot, chapter) and name: the lines below."""
    found: dict[str, dict[str, list[str]]] = {"directed": {}, "slot": {}, "chapter": {}}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            lines.append("" if line == "  (nothing)" else line[2:])
        elif line and not line.startswith("#"):
            kind, _, name = line.partition(" ")
            lines = found[kind][name] = []
    return found


def filled(template: str, slots: dict[str, list[str]], chooser: random.Random) -> str:
    # A word may go on with letters: $accessor of to$accessor(). The longest name counts.
    known = sorted(slots, key=len, reverse=True)

    def choose(match: re.Match[str]) -> str:
        name = next((one for one in known if match[1].startswith(one)), None)
        assert name, f"no slot for ${match[1]} in {template}"
        return filled(chooser.choice(slots[name]), slots, chooser) + match[1][len(name) :]

    return _SLOT.sub(choose, template)


def draw(seed: int, count: int) -> list[tuple[str, str]]:
    """Chapter and expression of each, none twice. Chapters take turns: a chapter with few templates
    has as much weight as one with many."""
    found = tables(CALLS.read_text())
    chooser = random.Random(seed)
    chapters = list(found["chapter"])
    drawn = [("directed", probe) for probe in found["directed"][""][:count]]
    seen = {probe for _, probe in drawn}
    tries = 0
    while len(drawn) < count and tries < 100 * count:
        chapter = chapters[tries % len(chapters)]
        tries += 1
        probe = filled(chooser.choice(found["chapter"][chapter]), found["slot"], chooser)
        if probe not in seen:
            seen.add(probe)
            drawn.append((chapter, probe))
    return drawn


def source(probes: dict[int, str], refused: set[int]) -> str:
    """A module whose run(number) tells what a probe gives. Errors of the compiler have the line of
    their probe: #line."""
    lines = ['#include "probes.h"', "namespace {", "struct Probes : probes::Given {"]
    for number, probe in probes.items():
        if number not in refused:
            lines += [f'#line {number + 1} "probes"', f"  PROBE({number}, {probe})"]
    lines += ['#line 1 "end"', "};", "std::string run(int64_t number) {", "  switch (number) {"]
    lines += [f"    case {n}: return Probes().p{n}();" for n in probes if n not in refused]
    lines += ['    default: return "refused by the compiler";', "  }", "}", "}  // namespace"]
    # torch's autograd engine refuses to run with the lock of Python held.
    released = '  m.def("run", &run, py::call_guard<py::gil_scoped_release>());'
    lines += ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", released, "}", ""]
    return "\n".join(lines)


def refused_in(messages: str) -> set[int]:
    """The probes that a compiler's messages name."""
    return {int(line) - 1 for line in re.findall(r"\bprobes:(\d+):", messages)}
