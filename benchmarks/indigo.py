#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does kiln sanitize find the races and bounds bugs of the Indigo suite?

  benchmarks/indigo.py CHECKOUT [--shape 64x2] [--input NAME ...] [--every N] [--write docs/results]

CHECKOUT is a clone of https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24: 590 programs, 346
of them racy and 144 with a bounds bug by their file names. Each is built as a user builds it
(`kiln build --program`) and run under KILN_SANITIZE=memory,race. EXPECTED has the programs in which
a race or a bounds bug is executed, by an oracle on the source (happens-before over all accesses,
atomics strong, all else weak): inputs of 5 nodes do not reach some bugs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INPUTS = (
    "DAG_100n_200e",
    "DAG_200n_400e",
    "counterDAG_200n_1000e",
    "power_law_200n_1000e",
    "DAG_5n_5e",
    "counterDAG_5n_5e",
)
# By shape: programs with an executed race, and with an executed bounds bug, for each input.
EXPECTED = {
    "256x1024": ((346, 346, 346, 346, 186, 300), (108, 108, 72, 144, 108, 108)),
    "64x2": ((320, 320, 336, 320, 176, 300), (108, 36, 0, 54, 108, 108)),
}
RACY = re.compile(r"atomicBug|guardBug|syncBug|raceBug")
MARK = re.compile(r"(atomic|guard|sync|race)Bug here")


@dataclass
class Outcome:
    races: list[dict] = field(default_factory=list)
    bounds: list[dict] = field(default_factory=list)
    error: str = ""


def build(stage: Path, checkout: Path, source: Path, folder: Path) -> Path:
    """The program; built once."""
    program = folder / source.stem
    if program.exists():
        return program
    command = [stage / "kiln/bin/kiln", "build", "--program", source, "-o", program]
    command += ["-I", checkout / "indigo/indigo_include"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{source.name}: {done.stderr}")
    return program


def run(program: Path, graph: Path, shape: str, engine: Path, schedule: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {
            "KILN_DEVICE": "engine",
            "KILN_ENGINE": str(engine),
            "KILN_ENGINE_SCHEDULE": str(schedule),
            "KILN_SANITIZE": "memory,race",
            "KILN_SANITIZE_FOLDER": folder,
        }
        words = [str(program), str(graph), *shape.split("x")]
        outcome = Outcome()
        try:
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            outcome.error = "longer than 600 s"
            return outcome
        # A wrong result is none of our business; the programs say 0 whatever it is.
        if done.returncode < 0:
            outcome.error = f"signal {-done.returncode}: {done.stderr[-200:]}"
        for file in Path(folder).glob("*.json"):
            for finding in json.loads(file.read_text())["findings"]:
                if finding["severity"] != "error":
                    continue
                if finding["check"] == "race":
                    outcome.races.append(finding)
                elif finding["rule"] == "out-of-bounds":
                    outcome.bounds.append(finding)
        return outcome


def lines_of(finding: dict) -> list[int]:
    return [place["stack"][0]["line"] for place in finding["places"] if place.get("stack")]


def at_the_bug(source: Path, races: list[dict]) -> bool:
    """Is each finding at a line that the source marks, or of the array that lacks a barrier?"""
    text = source.read_text().splitlines()
    marked = {i for i, line in enumerate(text, 1) if MARK.search(line)}

    def near(line: int) -> bool:
        return any(0 < line - mark <= 3 for mark in marked) or "s_carry" in text[line - 1]

    return all(any(near(line) for line in lines_of(each)) for each in races)


@dataclass
class Tally:
    races: int = 0
    bounds: int = 0
    wrong_races: list[str] = field(default_factory=list)
    wrong_bounds: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, source: Path, outcome: Outcome) -> None:
        if outcome.error:
            self.errors.append(f"{source.stem}: {outcome.error}")
        self.races += bool(outcome.races)
        self.bounds += bool(outcome.bounds)
        if outcome.races and not RACY.search(source.stem):
            self.wrong_races.append(source.stem)
        if outcome.bounds and "boundsBug" not in source.stem:
            self.wrong_bounds.append(source.stem)
        if outcome.races and not at_the_bug(source, outcome.races):
            self.elsewhere.append(source.stem)


def page(tallies: dict[tuple[str, str], Tally], count: int, every: int) -> str:
    note = "" if every == 1 else " (a sample)"
    text = f"""# Indigo under kiln sanitize

Written by `benchmarks/indigo.py`: {count} programs of the suite{note},
without a GPU. "Expected" are the programs that execute a race or a bounds bug, by an oracle on the
source. No other program may be reported.

| threads x blocks | input | races | expected | bounds | expected | false alarms | not at the bug |
|---|---|---|---|---|---|---|---|
"""
    for (shape, name), tally in tallies.items():
        races, bounds = ("", "")
        if shape in EXPECTED and every == 1:
            at = INPUTS.index(name)
            races, bounds = str(EXPECTED[shape][0][at]), str(EXPECTED[shape][1][at])
        alarms = len(tally.wrong_races) + len(tally.wrong_bounds)
        text += (
            f"| {shape} | {name} | {tally.races} | {races} | {tally.bounds} | {bounds} "
            f"| {alarms} | {len(tally.elsewhere)} |\n"
        )
    return text + OTHERS


OTHERS = """
Other tools on the same suite:

| tool | races found, of 346 | needs |
|---|---|---|
| racecheck 2025.3, H200, DAG_100n_200e at 64 x 2 | 40 of the 316 it was run on | a GPU |
| racecheck, by input (HiRace, SC'24, table 1) | 56 to 128 | a GPU |
| iGUARD, by input (the same table) | 118 to 298 | a GPU, binary patching |
| HiRace, by input (the same table) | 346 346 346 346 182 295 | a GPU, source patching |
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--shape", action="append", help="THREADSxBLOCKS")
    parser.add_argument("--input", action="append", choices=INPUTS)
    parser.add_argument("--every", type=int, default=1, help="each Nth program alone")
    parser.add_argument("--schedule", type=int, default=0, help="KILN_ENGINE_SCHEDULE")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/indigo", help="built programs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--write", type=Path, help="the folder for sanitize-indigo.md")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    sources = sorted((checkout / "indigo/indigo_sources").glob("*/*.cu"))[:: options.every]
    if not sources:
        raise SystemExit(f"no programs under {checkout}/indigo/indigo_sources")
    stage = options.stage.resolve()
    engine = stage / "kiln/lib/libkiln_engine.so"
    options.cache.mkdir(parents=True, exist_ok=True)
    tallies: dict[tuple[str, str], Tally] = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = list(pool.map(lambda s: build(stage, checkout, s, options.cache), sources))
        for shape in () if options.build_only else options.shape or ["64x2"]:
            for name in options.input or INPUTS[:1]:
                graph = checkout / f"indigo/input/{name}.egr"
                tally = tallies[shape, name] = Tally()
                outcomes = pool.map(
                    lambda p: run(p, graph, shape, engine, options.schedule), programs
                )
                for source, outcome in zip(sources, outcomes):
                    tally.add(source, outcome)
                print(shape, name, tally, flush=True)
    text = page(tallies, len(sources), options.every)
    print(text)
    if options.write:
        (options.write / "sanitize-indigo.md").write_text(text)
    failed = any(t.wrong_races or t.wrong_bounds or t.errors for t in tallies.values())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
