# SPDX-License-Identifier: Apache-2.0
"""Does `kiln inspect` agree with NVIDIA's and the system's tools on everything, and what does it
cost?

    python benchmarks/inspect_bars.py [--write FOLDER] [--quick] [--kiln PATH] [--library
    libtorch_cuda.so]

All images of 40 builds, every kernel of libtorch_cuda.so, 320 libraries of this machine: about 20
minutes of CPU time. --quick takes samples of builds and of kernels. cuobjdump, nvdisasm and
auditwheel: tools/bootstrap test. Beside the time on the wall stands CPU time, which other work
changes little: a busy machine is judged by that and says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sampling import first_line, machine

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "build/cuda-tools"


@dataclass
class Row:
    what: str
    seen: str
    bar: str
    held: bool
    how: str


@dataclass
class Cost:
    wall_s: float
    cpu_s: float
    peak_mb: float


def cost_of(*words: object) -> Cost:
    begun = time.perf_counter()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: exit status {status}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def environment() -> dict[str, str]:
    env = dict(os.environ)
    if (TOOLS / "auditwheel").is_dir():
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH", ""), str(TOOLS)]))
        env["PATH"] += os.pathsep + str(TOOLS / "nvidia/cu13/bin")
    return env


def comparison(what: str, script: str, *words: object, bar: str = "no difference") -> Row:
    command = [sys.executable, str(ROOT / "tests/binary" / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-300:]]
    shown = " ".join(word for word in map(str, words) if not word.startswith("/"))
    return Row(
        what,
        "; ".join(lines[-1:]),
        bar,
        done.returncode == 0,
        f"`{' '.join([script, *shown.replace('--kiln', '').split()])}`",
    )


def judged(wall: float, cpu: float, bar: float) -> tuple[bool, str]:
    """By the clock on the wall; by CPU time where more wants to run than there are cores."""
    load = os.getloadavg()[0]
    if load <= (os.cpu_count() or 1):
        return wall <= bar, ""
    return cpu <= bar, f"; judged by CPU time, at a load of {load:.0f} on {os.cpu_count()} cores"


def costs(kiln: Path, library: Path | None, folder: Path) -> list[Row]:
    rows = []
    if library:
        runs = [cost_of(kiln, "inspect", library) for _ in range(3)]
        best = min(runs, key=lambda run: run.wall_s)
        peak = max(run.peak_mb for run in runs)
        size = library.stat().st_size / 1e6
        held, how = judged(best.wall_s, best.cpu_s, 10)
        rows.append(
            Row(
                f"overview and kernel table of {library.name} ({size:.0f} MB)",
                f"{best.wall_s:.1f} s, {best.cpu_s:.1f} s of CPU, {peak:.0f} MB",
                "<= 10 s, <= 1000 MB",
                held and peak <= 1000,
                f"best of 3; memory: the most of 3{how}",
            )
        )
    built = subprocess.run(
        [kiln, "build", ROOT / "benchmarks/add/add_kiln.cu", "--arch", "9.0", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    add = json.loads(built.stdout)["library"]
    runs = [cost_of(kiln, "inspect", add, "--overview") for _ in range(21)]
    wall, cpu = median(run.wall_s for run in runs) * 1e3, median(run.cpu_s for run in runs) * 1e3
    seen = f"{wall:.1f} ms, {cpu:.1f} ms of CPU"
    held, how = judged(wall, cpu, 30)
    rows.append(
        Row(
            "overview of the add library",
            seen,
            "< 30 ms",
            held,
            f"median of 21, a process each{how}",
        )
    )
    page = folder / "add.html"
    subprocess.run([kiln, "inspect", add, "--html", page], check=True, stdout=subprocess.DEVNULL)
    size = page.stat().st_size
    rows.append(
        Row(
            "its page",
            f"{size / 1e3:.0f} kB",
            "< 1 MB",
            size < 1_000_000,
            "`--html`: all views, sources in it",
        )
    )
    return rows


def comparisons(kiln: Path, library: Path | None, quick: bool) -> list[Row]:
    rows = [
        comparison(
            "images byte for byte as cuobjdump's; spills as `ptxas -v`'s",
            "compare_cuobjdump.py", "--kiln", kiln, "--builds", *(["--quick"] if quick else []),
        ),
        comparison("opcodes and source lines as nvdisasm's", "compare_sass.py", "--kiln", kiln),
        comparison(
            "symbols, libraries, wheel tag as nm's, readelf's, ldd's, auditwheel's",
            "compare_symbols.py", "--kiln", kiln, "--count", 200 if quick else 320,
            bar="none, 200 libraries",
        ),
    ]  # fmt: skip
    if library:
        words = ["--sample", "sm_90a"] if quick else []
        rows.append(
            comparison(
                f"registers, stack, shared memory as `cuobjdump -res-usage`'s, {library.name}",
                "compare_cuobjdump.py", "--kiln", kiln, *words, "--resources", library,
            )
        )  # fmt: skip
    return rows


def find_library() -> Path | None:
    spec = importlib.util.find_spec("torch")
    path = Path(spec.origin).parent / "lib/libtorch_cuda.so" if spec and spec.origin else None
    return path if path and path.is_file() else None


def page(rows: list[Row], facts: dict[str, str], quick: bool) -> str:
    text = (
        "# What `kiln inspect` agrees with, and what it costs\n\nWritten by "
        "`benchmarks/inspect_bars.py"
    )
    text += " --quick`: of the builds and of torch's kernels samples.\n\n" if quick else "`.\n\n"
    text += "| what | seen | bar | | how |\n|---|---|---|---|---|\n"
    for row in rows:
        text += (
            f"| {row.what} | {row.seen} | {row.bar} | {'PASS' if row.held else 'FAIL'} | "
            f"{row.how} |\n"
        )
    return (
        text
        + "\n| machine | |\n|---|---|\n"
        + "".join(f"| {name} | {value} |\n" for name, value in facts.items())
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Does kiln inspect agree with other tools, and what does it cost?"
    )
    parser.add_argument("--kiln", type=Path, default=ROOT / "build/release/stage/kiln/bin/kiln")
    parser.add_argument("--library", type=Path, default=find_library())
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    kiln = given.kiln.resolve()
    facts = machine()
    for tool in ("cuobjdump", "nvdisasm"):
        found = subprocess.run(
            ["which", tool], capture_output=True, text=True, env=environment()
        ).stdout.strip()
        facts[tool] = first_line([found or tool, "--version"], r"V([\d.]+)")
    with tempfile.TemporaryDirectory(prefix="kiln-bars-") as folder:
        rows = costs(kiln, given.library, Path(folder)) + comparisons(
            kiln, given.library, given.quick
        )
    text = page(rows, facts, given.quick)
    print(text)
    if given.write:
        given.write.mkdir(parents=True, exist_ok=True)
        (given.write / "inspect.md").write_text(text)
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
