#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does kiln sanitize find the races and bounds bugs of the Indigo suite?

  benchmarks/indigo.py CHECKOUT [--shape 64x2] [--input NAME ...] [--every N] [--json FILE]
  benchmarks/indigo.py CHECKOUT --tool racecheck [--shape 64x2] [--limit 30] [--json FILE]
  benchmarks/indigo.py --page FILE.json... [--write docs/results]

CHECKOUT is a clone of https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24: 590 programs, 346
of them racy and 144 with a bounds bug by their file names. Each is built as a user builds it
(`kiln build --program`) and run under KILN_SANITIZE=memory,race. EXPECTED has the programs in which
a race or a bounds bug is executed, by an oracle on the source (happens-before over all accesses,
atomics strong, all else weak): inputs of 5 nodes do not reach some bugs.

`--tool racecheck` runs the racy programs under compute-sanitizer instead, on the GPU. What either
found goes to a file of JSON; `--page` makes the page of docs/results of such files.
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
import time
from dataclasses import asdict, dataclass, field
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
ALL = 590
RACY = re.compile(r"atomicBug|guardBug|syncBug|raceBug")
MARK = re.compile(r"(atomic|guard|sync|race)Bug here")
# Behind a bad index a program may read the bound of a loop from anywhere: a warp stops after as
# many instructions in loops. The longest good loop has about 20,000.
STEP_LIMIT = "1000000"


@dataclass
class Outcome:
    races: list[dict] = field(default_factory=list)
    bounds: list[dict] = field(default_factory=list)
    error: str = ""


@dataclass
class Run:
    """What a tool found in all programs, for one shape and input."""

    tool: str
    shape: str
    input: str
    programs: int = 0
    seconds: float = 0.0
    races: list[str] = field(default_factory=list)  # programs
    bounds: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)  # with a race at another line than the bug
    errors: dict[str, str] = field(default_factory=dict)

    def add(self, source: Path, outcome: Outcome) -> None:
        self.programs += 1
        if outcome.error:
            self.errors[source.stem] = outcome.error
        if outcome.races:
            self.races.append(source.stem)
        if outcome.bounds:
            self.bounds.append(source.stem)
        if outcome.races and self.tool == "kiln" and not at_the_bug(source, outcome.races):
            self.elsewhere.append(source.stem)

    def false_alarms(self) -> list[str]:
        races = [name for name in self.races if not RACY.search(name)]
        return races + [name for name in self.bounds if "boundsBug" not in name]

    def expected(self) -> tuple[int, int] | None:
        if self.shape not in EXPECTED or self.programs != ALL or self.input not in INPUTS:
            return None
        races, bounds = EXPECTED[self.shape]
        at = INPUTS.index(self.input)
        return races[at], bounds[at]

    def holds(self) -> bool:
        found = (len(self.races), len(self.bounds))
        wanted = self.expected()
        clean = not (self.false_alarms() or self.elsewhere or self.errors)
        return clean and (wanted is None or found == wanted)


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


def sanitized(words: list[str], engine: Path, options: argparse.Namespace) -> Outcome:
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {
            "KILN_DEVICE": "engine",
            "KILN_ENGINE": str(engine),
            "KILN_ENGINE_SCHEDULE": str(options.schedule),
            "KILN_ENGINE_STEP_LIMIT": STEP_LIMIT,
            "KILN_SANITIZE": "memory,race",
            "KILN_SANITIZE_FOLDER": folder,
        }
        try:
            done = subprocess.run(
                words, env=env, capture_output=True, text=True, timeout=options.limit
            )
        except subprocess.TimeoutExpired:
            outcome.error = f"longer than {options.limit:g} s"
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


def racechecked(words: list[str], options: argparse.Namespace) -> Outcome:
    outcome = Outcome()
    command = ["compute-sanitizer", "--tool", "racecheck", *words]
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"KILN_DEVICE": "cuda"},
            capture_output=True,
            text=True,
            timeout=options.limit,
        )
    except subprocess.TimeoutExpired:
        outcome.error = f"longer than {options.limit:g} s"
        return outcome
    summary = re.search(r"RACECHECK SUMMARY: (\d+) hazard", done.stdout)
    if not summary:
        outcome.error = (done.stdout + done.stderr)[-200:]
    elif int(summary[1]):
        outcome.races.append({"hazards": int(summary[1])})
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


