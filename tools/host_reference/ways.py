# SPDX-License-Identifier: Apache-2.0
"""How are the programs of the generators built and run: on the engine in each of its modes, on a
GPU, and by C++ alone (on_host.h), which tells what is right?"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_S = 600
# Two programs with one text differ in nothing but what C++ leaves open: no contraction, integers
# that wrap around, and pointers of any type.
HOST_FLAGS = "-std=c++20 -O2 -fwrapv -fno-strict-aliasing -ffp-contract=off -frounding-math -w"

# The engine runs PTX; machine code of a GPU would take a tenth of the time of a build.
FOR_ENGINE = ["--arch", "compute_80"]


@dataclass(frozen=True)
class Way:
    """To run a program, `on_host` or not."""

    name: str
    variables: tuple[tuple[str, str], ...]
    on_host: bool = False


HOST = Way("C++", (), True)


def ways(kiln: Path, gpu: bool, more_threads: bool = False) -> list[Way]:
    """The first interprets."""
    library = kiln.parents[1] / "lib/libkiln_engine.so"
    engine = (("KILN_ENGINE", str(library)), ("KILN_DEVICE", "engine"))

    def way(compiled: str, level: str = "", threads: str = "1") -> Way:
        words = (("KILN_ENGINE_COMPILE", compiled), ("KILN_ENGINE_THREADS", threads))
        name = {"0": "interpreted", "1": "by default", "always": "compiled"}.get(compiled, compiled)
        more = (("KILN_ENGINE_LEVEL", level),) if level else ()
        many = " by many threads" if more_threads and threads != "1" else ""
        return Way(f"{name}{' as ' + level if level else ''}{many}", (*engine, *words, *more))

    out = [way("0"), way("1", threads="2"), way("always"), way("alone")]
    if more_threads:
        out += [way("1"), way("always", threads="3")]
    if platform.machine() == "x86_64":
        out.append(way("0", "baseline"))
        has_avx2 = " avx2 " in Path("/proc/cpuinfo").read_text()
        if has_avx2 and (library.parent / "libkiln_engine-x86-64-v3.so").exists():
            out.append(way("always", "x86-64-v3"))
    if gpu:
        out.append(Way("GPU", (("KILN_DEVICE", "cuda"),)))
    return out


def build(source: Path, program: Path, kiln: Path, flags: list[str]) -> None:
    words = [kiln, "-q", "build", "--program", "--cuda-flag=-w", *flags, source, "-o", program]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: kiln does not build {source}\n{done.stdout}{done.stderr}")


def build_on_host(source: Path, program: Path) -> None:
    header = ["-include", HERE / "on_host.h"]
    words = ["g++", *HOST_FLAGS.split(), *header, "-x", "c++", source, "-o", program]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: g++ does not build {source}\n{done.stdout}{done.stderr}")


def output(program: Path, way: Way, words: list[str]) -> list[str]:
    environment = os.environ | dict(way.variables)
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, env=environment, timeout=LIMIT_S
    )
    end = [f"exit code {done.returncode}: {done.stderr}"] if done.returncode else []
    return done.stdout.splitlines() + end
