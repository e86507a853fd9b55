#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what an incremental build gives ever older than its sources? Random edits; the oracle is a clean nvcc build of each state.

    staleness.py KILN [--edits 1000] [--seed 0] [--workers 1] [--real-headers] [--slice] [--two-sources] [--kill]
    staleness.py KILN --plan

One project, built by kiln after every edit in the same folder with the same cache. Of both builds the value that the host
returns and the PTX of every kernel are compared. Edits: comments, device body, host body, header, define, flag, environment
flags, the host compiler swapped at its path with size and time kept, a header that shadows another one, __has_include,
branches under __CUDA_ARCH__ and #ifndef __CUDA_ARCH__. Without --real-headers a small cuda_runtime.h stands in, which makes a
compile four times as fast. --slice has real headers, more edits of the kernel, and nothing that keeps NVRTC from compiling its slice.
--two-sources has a second kernel in a
file of its own. --kill ends every build at a random moment with SIGKILL first; what was edited is then built, or edited further,
or taken back; --edits then counts the builds that were killed before their end. --workers share the edits, each with a seed of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

TINY = Path(__file__).resolve().parent / "tiny"
ARCH = "8.0"
GENCODE = "-gencode=arch=compute_80,code=[sm_80,compute_80]"


@dataclass
class State:
    """Everything that an edit can change; each number ends up in the host's value or in a kernel's code."""

    comment: int = 0
    device: int = 1
    host: int = 1
    header: int = 1
    define: int = 1
    fast_math: bool = False
    environment: int = 0
    compiler: int = 0
    shadow: bool = False
    extra: bool = False
    arch_branch: int = 1
    host_branch: int = 1
    second: int = 0
    simple: bool = False  # nothing that keeps NVRTC from compiling a slice
    history: Counter = field(default_factory=Counter)

    def edit(self, dice: random.Random) -> str:
        kinds = ["comment", "host", "header", "define", "fast_math", "compiler", "arch_branch", "host_branch"]
        kinds += ["device"] * 8 if self.simple else ["device", "device", "environment", "shadow", "extra"]
        kinds += ["second", "device"] * 3 if self.second else []
        kind = dice.choice(kinds)
        old = getattr(self, kind)
        setattr(self, kind, not old if isinstance(old, bool) else dice.choice([n for n in range(2, 60) if n != old]))
        self.history[kind] += 1
        return kind

    def second_source(self) -> str:
        return (
            f"__global__ void other(int* out) {{ out[0] = {self.second}; }}\n"
            'extern "C" __attribute__((visibility("default"))) void launch_other() { other<<<1, 1>>>(nullptr); }\n'
        )

    def source(self) -> str:
        asked = '#if __has_include("extra.h")\n#include "extra.h"\n#else\n#define EXTRA 5\n#endif'
        return f"""// comment {self.comment}
#include "value.h"
{"#define EXTRA 5" if self.simple else asked}
#ifndef ENVIRONMENT
#define ENVIRONMENT 0
#endif
#ifndef COMPILER
#define COMPILER 0
#endif
#ifndef __CUDA_ARCH__
#define SIDE {self.host_branch}
#else
#define SIDE {self.arch_branch}
#endif
__global__ void kernel(int* out, float x) {{
  out[0] = {self.device}; out[1] = VALUE; out[2] = SIDE; out[3] = EXTRA; out[4] = DEFINE; out[5] = ENVIRONMENT;
  out[6] = static_cast<int>(x / {self.device}.5f);
}}
extern "C" __attribute__((visibility("default"))) void launch() {{ kernel<<<1, 1>>>(nullptr, 1.0f); }}
extern "C" __attribute__((visibility("default"))) long host_value() {{
  return {self.host} + 100L * (VALUE + 100L * (SIDE + 100L * (EXTRA + 100L * (DEFINE + 100L * (ENVIRONMENT + 100L * COMPILER)))));
}}
"""


