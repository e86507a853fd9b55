#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a build is ninja, and what starts because of ninja?

  benchmarks/ninja_share.py STAGE [--sources 1 20] [--rounds 5]

Instructions by cachegrind, compilers left out: of the command, of the `kiln step` processes that
ninja starts, of ninja and of the shells between them. Times are medians of `rounds` builds, and
beside them the time of a ninja whose steps do nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent))
from builds import ARCH  # noqa: E402
from instructions import counted  # noqa: E402

SOURCE = """#include <kiln/op.h>
#include "value.h"
__global__ void kernel_{n}(float* x, int64_t count) {{
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < count) x[i] *= VALUE + {kernel};
}}
kiln::Tensor scale_{n}(const kiln::Tensor& a) {{
  kiln::Tensor out = kiln::empty_like(a);
  kernel_{n}<<<kiln::blocks_for(out.numel(), {host}), {host}, 0, kiln::stream(a)>>>(
      out.data<float>(), out.numel());
  return out;
}}
KILN_OP(scale_{n}, "a").fake("like(a)");
"""
PARTS = ("kiln build", "kiln step", "ninja", "sh")


class Project:
    def __init__(self, stage: Path, folder: Path, sources: int):
        self.folder, self.sources = folder, sources
        folder.mkdir()
        targets = [f"s{number}.cu" for number in range(sources)]
        self.command = [str(stage / "kiln/bin/kiln"), "build", *targets, "--arch", ARCH]
        self.cache = folder / "cache"

    def edit(self, number: int, kernel: int, host: int) -> None:
        text = SOURCE.format(n=number, kernel=kernel, host=host)
        (self.folder / f"s{number}.cu").write_text(text)

    def environment(self) -> dict[str, str]:
        skipped = ("TORCH_CUDA_ARCH_LIST", "KILN_CACHE_DIR")
        clean = {name: value for name, value in os.environ.items() if name not in skipped}
        return clean | {"XDG_CACHE_HOME": str(self.cache)}

    def scenarios(self) -> Iterator[str]:
        """The name of each build, once it is prepared; each goes on from the one before."""
        shutil.rmtree(self.cache, ignore_errors=True)
        (self.folder / "value.h").write_text("#define VALUE 2\n")
        for number in range(self.sources):
            self.edit(number, kernel=0, host=256)
        yield "cold"
        yield "no change"
        self.edit(0, kernel=0, host=128)
        yield "host code of one source"
        self.edit(0, kernel=1, host=128)
        yield "kernel of one source"
        (self.folder / "value.h").write_text("#define VALUE 3\n")
        yield "header of all"


def part_of(command: str) -> str:
    words = command.split()
    name = Path(words[0]).name
    return f"kiln {words[1]}" if name == "kiln" else "sh" if name in ("sh", "dash") else name


def count(project: Project, scenarios: list[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    os.chdir(project.folder)
    for what in project.scenarios():
        if what not in scenarios:
            continue
        parts = dict.fromkeys(PARTS, 0)
        for command, total in counted(project.command, project.environment(), True).items():
            parts[part_of(command)] = parts.get(part_of(command), 0) + total
        found[what] = parts
    return found


def time(project: Project, scenarios: list[str], rounds: int) -> dict[str, float]:
    samples: dict[str, list[float]] = {}
    for _ in range(rounds):
        for what in project.scenarios():
            if what not in scenarios:
                continue
            begun = perf_counter()
            subprocess.run(
                project.command, cwd=project.folder, env=project.environment(), check=True,
                capture_output=True,
            )  # fmt: skip
            samples.setdefault(what, []).append(perf_counter() - begun)
    return {what: median(values) for what, values in samples.items()}


def time_idle_ninja(folder: Path, steps: int, rounds: int) -> float:
    """Of a ninja that starts so many shells, each of which ends at once."""
    text = "rule run\n  command = : $out\n"
    text += "".join(f"build o{number}: run\n" for number in range(steps))
    folder.mkdir()
    (folder / "build.ninja").write_text(text)
    seconds = []
    for _ in range(rounds):
        begun = perf_counter()
        subprocess.run(["ninja", "-C", str(folder)], check=True, capture_output=True)
        seconds.append(perf_counter() - begun)
    return median(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", type=Path)
    parser.add_argument("--sources", type=int, nargs="+", default=[1, 20])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scenarios", nargs="+", help="of those that are printed")
    given = parser.parse_args()
    print(f"| sources | build | {' | '.join(PARTS)} | ninja and sh | seconds |")
    print("|---|---|" + "---|" * (len(PARTS) + 2))
    for sources in given.sources:
        with tempfile.TemporaryDirectory() as scratch:
            project = Project(given.stage.resolve(), Path(scratch) / "p", sources)
            names = given.scenarios or list(project.scenarios())
            times = time(project, names, given.rounds) if given.rounds else {}
            for what, parts in count(project, names).items():
                cells = " | ".join(f"{parts[part] / 1e6:.1f} M" for part in PARTS)
                share = (parts["ninja"] + parts["sh"]) / sum(parts.values())
                print(
                    f"| {sources} | {what} | {cells} | {share:.1%} | "
                    f"{times.get(what, float('nan')):.2f} |",
                    flush=True,
                )
            steps = 4 * sources + 1
            idle = time_idle_ninja(Path(scratch) / "idle", steps, max(given.rounds, 3))
            print(json.dumps({"ninja of nothing, steps": steps, "seconds": round(idle, 4)}))
            os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
