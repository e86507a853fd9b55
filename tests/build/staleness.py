#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what an incremental build gives ever older than its sources? Random edits; the oracle is a
clean nvcc build of each state.

    staleness.py KILN [--edits 1000] [--seed 0] [--jobs 1] [--real-headers] [--slice]
        [--conditions] [--two-sources] [--kill] [--bias 1]
    staleness.py KILN --plan [--count 5000] [--jobs 16] [--seed 0] [--log FILE]

Two checkouts of one project, built by kiln after every edit in the same folders with the same
cache. Of both builds what the host says and the PTX of every kernel are compared. Edits
(staleness_project.py): comments and comment lines, device body, host body, header, define, flag,
environment flags, run path, option files of nvcc and of the host compiler, -include, a file that
asm() reads, bodies of device functions that a declaration elsewhere makes the host's too, macros
and pragmas in a kernel that reach the text behind it, a library and one that shadows it, the host
compiler swapped at its path with size and time kept, a header that shadows another one,
__has_include, branches under __CUDA_ARCH__ and #ifndef __CUDA_ARCH__, a define that holds the
checkout's path, the other checkout, a moved one, library or program. Without --real-headers a small
cuda_runtime.h stands in, which makes a compile four times as fast. --slice has real headers, more
edits of the kernel, and nothing that keeps NVRTC from compiling its slice; --conditions adds what
NVRTC understands otherwise than nvcc. --two-sources has a second kernel in a file of its own.
--bias edits device code that many times as often. --kill ends every build at a random moment with
SIGKILL first; what was edited is then built, or edited further, or taken back; --edits then counts
the builds that were killed before their end. --jobs share the edits, each with a seed of its own.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from staleness_project import Project, State

EDIT_LANES = ("slice", "device", "none")


@dataclass
class Tally:
    history: Counter = field(default_factory=Counter)
    lanes: Counter = field(default_factory=Counter)
    done: int = 0
    stale: int = 0
    needless: int = 0
    kills: int = 0
    after_kill: Counter = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        for name in ("done", "stale", "needless", "kills"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("history", "lanes", "after_kill"):
            getattr(self, name).update(getattr(other, name))

    def by_edit_lane(self) -> int:
        return sum(self.lanes[lane] for lane in EDIT_LANES)


def kill_a_build(
    project: Project, state: State, former: State, dice: random.Random, tally: Tally
) -> State:
    """What is to be built after it: the same, something else too, or what was there before."""
    # By one of the last builds' times and not by the longest: on a busy machine most would end
    # before that.
    tally.kills += project.killed(state, dice.uniform(0, dice.choice(project.lately)))
    then = dice.choice(["the same", "edited further", "taken back"])
    tally.after_kill[then] += 1
    if then == "edited further":
        state.edit(dice)
    if then == "taken back":
        former.history = state.history
        state = former
        state.edit(dice)
    project.write(state)
    return state


def random_edits(given: argparse.Namespace, edits: int, seed: int) -> Tally:
    kiln, dice, tally, begun = given.kiln.resolve(), random.Random(seed), Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kiln-stale-") as folder:
        state = State(
            second=1 if given.two_sources else 0,
            simple=given.slice or given.conditions,
            bias=given.bias,
            conditions=given.conditions,
        )
        project = Project(kiln, Path(folder).resolve(), given.real_headers or state.simple)
        project.write(state)
        project.by_kiln(state)
        number = -1
        while (tally.kills if given.kill else tally.done) < edits:
            number += 1
            if given.limit and time.monotonic() - begun > given.limit:
                break
            former = copy.copy(state)
            kind = state.edit(dice)
            project.write(state)
            if given.kill:
                state = kill_a_build(project, state, former, dice, tally)
            built = project.by_kiln(state)
            tally.lanes[built["lane"]] += 1
            wanted, seen = project.by_nvcc(state), project.seen(built)
            # A comment that moves no line: no device code is compiled.
            made = [
                step
                for step in built["steps"]
                if step["cache"] == "made" and "compute_" in step["what"]
            ]
            if kind == "comment" and made and not given.kill:
                tally.needless += 1
            if seen != wanted:
                tally.stale += 1
                print(
                    f"STALE after edit {number} ({kind}, lane {built['lane']}, seed {seed}): "
                    f"{state}\n{seen}\n{wanted}",
                    flush=True,
                )
            tally.done += 1
            if tally.done % 50 == 0:
                print(
                    f"  {tally.done} edits, {tally.kills} kills, {tally.stale} stale (seed {seed})",
                    flush=True,
                )
    tally.history = state.history
    return tally


def tried(given: argparse.Namespace) -> Tally:
    """All edits of one kind of run, told in words."""
    begun, tally = time.monotonic(), Tally()
    shares = [given.edits // given.jobs + (n < given.edits % given.jobs) for n in range(given.jobs)]
    with ThreadPoolExecutor(given.jobs) as pool:
        for one in pool.map(
            lambda n: random_edits(given, shares[n], given.seed + n), range(given.jobs)
        ):
            tally.add(one)
    edits = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.history.items()))
    wanted = f"{given.edits} killed builds" if given.kill else f"{given.edits}"
    print(f"{tally.done} edits of {wanted} ({edits}) in {time.monotonic() - begun:.0f} s")
    killed = f"; {tally.kills} builds killed, then {dict(tally.after_kill)}" if given.kill else ""
    print(f"lanes: {dict(tally.lanes)}{killed}")
    print(f"{tally.stale} stale, {tally.needless} comments compiled device code", flush=True)
    return tally