def page(runs: list[Run]) -> str:
    ours = sorted(
        (run for run in runs if run.tool == "kiln"),
        key=lambda run: (list(EXPECTED).index(run.shape), INPUTS.index(run.input)),
    )
    count = max((run.programs for run in ours), default=0)
    text = f"""# Indigo under kiln sanitize

Written by `benchmarks/indigo.py`: {count} programs of the suite, without a GPU. 346 are racy and
144 have a bounds bug by their file names. "Expected" are the programs that execute a race or a
bounds bug with the input, by an oracle on the source. No other program may be reported, and each
race must be at the line of the bug. A shape is threads of a block x blocks.

| shape | input | races | expected | bounds | expected | false alarms | not at the bug | errors |
|---|---|---|---|---|---|---|---|---|
"""
    for run in ours:
        races, bounds = run.expected() or ("", "")
        text += (
            f"| {run.shape} | {run.input} | {len(run.races)} | {races} | {len(run.bounds)} "
            f"| {bounds} | {len(run.false_alarms())} | {len(run.elsewhere)} | {len(run.errors)} |\n"
        )
    text += """
Other tools on the same suite:

| tool | racy programs found | needs |
|---|---|---|
"""
    for run in runs:
        if run.tool == "racecheck":
            late = f", {len(run.errors)} without a result" if run.errors else ""
            text += (
                f"| racecheck, {run.input} at {run.shape}, measured | {len(run.races)} of "
                f"{run.programs}{late} | a GPU |\n"
            )
    return text + PUBLISHED


PUBLISHED = """| racecheck, by input (HiRace, SC'24, table 1) | 56 to 128 of 346 | a GPU |
| iGUARD, by input (the same table) | 118 to 298 of 346 | a GPU, binary patching |
| HiRace, by input (the same table) | 346 346 346 346 182 295 | a GPU, source patching |
"""


def measure(options: argparse.Namespace) -> list[Run]:
    checkout, stage = options.checkout.resolve(), options.stage.resolve()
    sources = sorted((checkout / "indigo/indigo_sources").glob("*/*.cu"))
    if not sources:
        raise SystemExit(f"no programs under {checkout}/indigo/indigo_sources")
    if options.tool == "racecheck":
        sources = [source for source in sources if RACY.search(source.stem)]
    sources = sources[:: options.every]
    engine = stage / "kiln/lib/libkiln_engine.so"
    options.cache.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = list(pool.map(lambda s: build(stage, checkout, s, options.cache), sources))
        for shape in () if options.build_only else options.shape or ["64x2"]:
            for name in INPUTS if options.all_inputs else options.input or INPUTS[:1]:
                graph = checkout / f"indigo/input/{name}.egr"
                run, begin = Run(options.tool, shape, name), time.monotonic()

                def one(program: Path, graph: Path = graph, shape: str = shape) -> Outcome:
                    words = [str(program), str(graph), *shape.split("x")]
                    if options.tool == "racecheck":
                        return racechecked(words, options)
                    return sanitized(words, engine, options)

                for source, outcome in zip(sources, pool.map(one, programs)):
                    run.add(source, outcome)
                run.seconds = round(time.monotonic() - begin, 1)
                runs.append(run)
                print(run.tool, shape, name, len(run.races), len(run.bounds), run.expected(),
                      f"{run.seconds} s", run.false_alarms(), run.elsewhere, run.errors,
                      flush=True)  # fmt: skip
                if options.json:
                    options.json.write_text(json.dumps([asdict(each) for each in runs], indent=1))
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=Path, nargs="?")
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--tool", choices=("kiln", "racecheck"), default="kiln")
    parser.add_argument("--shape", action="append", help="THREADSxBLOCKS")
    parser.add_argument("--input", action="append", choices=INPUTS)
    parser.add_argument("--all-inputs", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="each Nth program alone")
    parser.add_argument("--schedule", type=int, default=0, help="KILN_ENGINE_SCHEDULE")
    parser.add_argument("--limit", type=float, default=600, help="seconds of each program")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/indigo", help="built programs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    parser.add_argument("--page", type=Path, nargs="+", help="files of --json: run nothing")
    parser.add_argument("--write", type=Path, help="the folder for sanitize-indigo.md")
    options = parser.parse_args()
    if options.page:
        runs = [Run(**each) for file in options.page for each in json.loads(file.read_text())]
    elif options.checkout:
        runs = measure(options)
    else:
        parser.error("name the checkout, or --page FILE.json")
    text = page(runs)
    print(text)
    if options.write:
        (options.write / "sanitize-indigo.md").write_text(text)
    return 0 if all(run.holds() for run in runs if run.tool == "kiln") else 1


if __name__ == "__main__":
    sys.exit(main())
