# SPDX-License-Identifier: Apache-2.0
"""What does Nsight Compute count for a program? In several short runs, so that what is slow on a
machine costs its own numbers alone.

One run with all metrics needs many passes over each kernel and prints nothing before the last one
has ended. Here each group of metrics is tried on one launch first. Groups that take too long are
left out, and each run has a few launches, so that a run that is stopped loses only those.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

L1 = "l1tex__{}_pipe_lsu_mem_{}_op_{}.sum"
FROM_LAUNCH = ["launch__registers_per_thread", "sm__maximum_warps_per_active_cycle_pct"]
MEMORY = [
    *(L1.format("t_requests", "global", op) for op in ("ld", "st", "atom", "red")),
    *(L1.format("t_sectors", "global", op) for op in ("ld", "st")),
    *(L1.format("data_bank_conflicts", "shared", op) for op in ("ld", "st")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")),
]
BRANCHES = ["smsp__sass_branch_targets_threads_divergent.sum"]
# The counters of L1 above add what waits for other traffic, and differ from run to run. ncu's
# source page has its own count of passes, made by patching SASS: that one is exact.
SASS_PASSES = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
SASS_EQUAL = [SASS_PASSES.format(op) for op in ("ld", "st")]
SASS = [
    *BRANCHES,
    *SASS_EQUAL,
    *(SASS_PASSES.format(op) for op in ("ldsm", "ldgsts", "atom")),
    *(f"smsp__sass_inst_executed_op_shared_{op}.sum" for op in ("ld", "st")),
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared.sum",
    *(
        f"smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"
        for op in ("ld", "st", "ldsm")
    ),
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
]
TIMES = [
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
]
ONLY_SHOWN = [
    *(L1.format("t_sectors", "global", op) for op in ("atom", "red")),
    "smsp__inst_executed.sum",
    "smsp__sass_branch_targets.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
]
ALL = MEMORY + SASS + TIMES + ONLY_SHOWN + FROM_LAUNCH
NOISY = [name for name in MEMORY if "shared" in name]


class Group(NamedTuple):
    name: str
    metrics: list[str]
    options: list[str]
    suffix: str = ""  # of the metrics' names: one more run of the same


# Times and DRAM bytes are those of cold caches; nothing else depends on them. Clocks stay as they
# are for users: a bound has to hold at the clock that a GPU reaches.
NO_FLUSH = ["--clock-control", "none", "--cache-control", "none"]
GROUPS = [
    Group("memory", MEMORY + FROM_LAUNCH, NO_FLUSH),
    Group("sass", SASS, NO_FLUSH),
    Group("times", TIMES + ONLY_SHOWN, ["--clock-control", "none", "--cache-control", "all"]),
    # How much do the counters of L1 differ from run to run?
    Group("second", NOISY, NO_FLUSH, "#2"),
    Group("third", NOISY, NO_FLUSH, "#3"),
]
PROBE_S = 45.0  # for one launch with the metrics of a group
RUN_S = 60.0
LAUNCHES = 48  # of one run
TOO_SLOW_S = 8.0  # per launch: such a group is left out


def rows_of(text: str, suffix: str = "") -> list[dict[str, Any]]:
    """Launches in order, of `ncu --csv --page raw`: a row each, below a row of units."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    launches = []
    for row in list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))[1:]:
        numbers = {}
        for name in ALL:
            try:
                numbers[name + suffix] = float((row.get(name) or "").replace(",", ""))
            except ValueError:
                continue
        launches.append({"kernel": row.get("Kernel Name", ""), "metrics": numbers})
    return launches


