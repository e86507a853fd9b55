#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast do kernels that compute run on the engine, interpreted, compiled and as plain loops?

  make compute [BASE=STAGE]    BASE: the stage of another build, to compare with

Times are seconds of CPU of a launch of each kernel of benchmarks/compute on one thread, the least
of three runs. The bits that a kernel writes must be the same however it runs. --instructions counts
with cachegrind instead of timing, which a busy machine does not change, as the difference of two
runs with one launch more; it also tells what compiling took, and times only what loops.cpp has.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from instructions import counted  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "benchmarks/compute"
# Launches of a run: so that it takes a few tenths of a second.
TIMES = {
    "add": 3,
    "stencil": 2000,
    "transpose": 1000,
    "reduction": 400,
    "histogram": 100,
    "softmax": 20,
}
# Launches until all of a short kernel is compiled; others are by the third.
COMPILED_AFTER = {"stencil": 8, "transpose": 8, "reduction": 8, "layer_norm": 8, "histogram": 8}
MOST_MS, MOST_MS_OF_AN_INSTRUCTION = 0.2, 0.005


def environment(folder: Path, stage: Path) -> dict[str, str]:
    kept = ("HOME", "PATH", "CUDA_HOME", "TMPDIR")
    clean = {name: os.environ[name] for name in kept if name in os.environ}
    return clean | {
        "XDG_CACHE_HOME": str(folder),
        "KILN_ENGINE_THREADS": "1",
        "KILN_DEVICE": "engine",
        "KILN_ENGINE": str(stage / "kiln/lib/libkiln_engine.so"),
        "LC_ALL": "C",
    }


