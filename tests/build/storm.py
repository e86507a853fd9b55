#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do many processes that edit, build, load, clear the cache and get killed ever see a wrong result?

    storm.py KILN [--seconds 600] [--processes 20] [--projects 5] [--seed 0]

The processes share the projects (a folder of builds each) and one cache. An edit changes the header
or the source of a project and counts up; a build that began at count a and ended at count b must
give a host value and device code that one of the counts from a to b had. A build must not fail
either, and a library must load. Ends with one line: processes, builds, kills, clears, wrong; exit
status 1 for anything wrong or failed, 77 without nvcc.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TINY = Path(__file__).resolve().parent / "tiny"
# Few, so that what one project has built is in the cache for another.
HOST_VALUES, DEVICE_VALUES = 7, 5
SKIPPED = 77  # the exit status that CTest counts as skipped, and make as failed
SLOWEST_BUILD_S = 300  # of twenty at once; what takes longer hangs


class Project:
    """A header and a source; `count` has the number of edits, and is changed under `lock` together
    with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        self.folder.mkdir()
        (self.folder / "lock").touch()
        self.write(0)

    def write(self, count: int) -> None:
        # Every second edit is one of the header: at any time one file alone changes.
        host, device = values(count)
        source = (
            '#include "value.h"\n'
            f"__global__ void kernel(int* out) {{ out[0] = {2000 + device}; }}\n"
            'extern "C" __attribute__((visibility("default"))) void launch() { kernel<<<1, '
            "1>>>(nullptr); }\n"
            'extern "C" __attribute__((visibility("default"))) int host_value() { return VALUE; }\n'
        )
        for name, text in (
            ("value.h", f"#define VALUE {1000 + host}\n"),
            ("a.cu", source),
            ("count", str(count)),
        ):
            path = self.folder / name
            if path.exists() and path.read_text() == text:
                continue
            part = self.folder / f"{name}.part"
            part.write_text(text)
            part.replace(path)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with (self.folder / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def count(self) -> int:
        with self.alone():
            return int((self.folder / "count").read_text())

    def edit(self) -> None:
        with self.alone():
            self.write(int((self.folder / "count").read_text()) + 1)


def values(count: int) -> tuple[int, int]:
    """What the host returns and the kernel stores after this many edits."""
    return (count + 1) // 2 % HOST_VALUES, count // 2 % DEVICE_VALUES


class Worker:
    def __init__(self, given: argparse.Namespace, top: Path, number: int) -> None:
        self.kiln = str(given.kiln.resolve())
        self.dice = random.Random(f"{given.seed}/{number}")
        self.projects = [Project(top / f"p{i}") for i in range(given.projects)]
        self.until = time.monotonic() + given.seconds
        self.tally: Counter[str] = Counter()
        self.lately = 1.0
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVCC_", "TORCH_"))
        }
        self.environment = kept | {"XDG_CACHE_HOME": str(top / "cache"), "MAX_JOBS": "1"}

    def line(self) -> list[str]:
        flags = ["--cuda-flag=-Xcompiler=-D__COMMON_FUNCTIONS_H__", f"--cuda-flag=-I{TINY}"]
        return [
            self.kiln,
            "build",
            "a.cu",
            "--arch",
            "8.0",
            "--json",
            "--build-dir",
            "build",
            *flags,
        ]

    def run(self) -> None:
        while time.monotonic() < self.until:
            project = self.dice.choice(self.projects)
            action = self.dice.choices(
                [self.build, self.edit, self.kill, self.clear], weights=[50, 30, 15, 5]
            )[0]
            action(project)

    def complain(self, kind: str, text: str) -> None:
        self.tally[kind] += 1
        print(f"{kind.upper()}: {text}", flush=True)

    def edit(self, project: Project) -> None:
        project.edit()
        self.tally["edits"] += 1

    def clear(self, project: Project) -> None:
        done = subprocess.run(
            [self.kiln, "cache", "clear"], env=self.environment, capture_output=True, text=True
        )
        self.tally["clears"] += 1
        if done.returncode:
            self.complain("failed", f"kiln cache clear: {done.stderr}")

    def kill(self, project: Project) -> None:
        """At a random moment of a build, with everything that it has started."""
        process = subprocess.Popen(
            self.line(), cwd=project.folder, env=self.environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        time.sleep(self.dice.uniform(0, self.lately))
        self.tally["kills"] += process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def build(self, project: Project) -> None:
        before, begun = project.count(), time.monotonic()
        try:
            done = subprocess.run(
                self.line(), cwd=project.folder, env=self.environment, capture_output=True,
                text=True, timeout=SLOWEST_BUILD_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.complain("failed", f"a build in {project.folder.name} hangs")
            return
        after = project.count()
        self.tally["builds"] += 1
        if done.returncode:
            self.complain(
                "failed", f"{project.folder.name}, edits {before} to {after}: {done.stderr}"
            )
            return
        told = json.loads(done.stdout)
        if told["rebuilt"]:
            self.lately = time.monotonic() - begun
        for step in told["steps"]:
            self.tally[f"steps {step['cache']}"] += 1
        self.check(project, Path(told["library"]), before, after)

    def check(self, project: Project, library: Path, before: int, after: int) -> None:
        # A process of a later edit removes what is old. Opened first: then it stays.
        held = library.parent / f"held-{os.getpid()}.so"
        try:
            os.link(library, held)
        except FileNotFoundError:
            self.tally["removed"] += 1
            return
        try:
            host, device = host_value(held), self.device_value(held)
        finally:
            held.unlink()
        allowed = [values(count) for count in range(before, after + 1)]
        if host not in {1000 + h for h, _ in allowed} or device not in {
            2000 + d for _, d in allowed
        }:
            where = f"{project.folder.name}, edits {before} to {after}"
            self.complain("wrong", f"{where}: {host} and {device}, not {allowed}")
        self.tally["loads"] += 1

    def device_value(self, library: Path) -> int:
        line = [self.kiln, "inspect", str(library), "--ptx"]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True)
        found = set(re.findall(r"\b20\d\d\b", done.stdout))
        return int(found.pop()) if len(found) == 1 else -1


def host_value(library: Path) -> int:
    """In a process of its own, which a broken library may end. -1: it did."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writing, str(ctypes.CDLL(str(library)).host_value()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return int(text) if text else -1


