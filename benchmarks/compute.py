#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast do kernels that compute run on the engine, interpreted, compiled and as plain loops?

  make compute [BASE=STAGE]    BASE: the stage of another build, to compare with

Times are seconds of CPU of a launch of each kernel of benchmarks/compute on one thread, the least
of three runs. The bits that a kernel writes must be the same however it runs. --instructions counts
with cachegrind instead of timing, which a busy machine does not change.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from instructions import counted  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "benchmarks/compute"
# Launches of a run: so that it takes a few tenths of a second.
TIMES = {"add": 3, "stencil": 20, "transpose": 20, "reduction": 20, "histogram": 5}


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
        few, more = (
            sum(counted([str(self.kernels), name, str(times)], env).values()) for times in (2, 3)
        )
        digest = succeed([str(self.kernels), name, "1"], env).split()[2]
        return float(more - few), digest

    def loop(self, name: str) -> float | None:
        if name not in succeed([str(self.loops)]).split():
            return None
        runs = [succeed([str(self.loops), name, "5"]).split() for _ in range(3)]
        return min(float(run[1]) for run in runs)


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
    unit, scale = ("M instructions", 1e-6) if options.instructions else ("ms", 1e3)
    lines, ratios, wrong = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder), stage)
        measure = programs.counted if options.instructions else programs.timed
        for name in options.kernels or programs.names():
            before, expected = measure(name, base, KILN_ENGINE_COMPILE="0")
            now, seen = measure(name, stage, KILN_ENGINE_COMPILE="1")
            loop = None if options.instructions else programs.loop(name)
            ratios.append(before / now)
            wrong += seen != expected
            plain = f"{loop * scale:.2f} | {now / loop:.1f}" if loop else " | "
            same = "" if seen == expected else "DIFFERENT BITS"
            lines.append(
                f"| {name} | {before * scale:.2f} | {now * scale:.2f} | {before / now:.2f} "
                f"| {plain} | {same} |"
            )
            print(lines[-1], flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    against = "another build" if options.base else "the interpreter"
    text = f"""# Kernels that compute

Written by `make compute` on {platform.machine()}: {unit} of a launch on one thread, beside
{against} and plain loops. Geometric mean of the ratios: {mean:.2f}.

| kernel | before | now | before / now | loops | now / loops | |
|---|---|---|---|---|---|---|
"""
    text += "\n".join(lines) + "\n"
    print(f"geometric mean {mean:.2f}")
    if options.write:
        (options.write / f"compute-{platform.machine()}.md").write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