def succeed(command: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Programs:
    def __init__(self, folder: Path, stage: Path) -> None:
        self.folder, self.stage = folder, stage
        self.kernels, self.loops = folder / "kernels", folder / "loops"
        kiln = str(stage / "kiln/bin/kiln")
        source = str(SOURCES / "kernels.cu")
        succeed(
            [kiln, "build", "--program", source, "-o", str(self.kernels)],
            environment(folder, stage),
        )
        options = ["-std=c++20", "-O3", "-march=native"]
        succeed(["g++", *options, str(SOURCES / "loops.cpp"), "-o", str(self.loops)])

    def names(self) -> list[str]:
        return succeed([str(self.kernels)], environment(self.folder, self.stage)).split()

    def timed(self, name: str, stage: Path, **settings: str) -> tuple[float, str]:
        """Seconds and the hash of the results."""
        env = environment(self.folder, stage) | settings
        runs = [
            succeed([str(self.kernels), name, str(TIMES.get(name, 4))], env).split()
            for _ in range(3)
        ]
        return min(float(run[1]) for run in runs), runs[0][2]

    def counted(self, name: str, stage: Path, **settings: str) -> tuple[float, str]:
        env = environment(self.folder, stage) | settings
        if platform.machine() == "x86_64":  # AVX-512 is not known to valgrind
            env["KILN_ENGINE_LEVEL"] = "x86-64-v3"
        interprets = settings.get("KILN_ENGINE_COMPILE") == "0"
        first = 2 if interprets else COMPILED_AFTER.get(name, 3)  # of 1 none is left out
        few, more = (
            sum(counted([str(self.kernels), name, str(times)], env).values())
            for times in (first, first + 1)
        )
        digest = succeed([str(self.kernels), name, "1"], env).split()[2]
        return float(more - few), digest

    def compiling(self, name: str, stage: Path) -> float:
        """Milliseconds of CPU that compiling the kernel took, the least of three runs."""
        env = environment(self.folder, stage) | {"KILN_ENGINE_COMPILE": "report"}
        command = [str(self.kernels), name, str(COMPILED_AFTER.get(name, 3) + 1)]
        found = []
        for _ in range(3):
            told = subprocess.run(command, env=env, capture_output=True, text=True).stderr
            found.append(sum(float(each) for each in re.findall(r"([0-9.]+) ms", told)))
        return min(found)

    def ptx_instructions(self) -> dict[str, int]:
        """By kernel of the benchmark."""
        text = self.folder / "kernels.ptx"
        source = str(SOURCES / "kernels.cu")
        succeed(["nvcc", "-ptx", "-arch=sm_90", "-std=c++17", source, "-o", str(text)])
        counts = {}
        for body in text.read_text().split(".entry ")[1:]:
            label = re.match(r"_ZN7compute[0-9]+([a-z_0-9]+?)(?:ILi([0-9]+)E)?E", body)
            lines = body.split("\n}")[0].splitlines()
            is_one = re.compile(r"\t(@!?%p[0-9]+ )?[a-z][a-z0-9_.:]*[ \t;].*;?")
            count = sum(1 for line in lines if is_one.match(line) and ";" in line)
            if label:
                tile = label[2] or "" if label[1] == "matmul" else ""
                counts[label[1] + tile] = count
        return counts

    def loop(self, name: str) -> float | None:
        if name not in succeed([str(self.loops)]).split():
            return None
        runs = [succeed([str(self.loops), name, str(TIMES.get(name, 5))]).split() for _ in range(3)]
        return min(float(run[1]) for run in runs)


def count_all(programs: Programs, names: list[str], stage: Path, base: Path) -> tuple[str, int]:
    """The page of --instructions."""
    now = {name: programs.counted(name, stage, KILN_ENGINE_COMPILE="1") for name in names}
    compiling = {name: programs.compiling(name, stage) for name in names}
    sizes = programs.ptx_instructions()
    loops = {}
    for name in names:
        if loop := programs.loop(name):
            loops[name] = programs.timed(name, stage, KILN_ENGINE_COMPILE="1")[0] / loop
    rows, ratios, wrong, slow = [], [], 0, 0
    for name in names:
        before, expected = programs.counted(name, base, KILN_ENGINE_COMPILE="0")
        ratio = before / now[name][0]
        ratios.append(ratio)
        wrong += now[name][1] != expected
        wanted = MOST_MS + MOST_MS_OF_AN_INSTRUCTION * sizes.get(name, 0)
        slow += compiling[name] > wanted
        rows.append(
            f"| {name} | {before / 1e6:.2f} | {now[name][0] / 1e6:.2f} | {ratio:.2f} "
            f"| {compiling[name]:.1f} | {wanted:.1f} |"
            + ("" if now[name][1] == expected else " DIFFERENT BITS |")
        )
        print(rows[-1], flush=True)
    kept = f"{len(names) - slow} of {len(names)}"
    before_is = "the build at --base;" if base != stage else "this build, interpreted;"
    beside = ", ".join(f"{name} {ratio:.1f}" for name, ratio in loops.items())
    text = f"""# Kernels that compute

Written by `benchmarks/compute.py --instructions` on {platform.machine()}: M instructions of a
launch on one thread, counted by cachegrind. Before: {before_is}
now: as users get it. On x86-64 both are the library of the level x86-64-v3: valgrind does not know
AVX-512.

Geometric mean of before / now: {mean_of(ratios):.2f}. The least: {min(ratios):.2f}.
Compiling: ms of CPU for all of a kernel, the least of three runs. Wanted: {MOST_MS} ms and
{MOST_MS_OF_AN_INSTRUCTION * 1e3:.0f} us for each PTX instruction; {kept} keep to it.

| kernel | before | now | before / now | compiling | wanted |
|---|---|---|---|---|---|
"""
    text += "\n".join(rows) + "\n"
    text += f"""
CPU time of a launch beside the same arithmetic as plain loops (`g++ -O3 -march=native`), the least
of three runs: {beside}.
"""
    return text, wrong


def mean_of(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def time_all(programs: Programs, names: list[str], stage: Path, base: Path) -> tuple[str, int]:
    lines, ratios, wrong = [], [], 0
    for name in names:
        before, expected = programs.timed(name, base, KILN_ENGINE_COMPILE="0")
        now, seen = programs.timed(name, stage, KILN_ENGINE_COMPILE="1")
        loop = programs.loop(name)
        ratios.append(before / now)
        wrong += seen != expected
        plain = f"{loop * 1e3:.2f} | {now / loop:.1f}" if loop else " | "
        same = "" if seen == expected else "DIFFERENT BITS"
        lines.append(
            f"| {name} | {before * 1e3:.2f} | {now * 1e3:.2f} | {before / now:.2f} "
            f"| {plain} | {same} |"
        )
        print(lines[-1], flush=True)
    against = "another build" if base != stage else "the interpreter"
    text = f"""# Kernels that compute

Written by `make compute` on {platform.machine()}: ms of a launch on one thread, beside
{against} and plain loops. Geometric mean of the ratios: {mean_of(ratios):.2f}.

| kernel | before | now | before / now | loops | now / loops | |
|---|---|---|---|---|---|---|
"""
    print(f"geometric mean {mean_of(ratios):.2f}")
    return text + "\n".join(lines) + "\n", wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", type=Path, help="the stage of another build")
    parser.add_argument("--stage", type=Path, default=ROOT / "build/release/stage")
    parser.add_argument("--instructions", action="store_true", help="count instead of timing")
    parser.add_argument("--write", type=Path, help="the folder for compute-<CPU>.md")
    parser.add_argument("kernels", nargs="*", help="these alone")
    options = parser.parse_args()
    stage = options.stage.resolve()
    base = options.base.resolve() if options.base else stage
    measure = count_all if options.instructions else time_all
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder), stage)
        text, wrong = measure(programs, options.kernels or programs.names(), stage, base)
    if options.write:
        (options.write / f"compute-{platform.machine()}.md").write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
