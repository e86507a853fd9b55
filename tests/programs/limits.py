#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a program on the engine end well under limits of memory, threads and files?

  limits.py KILN [--runs N] [--write FILE]

Each kind of limit is spread over its range, from too little for the program to start to more than
it needs. A run is good when the program ends by itself with right results, or with an error that it
prints. A hang, a signal, or a wrong result after calls that all succeeded is a failure.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_S = 180
STRANGER = 54321  # a user who runs nothing else: the limit of processes counts all of a user's
THREADS = 8  # that the engine would like

PRELOAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
  static int left = -1;
  if (left == -1) left = atoi(getenv("THREADS_LEFT"));
  if (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) <= 0) {
    __atomic_store_n(&left, 0, __ATOMIC_RELAXED);
    return EAGAIN;
  }
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) =
      dlsym(RTLD_NEXT, "pthread_create");
  return real(t, a, f, x);
}
"""


@dataclass
class Kind:
    name: str
    unit: str
    values: list[int]
    restrict: Callable[[int], None]  # in the child, before the program
    environment: Callable[[int], dict[str, str]]


def spread(first: int, last: int, runs: int) -> list[int]:
    return [first + (last - first) * i // max(runs - 1, 1) for i in range(runs)]


def limit_memory(megabytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def limit_files(files: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def limit_processes(processes: int) -> None:
    """Root has no such limit."""
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def kinds(runs: int, folder: Path) -> list[Kind]:
    nothing: dict[str, str] = {}
    out = [
        Kind("memory", "MB", spread(8, 1200, runs), limit_memory, lambda _: nothing),
        Kind("files", "open files", spread(1, 40, runs), limit_files, lambda _: nothing),
    ]
    preload = folder / "threads.so"
    source = folder / "threads.c"
    source.write_text(PRELOAD)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", preload, source, "-ldl"], check=True)

    def preloaded(threads: int) -> dict[str, str]:
        return {"LD_PRELOAD": str(preload), "THREADS_LEFT": str(threads)}

    if os.geteuid() == 0:
        half = runs // 2
        out.append(
            Kind(
                "processes",
                "processes of the user",
                spread(1, 14, runs - half),
                limit_processes,
                lambda _: nothing,
            )
        )
        runs = half
    out.append(
        Kind("threads", "threads that can be made", spread(0, 12, runs), lambda _: None, preloaded)
    )
    return out


def outcome(program: Path, kind: Kind, value: int, environment: dict[str, str]) -> tuple[str, str]:
    """What happened, in a word, and what the program printed. Words in capitals are failures."""
    environment = environment | kind.environment(value)
    try:
        done = subprocess.run(
            [program],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            preexec_fn=lambda: kind.restrict(value),
        )
    except subprocess.TimeoutExpired:
        return "HANG", ""
    except (OSError, subprocess.SubprocessError) as error:  # it could not be started at all
        return "not started", str(error)
    text = done.stdout + done.stderr
    if done.returncode == 0:
        return ("right", text) if "right" in done.stdout else ("NO RESULT", text)
    if done.returncode < 0:
        return f"SIGNAL {-done.returncode}", text
    if done.returncode == 4:
        return "WRONG", text
    if "ABORT" in text or "terminate called" in text:
        return "ABORTED", text
    if not done.stderr.strip():
        return "SILENT", text
    return "refused", text


def run_kind(program: Path, kind: Kind, environment: dict[str, str]) -> tuple[str, int]:
    counts: collections.Counter[str] = collections.Counter()
    least_right: int | None = None
    failures = 0
    for value in kind.values:
        word, text = outcome(program, kind, value, environment)
        counts[word] += 1
        if word == "right" and least_right is None:
            least_right = value
        if word.isupper() or word.startswith("SIGNAL"):
            failures += 1
            print(f"{kind.name} {value}: {word}\n{text[-2000:]}", flush=True)
    words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    row = (
        f"| {kind.name} | {kind.values[0]} to {kind.values[-1]} {kind.unit} | "
        f"{len(kind.values)} | {words} | {least_right} |"
    )
    print(row, flush=True)
    return row, failures


def build(kiln: str, folder: Path) -> Path:
    words = [kiln, "build", "--program", HERE / "pressure.cu", "--build-dir", folder]
    return Path(subprocess.check_output(words, text=True).strip().splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("--runs", type=int, default=200, help="of each kind of limit")
    parser.add_argument("--write", type=Path, help="a page for the results")
    options = parser.parse_args()
    engine = Path(options.kiln).resolve().parents[1] / "lib/libkiln_engine.so"
    environment = os.environ | {
        "KILN_DEVICE": "engine",
        "KILN_ENGINE": str(engine),
        "KILN_ENGINE_THREADS": str(THREADS),
    }
    rows, failures = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = build(options.kiln, folder)
        for kind in kinds(options.runs, folder):
            row, failed = run_kind(program, kind, environment)
            rows.append(row)
            failures += failed
    print(f"{failures} failures")
    if options.write:
        head = "| limit | range | runs | ends | right from |\n|---|---|---|---|---|\n"
        options.write.write_text(
            PAGE + facts(options.kiln) + head + "\n".join(rows) + f"\n\n{failures} failures.\n"
        )
    return failures != 0


def facts(kiln: str) -> str:
    version = subprocess.check_output([kiln, "--version"], text=True).strip()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"
    return f"{datetime.date.today()}, {version}, {machine}.\n\n"


PAGE = """# Programs under limits

`make test-limits` runs `tests/programs/pressure.cu` on the engine, with eight threads wanted: local
and shared memory, the device's heap, a graph, two launches at once. A run may end with right
results or with an error that it reports. A hang, a signal, or a wrong result after calls that all
succeeded is a failure.

"""

if __name__ == "__main__":
    sys.exit(main())