# What `make test-staleness` tries: the share of the edits, and the options that differ.
PLAN = (
    (0.40, {}),
    (0.12, {"two_sources": True}),
    (0.34, {"slice": True, "bias": 6}),
    (0.06, {"conditions": True, "bias": 2}),
    (0.04, {"real_headers": True}),
    (0.04, {"kill": True}),
)


def planned(given: argparse.Namespace) -> list[argparse.Namespace]:
    runs = []
    for i, (share, more) in enumerate(PLAN):
        edits = max(1, round(share * given.count))
        runs.append(
            argparse.Namespace(
                **vars(given) | {"edits": edits, "seed": given.seed + 1000 * i} | more
            )
        )
    return runs


def write_log(given: argparse.Namespace, summary: str, total: Tally) -> None:
    kinds = "".join(
        f"| {kind.replace('_', ' ')} | {count} |\n" for kind, count in sorted(total.history.items())
    )
    given.log.write_text(
        "# Random edits against a clean nvcc build\n\n"
        f"`tests/build/staleness.py KILN --plan --count {given.count} --seed {given.seed}`, "
        f"{os.uname().machine}, "
        f"{given.jobs} at a time.\n\n{summary}\n\nLanes: "
        + ", ".join(f"{lane} {count}" for lane, count in sorted(total.lanes.items()))
        + f".\n\n| edit of | times |\n|---|---|\n{kinds}"
    )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Random edits against a clean nvcc build.")
    parser.add_argument("kiln", type=Path)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--jobs", type=int, default=0, help="builds at a time; with --plan one per core"
    )
    parser.add_argument(
        "--bias", type=int, default=1, help="edits of device code for each of another kind"
    )
    parser.add_argument("--real-headers", action="store_true")
    parser.add_argument("--slice", action="store_true")
    parser.add_argument("--conditions", action="store_true")
    parser.add_argument("--two-sources", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument(
        "--plan", action="store_true", help="edits of all kinds, killed builds among them"
    )
    parser.add_argument("--count", type=int, default=5000, help="edits of the plan")
    parser.add_argument("--log", type=Path, help="write the counts there, as Markdown")
    parser.add_argument(
        "--limit",
        type=float,
        default=0,
        metavar="SECONDS",
        help="stop after this many; tells how far",
    )
    given = parser.parse_args()
    given.jobs = given.jobs or (len(os.sched_getaffinity(0)) if given.plan else 1)
    return given


def main() -> int:
    given = parsed()
    if not shutil.which("nvcc"):
        print("error: nvcc is not on PATH\n  fix: tools/bootstrap all")
        return 3
    tallies = [tried(one) for one in (planned(given) if given.plan else [given])]
    total = Tally()
    for tally in tallies:
        total.add(tally)
    summary = (
        f"{total.done} edits, {total.by_edit_lane()} of them through the edit lane, {total.kills} "
        f"killed builds: "
        f"{total.stale} stale (seed {given.seed})"
    )
    print(summary)
    if given.log:
        write_log(given, summary, total)
    return 1 if total.stale or total.needless or any(tally.done == 0 for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