class Project:
    def __init__(self, kiln: Path, top: Path, real_headers: bool):
        self.kiln, self.top = kiln, top
        self.lately: list[float] = []  # seconds of the last builds
        self.flags = [] if real_headers else ["-Xcompiler=-D__COMMON_FUNCTIONS_H__", f"-I{TINY}"]
        for name in ("first", "second", "bin", "oracle"):
            (top / name).mkdir(parents=True)
        self.gxx = shutil.which("g++") or "/usr/bin/g++"

    def write(self, state: State) -> None:
        self.put("a.cu", state.source())
        if state.second:
            self.put("b.cu", state.second_source())
        self.put("second/value.h", f"#define VALUE {state.header}\n")
        for name, wanted, text in (
            ("first/value.h", state.shadow, f"#define VALUE {state.header + 1}\n"),
            ("first/extra.h", state.extra, "#define EXTRA 7\n"),
        ):
            if wanted:
                self.put(name, text)
            else:
                (self.top / name).unlink(missing_ok=True)
        # Swapped at its path, of the same size, with the times that the former one had.
        compiler = self.top / "bin/g++"
        text = f'#!/bin/sh\nexec {self.gxx} -DCOMPILER={state.compiler:02d}L "$@"\n'.replace("=0", "=")
        text = text.replace("=L", "=0L")
        text += "#" * (120 - len(text)) + "\n"
        if not compiler.exists() or compiler.read_text() != text:
            before = compiler.stat() if compiler.exists() else None
            compiler.write_text(text)
            compiler.chmod(0o755)
            if before:
                os.utime(compiler, ns=(before.st_atime_ns, before.st_mtime_ns))

    def put(self, name: str, text: str) -> None:
        path = self.top / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)

    def environment(self, state: State) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVCC_", "TORCH_")) and k != "CXX"}
        kept |= {"XDG_CACHE_HOME": str(self.top / "cache"), "CXX": str(self.top / "bin/g++")}
        if state.environment:
            kept["NVCC_APPEND_FLAGS"] = f"-DENVIRONMENT={state.environment}"
        return kept

    def sources(self, state: State) -> list[str]:
        return ["a.cu", "b.cu"] if state.second else ["a.cu"]

    def kiln_line(self, state: State) -> list[str]:
        line = [
            str(self.kiln),
            "build",
            *self.sources(state),
            "--arch",
            ARCH,
            "--json",
            "--build-dir",
            "build",
            f"-DDEFINE={state.define}",
        ]
        line += ["-Ifirst", "-Isecond", *(f"--cuda-flag={flag}" for flag in self.flags)]
        return line + (["--fast-math"] if state.fast_math else [])

    def by_kiln(self, state: State) -> dict:
        begun = time.monotonic()
        done = subprocess.run(
            self.kiln_line(state), cwd=self.top, env=self.environment(state), capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"kiln build failed:\n{done.stdout}\n{done.stderr}")
        told = json.loads(done.stdout)
        if told["rebuilt"]:  # what a killed build may be in the middle of
            self.lately = [*self.lately[-3:], time.monotonic() - begun]
        return told

    def killed(self, state: State, after_s: float) -> bool:
        process = subprocess.Popen(
            self.kiln_line(state), cwd=self.top, env=self.environment(state), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        time.sleep(after_s)
        alive = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return alive

    def by_nvcc(self, state: State) -> tuple[int, dict[str, str]]:
        folder = self.top / "oracle"
        shutil.rmtree(folder)
        folder.mkdir()
        line = [
            "nvcc",
            "-c",
            "-std=c++20",
            "-O3",
            "--expt-relaxed-constexpr",
            GENCODE,
            "-ccbin",
            str(self.top / "bin/g++"),
        ]
        line += ["-Xcompiler", "-fPIC,-fvisibility=hidden", f"-DDEFINE={state.define}", "-DKILN_NAMESPACE=a", "-Ifirst"]
        line += ["-Isecond", *self.flags, "--keep", "--keep-dir", str(folder)]
        line += ["--use_fast_math"] if state.fast_math else []
        found = {}
        for name in self.sources(state):
            made = folder / name.replace(".cu", ".o")
            subprocess.run([*line, name, "-o", str(made)], cwd=self.top, env=self.environment(state), check=True)
            found |= bodies((folder / name.replace(".cu", ".ptx")).read_text())
        runtime = self.kiln.parents[1] / "lib/libkiln_runtime.a"
        library = folder / "oracle.so"
        subprocess.run([self.gxx, "-shared", "-o", library, folder / "a.o", runtime, "-ldl", "-lpthread"], check=True)
        return host_value(library), found


def host_value(library: Path) -> int:
    """In a process of its own: libraries of one name would stay mapped."""
    code = f"import ctypes; f = ctypes.CDLL({str(library)!r}).host_value; f.restype = ctypes.c_long; print(f())"
    return int(
        subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    )


def bodies(ptx: str) -> dict[str, str]:
    """Each kernel's instructions, without lines and comments."""
    found = {}
    for match in re.finditer(r"\.entry\s+(\w+)\s*\([^)]*\)[^{]*\{(.*?)\n\}", ptx, re.DOTALL):
        lines = (" ".join(line.split("//")[0].split()) for line in match.group(2).splitlines())
        found[match.group(1)] = "\n".join(
            line for line in lines if line and not line.startswith((".loc", "$L__", ".file"))
        )
    return found


def ptx_in(kiln: Path, library: Path) -> dict[str, str]:
    done = subprocess.run([str(kiln), "inspect", str(library), "--ptx"], capture_output=True, text=True, check=True)
    return bodies(done.stdout)


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


def kill_a_build(project: Project, state: State, former: State, dice: random.Random, tally: Tally) -> State:
    """What is to be built after it: the same, something else too, or what was there before."""
    # By one of the last builds' times and not by the longest: on a busy machine most would end before that.
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
        state = State(second=1 if given.two_sources else 0, simple=given.slice)
        project = Project(kiln, Path(folder).resolve(), given.real_headers or given.slice)
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
            wanted = project.by_nvcc(state)
            library = Path(built["library"])
            seen = host_value(library), ptx_in(kiln, library)
            # A comment outside of device code: no device code is compiled.
            made = [step for step in built["steps"] if step["cache"] == "made" and "compute_" in step["what"]]
            if kind == "comment" and made and not given.kill:
                tally.needless += 1
            if seen != wanted:
                tally.stale += 1
                print(
                    f"STALE after edit {number} ({kind}, lane {built['lane']}, seed {seed}): {state}\n{seen}\n{wanted}",
                    flush=True,
                )
            tally.done += 1
            if tally.done % 50 == 0:
                print(f"  {tally.done} edits, {tally.kills} kills, {tally.stale} stale (seed {seed})", flush=True)
    tally.history = state.history
    return tally


def tried(given: argparse.Namespace) -> Tally:
    """All edits of one kind of run, told in words."""
    begun, tally = time.monotonic(), Tally()
    shares = [given.edits // given.workers + (n < given.edits % given.workers) for n in range(given.workers)]
    with ThreadPoolExecutor(given.workers) as pool:
        for one in pool.map(lambda n: random_edits(given, shares[n], given.seed + n), range(given.workers)):
            tally.add(one)
    edits = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.history.items()))
    wanted = f"{given.edits} killed builds" if given.kill else f"{given.edits}"
    print(f"{tally.done} edits of {wanted} ({edits}) in {time.monotonic() - begun:.0f} s")
    killed = f"; {tally.kills} builds killed, then {dict(tally.after_kill)}" if given.kill else ""
    print(f"lanes: {dict(tally.lanes)}{killed}")
    print(f"{tally.stale} stale, {tally.needless} comments compiled device code", flush=True)
    return tally


