#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does kiln sanitize find every mistake of the catalogue at its line, and nothing in the twins?

    catalogue.py KILN CHAPTER.cu... [--schedules N]

A chapter is a program, or a file of ops with comments `call OP ARGUMENTS`. Comments in the sources
say what is expected (rules.md): `expect RULE #NAME` in the line, or in both lines, of a finding,
`expect-next` in the line before it, `expect-host RULE COUNT` for findings without a line, and
`options WORDS` for options of the command.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import sys
from pathlib import Path

# A rule and lines: of an expectation those of its comments, of a finding those of its places, the
# main one first.
Finding = tuple[str, tuple[int, ...]]


def is_met(wanted: Finding, found: Finding) -> bool:
    """A finding may have a second place that no comment names, as where a thread ended."""
    (rule, lines), (found_rule, places) = wanted, found
    return rule == found_rule and places[0] in lines and set(lines) <= set(places)


def expected(source: Path) -> tuple[dict[Finding, str], dict[str, int]]:
    """Findings with their names, and the number of findings of the host by rule."""
    lines: dict[tuple[str, str], set[int]] = collections.defaultdict(set)
    host: dict[str, int] = {}
    for number, text in enumerate(source.read_text().splitlines(), 1):
        if found := re.search(r"// expect(-next)? ([\w-]+) #([\w-]+)", text):
            lines[found[2], found[3]].add(number + bool(found[1]))
        if found := re.search(r"// expect-host ([\w-]+) (\d+)", text):
            host[found[1]] = int(found[2])
    return {(rule, tuple(sorted(at))): name for (rule, name), at in lines.items()}, host


def run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def all_findings(kiln: str, source: Path, schedule: int) -> list[dict]:
    """Of the program, or of all calls of its ops."""
    text = source.read_text()
    options = ["--json", "--fail-on", "none", "--schedule", str(schedule)]
    for words in re.findall(r"^// options (.*)", text, re.MULTILINE):
        options += words.split()
    calls = re.findall(r"// call (.*)", text)
    if not calls:
        return json.loads(run([kiln, "sanitize", str(source), *options]))["findings"]
    library = json.loads(run([kiln, "build", str(source), "--json"]))["library"]
    out = []
    for call in calls:
        out += json.loads(run([kiln, "sanitize", library, *call.split(), *options]))["findings"]
    return out


def seen(kiln: str, source: Path, schedule: int) -> tuple[set[Finding], dict[str, int]]:
    findings, host = set(), collections.Counter()
    for finding in all_findings(kiln, source, schedule):
        at = [
            place["stack"][0]["line"]
            for place in finding["places"]
            if place["stack"] and Path(place["stack"][0]["file"]).name == source.name
        ]
        if at:
            findings.add((finding["rule"], tuple(at)))
        else:
            host[finding["rule"]] += 1
    return findings, dict(host)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("chapters", nargs="+", type=Path)
    parser.add_argument("--schedules", type=int, default=1)
    options = parser.parse_args()
    faults, cases = 0, 0
    for source in options.chapters:
        wanted, wanted_host = expected(source)
        cases += len(wanted) + len(wanted_host)
        first = None
        for schedule in range(options.schedules):
            found, found_host = seen(options.kiln, source, schedule)
            # The verdict on accesses that ran does not depend on their order.
            pairs = {(rule, frozenset(lines)) for rule, lines in found}
            first = pairs if first is None else first
            for rule, lines in pairs ^ first:
                faults += 1
                print(f"{source.name}:{sorted(lines)}: {rule} in one of schedules 0, {schedule}")
            for one, name in wanted.items():
                if not any(is_met(one, each) for each in found):
                    faults += 1
                    print(f"{source.name}:{list(one[1])}: not found: {one[0]} #{name}")
            for each in sorted(found):
                if not any(is_met(one, each) for one in wanted):
                    faults += 1
                    print(f"{source.name}:{list(each[1])}: not expected: {each[0]}")
            if found_host != wanted_host:
                faults += 1
                print(f"{source.name}: host: found {found_host}, expected {wanted_host}")
    print(f"{cases} cases in {len(options.chapters)} chapters, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
