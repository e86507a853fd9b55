#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do an op call, a no-change build and a cold build take more instructions than before?

  make instructions-bars BASE=STAGE    the stage of another build (its build/release/stage)

valgrind's cachegrind counts instructions, which a busy machine does not change, so two stages can
be compared to a percent. A call is the difference of two runs with N and 2N calls: start-up
cancels. A cold build counts the processes of kiln; compilers, ninja and the shell are left out.
Times of both stages in turns are printed beside it and not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent))
import hidden_frames  # noqa: E402
from builds import ARCH, SOURCES  # noqa: E402
from sampling import in_turns, machine, seconds_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
COMPILERS = (
    "nvcc cicc ptxas cudafe++ fatbinary nvlink *g++* *gcc* c++ cc1plus collect2 ld ld.* as".split()
)
# "calls": what a call is counted by; the order is that of count_calls.py.
CALLS = ("op call, torch.ops", "op call, kiln.load", "op call with a launch on the engine")
PARTS = ["calls", "no-change", "cold"]
NO_CHANGE, COLD = "no-change `kiln build`", "cold `kiln build`, compilers left out"
BARS = {
    CALLS[0]: 1.01,
    CALLS[1]: 1.01,
    NO_CHANGE: 1.01,
    COLD: 1.05,
}  # the others are printed, not judged


Counts = Dict[str, Dict[str, float]]  # "before" and "after", then by what was counted
Times = Dict[str, Dict[str, List[float]]]  # by what was timed, then "before" and "after"


@dataclass
class Stage:
    name: str  # "before", "after"
    folder: Path
    scratch: Path
    for_torch: dict[str, str]  # what torch needs in the environment under valgrind

    @property
    def kiln(self) -> Path:
        return self.folder / "kiln/bin/kiln"

    def environment(self, cache: Path) -> dict[str, str]:
        kept = ("HOME", "PATH", "CUDA_HOME", "LD_LIBRARY_PATH", "KILN_PYTHON", "TMPDIR")
        clean = {name: os.environ[name] for name in kept if name in os.environ}
        return clean | {
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": str(self.folder),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "LC_ALL": "C",
        }

    def build(self, source: Path, cache: Path) -> list[str]:
        return [
            str(self.kiln),
            "build",
            str(source),
            "--arch",
            ARCH,
            "--build-dir",
            str(cache / "out"),
        ]


# ---- counting ----------------------------------------------------------------------------------