class Ncu:
    """Runs ncu with a limit; keeps what it printed in OUT/ncu-logs."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.program = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
        self.logs = out / "ncu-logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + seconds

    def known(self, metrics: list[str]) -> list[str]:
        """Those that this ncu has for an H200: one unknown name would end a run. Metrics of the
        source page are not in its list."""
        words = [self.program, "--query-metrics", "--chip", "gh100"]
        try:
            text = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
        except (OSError, subprocess.TimeoutExpired):
            return metrics
        (self.logs / "metrics.txt").write_text(text)
        names = {line.split()[0] for line in text.splitlines() if line.strip()}
        if "smsp__inst_executed" not in names:
            return metrics
        return [m for m in metrics if m.split(".")[0] in names or not m.startswith("smsp__sass")]

    def left(self) -> float:
        return self.end - time.monotonic()

    def run(
        self, one: dict[str, Any], group: Group, first: int, count: int, limit: float
    ) -> tuple[list[dict[str, Any]], float, str]:
        """Launches, seconds, and why there are none."""
        log = self.logs / f"{one['name']}-{group.name}-{first}.txt"
        words = [self.program, "--csv", "--page", "raw", "--print-units", "base"]
        words += ["--log-file", str(log), "--metrics", ",".join(group.metrics), *group.options]
        words += ["--launch-skip", str(first), "--launch-count", str(count)]
        words += [str(one["built"]), *one["arguments"]]
        begin = time.monotonic()
        # ncu locks a file in TMPDIR, which a program left over from a stopped run would hold.
        with tempfile.TemporaryDirectory() as scratch:
            job = subprocess.Popen(
                words,
                cwd=one.get("folder"),
                env={**os.environ, "TMPDIR": scratch},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
                errors="replace",
            )
            why = ""
            try:
                text, _ = job.communicate(timeout=max(limit, 1.0))
                why = text[-800:] if job.returncode else ""
            except subprocess.TimeoutExpired:
                why = f"stopped after {limit:.0f} s"
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        found = rows_of(log.read_text(errors="replace"), group.suffix) if log.exists() else []
        return found, time.monotonic() - begin, "" if found else why or "no launches"


def keep(result: dict[str, Any], first: int, rows: list[dict[str, Any]]) -> None:
    launches = result.setdefault("launches", [])
    for i, row in enumerate(rows, first):
        if i < len(launches):
            launches[i]["metrics"].update(row["metrics"])
        elif i == len(launches):
            launches.append(row)


def usable(ncu: Ncu, one: dict[str, Any], group: Group) -> list[Group]:
    """The group as it works on this machine, by one launch: by replay of kernels, else of the
    program; none where neither works."""
    group = group._replace(
        metrics=ncu.known(group.metrics) if group.name == "sass" else group.metrics
    )
    plain = group._replace(metrics=[m for m in group.metrics if not m.startswith("memory_")])
    whole = plain._replace(options=[*group.options, "--replay-mode", "application"])
    for way in (group, plain, whole):
        rows, took, why = ncu.run(one, way, 0, 1, min(PROBE_S, ncu.left()))
        print(f"probe of {group.name}: {len(rows)} launches, {took:.1f} s {why}", flush=True)
        if rows:
            return [way]
    return []


# Which programs a group runs; groups that are not in it run none, an empty list means all.
Plan = dict[str, list[str]]


def read_plan(text: str) -> Plan:
    """Of "memory,sass=unseen+large": the group memory of all programs, sass of two."""
    plan: Plan = {}
    for word in text.split(","):
        name, _, programs = word.partition("=")
        plan[name] = programs.split("+") if programs else []
    return plan


def count(
    jobs: list[dict[str, Any]], out: Path, seconds: float, most: int, plan: Plan | None = None
) -> dict[str, Any]:
    """Of each program {launches: [{kernel, metrics}]} or {why}. `most`: of a public program."""
    ncu = Ncu(out, seconds)
    result: dict[str, Any] = {}
    wanted = [each for each in GROUPS if plan is None or each.name in plan]
    for group in [one for each in wanted for one in usable(ncu, jobs[0], each)]:
        named = (plan or {}).get(group.name)
        for one in jobs:
            if named and one["name"] not in named:
                continue
            if group.suffix and not named and not one.get("repeat"):
                continue
            collect(ncu, one, group, most, result.setdefault(one["name"], {}))
            (out / "ncu.json").write_text(json.dumps(result, indent=1))
    return result


def collect(ncu: Ncu, one: dict[str, Any], group: Group, most: int, into: dict[str, Any]) -> None:
    first, begin, why = 0, time.monotonic(), ""
    while ncu.left() > 5:
        wanted = min(LAUNCHES, most - first) if one.get("public") else LAUNCHES
        if wanted <= 0:
            break
        rows, took, why = ncu.run(one, group, first, wanted, min(RUN_S, ncu.left()))
        keep(into, first, rows)
        first += len(rows)
        if len(rows) < wanted or took / wanted > TOO_SLOW_S:
            break
    seconds = time.monotonic() - begin
    print(f"{one['name']} {group.name}: {first} launches, {seconds:.0f} s {why}", flush=True)
    if not first:
        into.setdefault("missing", {})[group.name] = why or "no time left"
