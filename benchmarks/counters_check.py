#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do kiln's counters equal those of Nsight Compute on a GPU?

  benchmarks/counters_check.py ncu OUT [SECONDS [PROGRAM...]]
                                             build the programs with nvcc, run them under ncu
  benchmarks/counters_check.py engine OUT [SECONDS [PROGRAM...]]
                                             build them with kiln, count on the engine
  benchmarks/counters_check.py compare OUT   compare the two; writes OUT/counters.md and .json
  benchmarks/counters_check.py all OUT [SECONDS]
                                             the first two beside each other, then the third, in at
                                             most SECONDS (450): what has not run by then is named
  benchmarks/counters_check.py carry FOLDER  choose the public programs from a checkout of HeCBench

Programs: tests/gpu/counters/*.cu, whose kernels run once each; and public ones, in
.carry/counters-src. The rule for these: of HeCBench in tools/programs.json, by name, the first 20
that pass on the engine in at most 5 s of CPU time with arguments alone (no files, flags or changed
sizes; docs/results/programs.json). Of each the first 12 launches count. The first two parts may run
on different machines: OUT/ncu.json and OUT/engine.json are all that the third one reads.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import counters_ncu
from counters_ncu import limited, replace_text

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests/gpu/counters"
PUBLIC = ROOT / ".carry/counters-src"
OWN = ("global_patterns", "shared_patterns", "shared_wide", "large")
# Written after the rules of the counters, and kept out of them.
UNSEEN = ("unseen", "unseen_kinds")
# Variants of one kernel each: is the predicted order the measured one?
SPACES = (
    "space_fa_s512",
    "space_transpose",
    "space_reduction",
    "space_matmul",
    "space_softmax",
)
SLOW_ON_ENGINE = ("space_fa_s512", "all-pairs-distance", "shared_patterns", "blockScan")
PUBLIC_COUNT, MOST_CPU_SECONDS = 20, 5
MOST_LAUNCHES = 12  # of a public program: the first ones

# What must be equal. The rest is modelled, or only to look at.
EQUAL = (
    counters_ncu.MEMORY + counters_ncu.SASS_EQUAL + counters_ncu.BRANCHES + counters_ncu.FROM_LAUNCH
)


def own(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "sources": [SOURCES / f"{name}.cu"],
        "arguments": [],
        "include": [str(ROOT / "runtime/include")],
        "repeat": name in SPACES or name == "large",
    }


def programs() -> list[dict[str, Any]]:
    """Name, sources, arguments."""
    found = [own(name) for name in (*UNSEEN, *OWN)]
    listed = PUBLIC / "list.json"
    for one in json.loads(listed.read_text()) if listed.exists() else []:
        folder = PUBLIC / one["name"]
        found.append(
            {
                "name": one["name"],
                "sources": [folder / each for each in one["sources"]],
                "arguments": one["arguments"],
                "include": [str(folder / each) for each in one.get("include", [])],
                "defines": one.get("defines", []),
                "folder": folder,
                "public": True,
            }
        )
    return found + [own(name) for name in SPACES]


def carry(checkout: Path) -> int:
    """Copies the public programs, chosen by the rule above, to .carry/counters-src."""
    suite = json.loads((ROOT / "tools/programs.json").read_text())["suites"]["hecbench"]
    passed = json.loads((ROOT / "docs/results/programs.json").read_text())["programs"]
    chosen = []
    for one in sorted(passed, key=lambda each: each["program"]):
        spec = suite["programs"].get(one["program"]) if one["suite"] == "hecbench" else None
        if spec is None or set(spec) - {"arguments"}:
            continue
        if one["passed"] and one["cpu_seconds"] <= MOST_CPU_SECONDS and len(chosen) < PUBLIC_COUNT:
            chosen.append((one["program"], spec["arguments"].split()))
    shutil.rmtree(PUBLIC, ignore_errors=True)
    for name, _ in chosen:
        folder = checkout / suite["folder"].format(name=name)
        shutil.copytree(folder, PUBLIC / name)
    listed = [
        {"name": name, "sources": suite["sources"], "arguments": words} for name, words in chosen
    ]
    (PUBLIC / "list.json").write_text(json.dumps(listed, indent=1))
    print("\n".join(name for name, _ in chosen))
    return 0


def by_ncu(out: Path, deadline: float, only: list[str]) -> int:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    built = out / "built"
    built.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in programs() if not only or one["name"] in only]

    def build(one: dict[str, Any]) -> str:
        one["built"] = built / one["name"]
        words = [nvcc, "-O3", "-std=c++17", "-lineinfo", "-arch=sm_90", "-o", one["built"]]
        words += [f"-I{each}" for each in one.get("include", [])]
        words += [f"-D{each}" for each in one.get("defines", [])]
        log, limit = built / f"{one['name']}.log", deadline - time.monotonic()
        return limited([str(w) for w in [*words, *one["sources"]]], limit, log)[0]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        builds = {one["name"]: pool.submit(build, one) for one in chosen}
        left = deadline - time.monotonic()
        result = counters_ncu.count(
            chosen, lambda one: builds[one["name"]].result(), out, left, MOST_LAUNCHES
        )
    return 1 if any("why" in found for found in result.values()) else 0


class Counting:
    """One program on the engine, until a deadline."""

    def __init__(self, one: dict[str, Any], built: Path, deadline: float) -> None:
        self.kiln = os.environ.get("KILN_BIN") or str(ROOT / "build/release/stage/kiln/bin/kiln")
        self.one, self.built, self.deadline = one, built, deadline
        self.environment = {"PATH": f"{Path(self.kiln).parent}:{os.environ['PATH']}"}

    def file(self, ending: str) -> Path:
        return self.built / f"{self.one['name']}{ending}"

    def run(self, words: list[Any], log: Path, folder: Path | None = None, **more: str) -> None:
        # Below ncu's priority, where that runs beside.
        line = ["nice", "-n", "10", *(str(word) for word in words)]
        left = self.deadline - time.monotonic()
        why = limited(line, left, log, {**self.environment, **more}, folder)[0]
        if why:
            raise RuntimeError(why[-1500:])

    def build(self) -> None:
        words = [self.kiln, "build", "--program", *self.one["sources"], "--arch", "9.0"]
        words += ["-o", self.file("")]
        words += [f"-I{each}" for each in self.one.get("include", [])]
        words += [word for each in self.one.get("defines", []) for word in ("-D", each)]
        self.run(words, self.file(".build.log"))

    def launches(self, schedule: int) -> list[dict[str, Any]]:
        counts, report = self.file(f"-{schedule}.jsonl"), self.file(f"-{schedule}.json")
        counts.unlink(missing_ok=True)
        words = [self.file(""), *self.one["arguments"]]
        settings = {"KILN_DEVICE": "engine", "KILN_ENGINE_COUNTERS": str(counts)}
        settings["KILN_ENGINE_SCHEDULE"] = str(schedule)
        self.run(words, self.file(f"-{schedule}.log"), self.one.get("folder"), **settings)
        self.run([self.kiln, "counters", counts, "--json"], report)
        text = report.read_text()
        return json.loads(text[text.index("{") :])["launches"]  # below warnings


def count_on_engine(one: dict[str, Any], built: Path, deadline: float) -> dict[str, Any]:
    """Its launches, or why there are none."""
    counting = Counting(one, built, deadline)
    try:
        counting.build()
        launches = counting.launches(0)
    except RuntimeError as error:
        return {"why": str(error)}
    keys = ("kernel", "metrics", "bound", "sass")
    kept = [{key: each[key] for key in keys if key in each} for each in launches]
    # Where the results of atomics are used, counts may depend on the order of warps: do they?
    if any(each["metrics"]["global_atom_requests"] for each in launches):
        try:
            for each, again in zip(kept, counting.launches(7)):
                values = {name: again["metrics"].get(name) for name in EQUAL}
                each["in_another_order"] = values
        except RuntimeError as error:
            print(f"{one['name']} in another order: {error}", flush=True)
    return {"launches": kept}


def by_engine(out: Path, deadline: float, only: list[str]) -> int:
    built = out / "engine-built"
    built.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {}
    known = out / "engine.json"
    if only and known.exists():
        result = json.loads(known.read_text())
    guard = threading.Lock()

    def work(one: dict[str, Any]) -> None:
        begin = time.monotonic()
        found = count_on_engine(one, built, deadline)
        with guard:
            result[one["name"]] = found
            replace_text(known, json.dumps(result, indent=1))
        count, seconds = len(found.get("launches", [])), time.monotonic() - begin
        print(f"engine: {one['name']}: {count} launches, {seconds:.0f} s", flush=True)

    # The one that takes longest begins first. An engine has a thread per core, but not all the
    # time: a few programs beside each other keep a large machine busy.
    chosen = [one for one in programs() if not only or one["name"] in only]
    chosen.sort(key=lambda one: one["name"] not in SLOW_ON_ENGINE)
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 3)) as pool:
        list(pool.map(work, chosen))
    return 0


def both(out: Path, seconds: float) -> int:
    deadline = time.monotonic() + seconds - 15  # the comparison takes a few of them
    engine = threading.Thread(target=by_engine, args=(out, deadline, []))
    engine.start()
    code = by_ncu(out, deadline, [])
    engine.join()
    return code


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "carry":
        return carry(Path(sys.argv[2]))
    if len(sys.argv) < 3 or sys.argv[1] not in ("ncu", "engine", "compare", "all"):
        print(__doc__, file=sys.stderr)
        return 2
    what, out = sys.argv[1], Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    unlimited = 450.0 if what in ("ncu", "all") else 86400.0
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else unlimited
    code = 0
    if what == "ncu":
        code |= by_ncu(out, time.monotonic() + seconds, sys.argv[4:])
    if what == "engine":
        code |= by_engine(out, time.monotonic() + seconds, sys.argv[4:])
    if what == "all":
        code |= both(out, seconds)
    if what in ("compare", "all"):
        import counters_page

        code |= counters_page.compare(out)
    return code


if __name__ == "__main__":
    sys.exit(main())
