# SPDX-License-Identifier: Apache-2.0
"""What does Nsight Compute count for a program? One run of ncu per program, the most telling
programs first, and what is known is written after each run: a check that is cut off loses its tail
alone.

All metrics are asked for in one run, since the start of ncu and of the program costs more than the
passes over a kernel. Where that does not work on a machine, groups of metrics are tried apart.
"""

from __future__ import annotations

import contextlib
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
from typing import Any, Callable, NamedTuple

L1 = "l1tex__{}_pipe_lsu_mem_{}_op_{}.sum"
L1_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
FROM_LAUNCH = ["launch__registers_per_thread", "sm__maximum_warps_per_active_cycle_pct"]
MEMORY = [
    *(L1.format("t_requests", "global", op) for op in ("ld", "st", "atom", "red")),
    *(L1.format("t_sectors", "global", op) for op in ("ld", "st")),
    *(L1.format("data_bank_conflicts", "shared", op) for op in ("ld", "st")),
    *(L1_PASSES.format(op) for op in ("ld", "st")),
]
BRANCHES = ["smsp__sass_branch_targets_threads_divergent.sum"]
# The counters of L1 above add what waits for other traffic, and differ from run to run. ncu's
# source page has its own count of passes, made by patching SASS: that one is exact.
SASS_PASSES = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
SASS_EQUAL = [SASS_PASSES.format(op) for op in ("ld", "st")]
SASS = [*BRANCHES, *SASS_EQUAL]
TIMES = [
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
]
ALL = MEMORY + SASS + TIMES + FROM_LAUNCH
NOISY = [name for name in MEMORY if "shared" in name]


class Group(NamedTuple):
    name: str
    metrics: list[str]
    options: list[str]
    suffix: str = ""  # of the metrics' names: one more run of the same


# Times and DRAM bytes are those of cold caches; nothing else depends on them. Clocks stay as they
# are for users: a bound has to hold at the clock that a GPU reaches.
NO_FLUSH = ["--clock-control", "none", "--cache-control", "none"]
FLUSH = ["--clock-control", "none", "--cache-control", "all"]
WHOLE = Group("whole", ALL, FLUSH)
APART = [
    Group("memory", MEMORY + FROM_LAUNCH, NO_FLUSH),
    Group("sass", SASS, NO_FLUSH),
    Group("times", TIMES, FLUSH),
]
# How much do the counters of L1 differ from run to run?
SECOND = Group("second", NOISY, NO_FLUSH, "#2")
PROBE_S = 30.0  # for one launch with the metrics of a group
RUN_S = 60.0
LAUNCHES = 64  # of one run
TOO_SLOW_S = 8.0  # per launch: the rest of the program is left out


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


def limited(
    words: list[str],
    seconds: float,
    log: Path,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[str, float]:
    """Runs a command; why it failed, or nothing, and how long it took. Its output goes to a file:
    a child that outlives it would hold a pipe open. `timeout` ends it even when this process is
    itself ended meanwhile."""
    if seconds < 1:
        return "no time left", 0.0
    begin = time.monotonic()
    with log.open("wb") as output:
        job = subprocess.Popen(
            ["timeout", "-k", "3", f"{seconds:.0f}", *words],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = job.wait(timeout=seconds + 6)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    took = time.monotonic() - begin
    if status == 0:
        return "", took
    if status in (124, 137, -signal.SIGKILL):
        return f"stopped after {seconds:.0f} s", took
    return f"exit status {status}: {log.read_text(errors='replace')[-800:]}", took


class Ncu:
    """Runs ncu with a limit; keeps what it printed in OUT/ncu-logs."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.program = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
        self.logs = out / "ncu-logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + seconds

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
        # ncu locks a file in TMPDIR, which a program left over from a stopped run would hold.
        with tempfile.TemporaryDirectory() as scratch:
            more = {"TMPDIR": scratch}
            said, seconds = limited(words, limit, log.with_suffix(".out"), more, one.get("folder"))
        found = rows_of(log.read_text(errors="replace"), group.suffix) if log.exists() else []
        return found, seconds, "" if found else said or "no launches"


def keep(result: dict[str, Any], first: int, rows: list[dict[str, Any]]) -> None:
    launches = result.setdefault("launches", [])
    for i, row in enumerate(rows, first):
        if i < len(launches):
            launches[i]["metrics"].update(row["metrics"])
        elif i == len(launches):
            launches.append(row)


def works(ncu: Ncu, one: dict[str, Any], group: Group) -> bool:
    rows, took, why = ncu.run(one, group, 0, 1, min(PROBE_S, ncu.left()))
    print(f"probe of {group.name}: {len(rows)} launches, {took:.1f} s {why}", flush=True)
    return bool(rows)


def usable(ncu: Ncu, one: dict[str, Any]) -> list[Group]:
    """The groups that work on this machine, by one launch each."""
    if works(ncu, one, WHOLE):
        return [WHOLE]
    return [group for group in APART if works(ncu, one, group)]


def count(
    jobs: list[dict[str, Any]],
    ready: Callable[[dict[str, Any]], str],
    out: Path,
    seconds: float,
    most: int,
) -> dict[str, Any]:
    """Of each program {launches: [{kernel, metrics}]}, {missing} or {why}. `ready` waits until a
    program is built, and says why it is not; `most`: launches of a public program."""
    ncu = Ncu(out, seconds)
    result: dict[str, Any] = {}
    groups: list[Group] = []
    for one in jobs:
        why = ready(one)
        if why:
            result[one["name"]] = {"why": why}
            print(f"{one['name']}: not built: {why}", flush=True)
            continue
        groups = groups or usable(ncu, one)
        for group in groups:
            collect(ncu, one, group, most, result.setdefault(one["name"], {}))
            replace_text(out / "ncu.json", json.dumps(result, indent=1))
    for one in jobs:
        if one.get("repeat") and "launches" in result.get(one["name"], {}) and ncu.left() > 10:
            collect(ncu, one, SECOND, most, result[one["name"]])
    replace_text(out / "ncu.json", json.dumps(result, indent=1))
    return result


def replace_text(path: Path, text: str) -> None:
    """In whole: who reads it meanwhile, or ends this process, finds no half of a file."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


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
