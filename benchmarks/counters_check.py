#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do kiln's counters equal those of Nsight Compute on a GPU?

  benchmarks/counters_check.py ncu OUT [SECONDS [--groups GROUPS] [PROGRAM...]]
                                             build the programs with nvcc, run them under ncu for
                                             at most SECONDS (330); GROUPS of metrics, as
                                             memory,sass=unseen+large,times
  benchmarks/counters_check.py engine OUT    build them with kiln, count on the engine
  benchmarks/counters_check.py compare OUT   compare the two; writes OUT/counters.md and .json
  benchmarks/counters_check.py all OUT       one after the other
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
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import counters_ncu

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests/gpu/counters"
PUBLIC = ROOT / ".carry/counters-src"
OWN = ("global_patterns", "shared_patterns", "shared_wide", "large")
# Written after the rules of the counters, and kept out of them.
UNSEEN = ("unseen",)
# Variants of one kernel each: is the predicted order the measured one?
SPACES = (
    "space_fa_s512",
    "space_transpose",
    "space_reduction",
    "space_matmul",
    "space_softmax",
)
PUBLIC_COUNT, MOST_CPU_SECONDS = 20, 5
MOST_LAUNCHES = 12  # of a public program: the first ones

# What must be equal. The rest is modelled, or only to look at.
EQUAL = (
    counters_ncu.MEMORY + counters_ncu.SASS_EQUAL + counters_ncu.BRANCHES + counters_ncu.FROM_LAUNCH
)


def run(command: list[Any], env: dict[str, str] | None = None, **more: Any) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env={**os.environ, **(env or {})}, capture_output=True, text=True, **more
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


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


def by_ncu(out: Path, seconds: float, only: list[str]) -> int:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    built = out / "built"
    built.mkdir(parents=True, exist_ok=True)
    plan = None
    if only[:1] == ["--groups"]:
        plan, only = counters_ncu.read_plan(only[1]), only[2:]
    jobs = []
    for one in programs():
        if only and one["name"] not in only:
            continue
        one["built"] = built / one["name"]
        words = [nvcc, "-O3", "-std=c++17", "-lineinfo", "-arch=sm_90", "-o", one["built"]]
        words += [f"-I{each}" for each in one.get("include", [])]
        words += [f"-D{each}" for each in one.get("defines", [])]
        jobs.append((one, subprocess.Popen([str(w) for w in [*words, *one["sources"]]])))
    failed = {one["name"]: {"why": "nvcc failed"} for one, job in jobs if job.wait()}
    good = [one for one, job in jobs if not job.returncode]
    result = {**failed, **counters_ncu.count(good, out, seconds, MOST_LAUNCHES, plan)}
    (out / "ncu.json").write_text(json.dumps(result, indent=1))
    return 1 if failed else 0


def by_engine(out: Path) -> int:
    kiln = os.environ.get("KILN_BIN") or str(ROOT / "build/release/stage/kiln/bin/kiln")
    built = out / "engine-built"
    built.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {}
    for one in programs():
        begin = time.monotonic()
        program, counts = built / one["name"], built / f"{one['name']}.jsonl"
        build = [kiln, "build", "--program", *one["sources"], "--arch", "9.0", "-o", program]
        build += [f"-I{each}" for each in one.get("include", [])]
        build += [word for each in one.get("defines", []) for word in ("-D", each)]
        try:
            run(build)
            env = {"KILN_DEVICE": "engine", "KILN_ENGINE_COUNTERS": str(counts)}
            env["PATH"] = f"{Path(kiln).parent}:{os.environ['PATH']}"
            run([program, *one["arguments"]], env, cwd=one.get("folder"), timeout=900)
            report = json.loads(run([kiln, "counters", counts, "--json"]))
            result[one["name"]] = {
                "launches": [
                    {"kernel": each["kernel"], "metrics": each["metrics"], "bound": each["bound"]}
                    for each in report["launches"]
                ]
            }
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            result[one["name"]] = {"why": str(error)[-1500:]}
        count = len(result[one["name"]].get("launches", []))
        print(f"{one['name']}: {count} launches, {time.monotonic() - begin:.0f} s", flush=True)
        (out / "engine.json").write_text(json.dumps(result, indent=1))
    return 0


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "carry":
        return carry(Path(sys.argv[2]))
    if len(sys.argv) < 3 or sys.argv[1] not in ("ncu", "engine", "compare", "all"):
        print(__doc__, file=sys.stderr)
        return 2
    what, out = sys.argv[1], Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    code = 0
    if what in ("ncu", "all"):
        code |= by_ncu(out, float(sys.argv[3]) if len(sys.argv) > 3 else 330.0, sys.argv[4:])
    if what in ("engine", "all"):
        code |= by_engine(out)
    if what in ("compare", "all"):
        import counters_page

        code |= counters_page.compare(out)
    return code


if __name__ == "__main__":
    sys.exit(main())