# What `make test-staleness` tries: edits, and the options that differ.
PLAN = (
    (780, {}),
    (100, {"two_sources": True}),
    (100, {"slice": True}),
    (20, {"real_headers": True}),
    (200, {"kill": True}),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Random edits against a clean nvcc build.")
    parser.add_argument("kiln", type=Path)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--real-headers", action="store_true")
    parser.add_argument("--slice", action="store_true")
    parser.add_argument("--two-sources", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--plan", action="store_true", help="1,000 edits of all kinds and 200 kills, with all cores")
    parser.add_argument("--limit", type=float, default=0, metavar="SECONDS", help="stop after this many; tells how far")
    given = parser.parse_args()
    if not shutil.which("nvcc"):
        print("skipped: no nvcc on PATH")
        return 0
    runs = [given]
    if given.plan:
        given.workers = len(os.sched_getaffinity(0))
        runs = [
            argparse.Namespace(**vars(given) | {"edits": n, "seed": 1000 * i} | more)
            for i, (n, more) in enumerate(PLAN)
        ]
    tallies = [tried(one) for one in runs]
    total = Tally()
    for tally in tallies:
        total.add(tally)
    if given.plan:
        print(f"in all {total.done} edits, {total.kills} killed builds: {total.stale} stale")
    return 1 if total.stale or total.needless or any(tally.done == 0 for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