def work(given: argparse.Namespace, top: Path, number: int, tallies: multiprocessing.Queue) -> None:
    worker = Worker(given, top, number)
    try:
        worker.run()
    # A worker that ends early must not look like one that saw nothing.
    except BaseException as error:
        worker.complain("failed", f"process {number}: {error!r}")
    tallies.put(worker.tally)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kiln", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--projects", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="write the counts there, as Markdown")
    given = parser.parse_args()
    if not shutil.which(
        "nvcc", path=f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin:{os.environ['PATH']}"
    ):
        print("skipped: no nvcc")
        return SKIPPED
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kiln-storm-") as folder:
        top = Path(folder).resolve()
        for number in range(given.projects):
            Project(top / f"p{number}").make()
        tallies: multiprocessing.Queue = multiprocessing.Queue()
        numbers = range(given.processes)
        running = [
            multiprocessing.Process(target=work, args=(given, top, number, tallies))
            for number in numbers
        ]
        for process in running:
            process.start()
        for _ in running:
            tally.update(tallies.get())
        for process in running:
            process.join()
    steps = ", ".join(
        f"{count} {kind[6:]}" for kind, count in sorted(tally.items()) if kind.startswith("steps ")
    )
    counts = [
        f"{tally['edits']} edits, {tally['loads']} loads, {tally['removed']} libraries gone "
        f"before; steps: {steps}",
        f"{given.processes} processes, {tally['builds']} builds, {tally['kills']} kills, "
        f"{tally['clears']} clears, "
        f"{tally['failed']} failed, {tally['wrong']} wrong",
    ]
    print("\n".join(counts))
    if given.log:
        given.log.write_text(
            "# A storm of builds\n\nProcesses that edit, build, load, clear the cache and get "
            "killed, in a few shared projects.\n\n"
            f"`tests/build/storm.py KILN --seconds {given.seconds:g} --seed {given.seed}`, "
            f"{os.uname().machine}, "
            f"{os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}.\n\n"
            + "\n".join(f"- {line}" for line in counts)
            + "\n"
        )
    return 1 if tally["wrong"] or tally["failed"] or not tally["loads"] else 0


if __name__ == "__main__":
    sys.exit(main())