def counted(
    command: list[str], environment: dict[str, str], children: bool = False
) -> dict[str, int]:
    """Instructions by command line; without `children` those of the one process."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/%p"]
        if children:
            skip = ",".join(name if "*" in name else f"*/{name}" for name in COMPILERS)
            options += ["--trace-children=yes", f"--trace-children-skip={skip}"]
        done = subprocess.run(
            ["valgrind", *options, *command], env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)}\nunder valgrind: {(done.stdout + done.stderr)[-2000:]}"
            )
        found: dict[str, int] = {}
        for path in Path(folder).iterdir():
            text = path.read_text(errors="replace")
            line = re.search(r"^cmd: (.*)$", text, re.MULTILINE)
            total = re.search(r"^summary: (\d+)", text, re.MULTILINE)
            if line and total:
                count = int(total.group(1)) - by_address(text)
                found[line.group(1)] = found.get(line.group(1), 0) + count
    if not found:
        raise RuntimeError(f"{' '.join(command)}: valgrind counted nothing")
    return found


def by_address(text: str) -> int:
    """Instructions of what depends on where types lie in memory: torch finds a type by a table with
    its address as key, and how many others share the place there changes from run to run by up to
    two percent of a call."""
    total = 0
    for block in text.split("\nfn=")[1:]:
        name, _, lines = block.partition("\n")
        if "all_type_info_get_cache" in name:
            total += sum(int(count) for count in re.findall(r"^\d+ (\d+)", lines, re.MULTILINE))
    return total


def python() -> str:
    return os.environ.get("KILN_PYTHON", sys.executable)


def count_calls(stage: Stage, calls: int) -> dict[str, float]:
    """Instructions of one call, each way."""
    libraries = libraries_of(stage)
    environment = stage.environment(stage.scratch / "warm") | stage.for_torch

    def run(*counts: int) -> int:
        command = [python(), str(SOURCES.parent / "count_calls.py"), *libraries, *map(str, counts)]
        return sum(counted(command, environment).values())

    first = [calls] * len(CALLS)
    base = run(*first)
    found = {}
    for number, way in enumerate(CALLS):
        more = list(first)
        more[number] *= 2
        found[way] = (run(*more) - base) / calls
    return found


def libraries_of(stage: Stage) -> list[str]:
    """Path and namespace of the two libraries that this stage builds."""
    words = []
    for name in ("noop.cu", "add_kiln.cu"):
        cache = stage.scratch / "warm"
        done = subprocess.run(
            [*stage.build(SOURCES / name, cache), "--json"],
            env=stage.environment(cache), capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"kiln build {name}: {done.stdout}{done.stderr}")
        told = json.loads(done.stdout)
        words += [told["library"], told["name"]]
    return words


def of_kiln(stage: Stage, counts: dict[str, int]) -> int:
    return sum(
        count for command, count in counts.items() if command.split()[0].endswith("bin/kiln")
    )


def count_no_change(stage: Stage) -> int:
    cache = stage.scratch / "warm"
    command = stage.build(SOURCES / "add_kiln.cu", cache)
    environment = stage.environment(cache)
    # valgrind preloads a library, and LD_PRELOAD is in the key: a build without it is another one.
    seconds_of(command, environment)
    counted(command, environment)
    return of_kiln(stage, counted(command, environment))


def count_cold(stage: Stage) -> int:
    with tempfile.TemporaryDirectory(dir=stage.scratch) as folder:
        command = stage.build(SOURCES / "add_kiln.cu", Path(folder))
        return of_kiln(stage, counted(command, stage.environment(Path(folder)), children=True))


def count_all(stage: Stage, calls: int, parts: list[str]) -> dict[str, float]:
    found: dict[str, float] = count_calls(stage, calls) if "calls" in parts else {}
    if "no-change" in parts:
        found[NO_CHANGE] = count_no_change(stage)
    if "cold" in parts:
        # Which process waits how often for another is not the same in each run.
        found[COLD] = median(count_cold(stage) for _ in range(3))
    return found


# ---- timing ------------------------------------------------------------------------------------


def seconds_of_calls(stage: Stage) -> dict[str, float]:
    """Of one call each way, in one process."""
    done = subprocess.run(
        [python(), str(SOURCES.parent / "calls.py"), "host", *libraries_of(stage)[:2]],
        env=stage.environment(stage.scratch / "warm"),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    samples = json.loads(done.stdout.splitlines()[-1])
    return {CALLS[0]: median(samples["torch.ops"]), CALLS[1]: median(samples["kiln"])}


def seconds_of_cold(stage: Stage) -> float:
    with tempfile.TemporaryDirectory(dir=stage.scratch) as folder:
        return seconds_of(
            stage.build(SOURCES / "add_kiln.cu", Path(folder)), stage.environment(Path(folder))
        )


def seconds_of_no_change(stage: Stage) -> float:
    cache = stage.scratch / "warm"
    return seconds_of(stage.build(SOURCES / "add_kiln.cu", cache), stage.environment(cache))


def timed(stages: list[Stage], pairs: int) -> Times:
    found: Times = {way: {stage.name: [] for stage in stages} for way in CALLS[:2]}
    for _ in range(pairs):
        for stage in stages:
            for way, seconds in seconds_of_calls(stage).items():
                found[way][stage.name].append(seconds)
    for what, way in ((NO_CHANGE, seconds_of_no_change), ("cold `kiln build`", seconds_of_cold)):
        ways = {stage.name: lambda stage=stage, way=way: way(stage) for stage in stages}
        found[what] = in_turns(ways, pairs)
    return found


# ---- what is shown -----------------------------------------------------------------------------


def verdict(what: str, value: float) -> str:
    if what not in BARS:
        return "not judged"
    return "holds" if value <= BARS[what] else "OVER"


def readable(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def markdown(counts: Counts, times: Times, names: list[str], facts: dict[str, str]) -> str:
    lines = ["# Instructions", ""]
    lines += [
        "Written by `make instructions-bars BASE=STAGE`: instructions as cachegrind counts them,"
    ]
    lines += ["before and after. A call is the difference of two runs; a cold build is kiln's own"]
    lines += ["processes alone.", ""]
    lines += ["| what | before | after | ratio | bar | |", "|---|---:|---:|---:|---:|---|"]
    for what, before in counts["before"].items():
        after = counts["after"][what]
        bar = f"{BARS[what]:.2f}" if what in BARS else ""
        share = f"{after / before:.4f} | {bar} | {verdict(what, after / before)}"
        lines.append(f"| {what} | {before:,.0f} | {after:,.0f} | {share} |")
    if times:
        pairs = len(next(iter(times.values()))["before"])
        lines += [
            "",
            f"Medians of {pairs} timed pairs, taken in turns; the ratio is the median over pairs.",
        ]
        lines += ["Not judged: other programs may have run beside.", ""]
        lines += ["| what | before | after | ratio | quartiles |", "|---|---:|---:|---:|---|"]
    for what, samples in times.items():
        ratios = [after / before for before, after in zip(samples["before"], samples["after"])]
        low, middle, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        both = " | ".join(readable(median(samples[name])) for name in ("before", "after"))
        lines.append(f"| {what} | {both} | {middle:.3f} | {low:.3f} to {high:.3f} |")
    lines += ["", "| machine | |", "|---|---|", f"| before, after | {names[0]}, {names[1]} |"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Instructions of calls and builds, of two stages.")
    add = parser.add_argument
    add("base", type=Path, metavar="BASE", help="the stage to compare with")
    add("--stage", type=Path, default=ROOT / "build/release/stage", help="the stage to judge")
    add("--names", nargs=2, default=["BASE", "this build"], metavar="NAME", help="for the page")
    add("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to count (all)")
    add("--calls", type=int, default=4000, metavar="N", help="calls per run (4000)")
    add("--pairs", type=int, default=20, metavar="N", help="timed pairs; 0: no times (20)")
    add("--base-counts", type=Path, metavar="FILE", help="counts of BASE: read, or written there")
    add("--write", type=Path, metavar="DIR", help="write instructions.md there")
    return parser.parse_args()


def fail(what: str, why: str, fix: str, status: int) -> int:
    print(f"error: {what}\n  why: {why}\n  fix: {fix}", file=sys.stderr)
    return status


def stages_in(scratch: Path, given: argparse.Namespace) -> list[Stage]:
    """Copies in paths of one length: that of a path is in every count."""
    for_torch = hidden_frames.environment(scratch) if "calls" in given.parts else {}
    stages = []
    for name, folder in (("before", given.base), ("after", given.stage)):
        home = scratch / name[:1]
        shutil.copytree(folder, home / "stage", symlinks=True)
        stages.append(Stage(name, home / "stage", home, for_torch))
    return stages


def count_both(stages: list[Stage], given: argparse.Namespace) -> Counts:
    file = given.base_counts
    known = json.loads(file.read_text()) if file and file.is_file() else None
    with ThreadPoolExecutor(2) as pool:
        after = pool.submit(count_all, stages[1], given.calls, given.parts)
        before = known or count_all(stages[0], given.calls, given.parts)
    if file and not known:
        file.write_text(json.dumps(before, indent=1) + "\n")
    return {"before": before, "after": after.result()}


def main() -> int:
    given = arguments()
    if not shutil.which("valgrind"):
        return fail("no valgrind", "it is not in PATH", "tools/bootstrap test", 3)
    if not (given.base / "kiln/bin/kiln").is_file():
        why, fix = "it has no kiln/bin/kiln", "BASE=<another tree>/build/release/stage"
        return fail(f"cannot compare with {given.base}", why, fix, 2)
    facts = machine()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="instructions.") as scratch:
        stages = stages_in(Path(scratch), given)
        counts = count_both(stages, given)
        times = timed(stages, given.pairs) if given.pairs else {}
    page = markdown(counts, times, given.names, facts)
    print(page)
    if given.write:
        (given.write / "instructions.md").write_text(page)
    ratios = {what: after / counts["before"][what] for what, after in counts["after"].items()}
    over = [what for what, value in ratios.items() if verdict(what, value) == "OVER"]
    print(f"{len(over)} over their bar{': ' if over else ''}{', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
