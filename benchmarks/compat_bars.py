#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a source with torch/extension.h cost through the compat headers, beside torch's own
way? One run, one machine.

  make compat-bars                                  the table; torch's load alone takes a minute and
                                                    3 GB
  make compat-bars BARS="--write docs/results"      and compat-bars.md (compat-bars-gpu.md where
                                                    there is a GPU)

benchmarks/add/add_torch.cu is built from nothing by kiln.load and by
torch.utils.cpp_extension.load, each in a process of its own that has imported torch already;
class_torch.cpp, which binds a class, by kiln.load alone. CPU
seconds are those of everything that the call started; the largest process is the largest of those,
that Python itself apart.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bars import Bar, at_most, not_measured, readable, reason, show, verdict  # noqa: E402
from builds import ARCH, GENCODE, SOURCES, empty_folder  # noqa: E402
from sampling import machine, ratio  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SOURCE = SOURCES / "add_torch.cu"
Costs = dict[str, list[dict[str, float]]]


def cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def load_here(way: str, folder: str) -> None:
    """In a process of its own: loads, calls, prints what the load cost."""
    import torch

    if way in ("kiln", "class"):
        import kiln

        load = kiln.load
    else:
        from torch.utils import cpp_extension

        load = cpp_extension.load
    before, own, start = cpu_seconds_of_children(), time.process_time(), time.perf_counter()
    source = SOURCES / "class_torch.cpp" if way == "class" else SOURCE
    module = load(name="bars_add", sources=[str(source)], build_directory=folder)
    seconds = time.perf_counter() - start
    cpu = cpu_seconds_of_children() - before + time.process_time() - own
    print(json.dumps({"seconds": seconds, "cpu": cpu}))
    if way == "class":
        assert module.Adder(2).added(torch.ones(2)).tolist() == [3, 3]
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.arange(1000.0, device=device)
    if way == "kiln" or device == "cuda":  # torch's own build has no kernels for a CPU
        assert torch.equal(module.add(x, x), x + x)


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def watch_largest(root: int, ended: threading.Event, peak: list[int]) -> None:
    """The high-water mark of every process below `root`. getrusage cannot tell it: a child counts
    the pages of the Python that it was started from, until it runs a program of its own; here such
    a child is known by its program."""
    own = os.readlink(f"/proc/{root}/exe")
    while not ended.wait(0.01):
        try:
            for pid in descendants(root):
                if os.readlink(f"/proc/{pid}/exe") == own:
                    continue
                status = Path(f"/proc/{pid}/status").read_text()
                mark = next(
                    (line for line in status.splitlines() if line.startswith("VmHWM")),
                    "VmHWM: 0 kB",
                )
                peak[0] = max(peak[0], int(mark.split()[1]) * 1024)
        except (OSError, ValueError):  # one that ended meanwhile
            continue


def cold_load(way: str, scratch: Path) -> dict[str, float]:
    """Seconds and CPU seconds of the call, and the bytes of the largest process that it started."""
    with empty_folder(scratch) as folder:
        (folder / "out").mkdir()
        clean = {
            k: v
            for k, v in os.environ.items()
            if k not in ("MAX_JOBS", "KILN_CACHE_DIR", "KILN_COMPAT")
        }
        environment = clean | {
            "TORCH_CUDA_ARCH_LIST": ARCH,
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        command = [sys.executable, __file__, "--load", way, str(folder / "out")]
        with (folder / "out.txt").open("w+") as out, (folder / "err.txt").open("w+") as err:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
            peak, ended = [0], threading.Event()
            watcher = threading.Thread(target=watch_largest, args=(process.pid, ended, peak))
            watcher.start()
            process.wait()
            ended.set()
            watcher.join()
            out.seek(0)
            err.seek(0)
            if process.returncode != 0:
                raise RuntimeError((out.read() + err.read())[-2000:])
            return json.loads(out.read().splitlines()[-1]) | {"peak": peak[0]}


def compile_cost(source: Path, flags: list[str], scratch: Path) -> dict[str, float]:
    """nvcc alone, to an object."""
    with empty_folder(scratch) as folder:
        command = [
            "nvcc",
            "-c",
            "-Xcompiler",
            "-fPIC",
            *GENCODE[:2],
            *flags,
            f"-I{SOURCES}",
            str(source),
            "-o",
            str(folder / "o.o"),
        ]
        before, start = cpu_seconds_of_children(), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return {"seconds": time.perf_counter() - start, "cpu": cpu_seconds_of_children() - before}


def taken(costs: Costs, way: str, what: str) -> list[float]:
    return [cost[what] for cost in costs[way]]


def load_bars(scratch: Path, repetitions: int, torch_too: bool) -> list[Bar]:
    what = (
        "an add with torch/extension.h, unchanged, by `kiln.load`, cold, beside "
        "`torch.utils.cpp_extension.load`"
    )
    cold_load("kiln", scratch)  # fills the file cache
    costs: Costs = {"kiln": [cold_load("kiln", scratch) for _ in range(repetitions)]}
    if not torch_too:
        told = readable(median(taken(costs, "kiln", "seconds")))
        return [
            not_measured(
                what,
                "at least 30x faster",
                f"kiln's own took {told}; without --kiln-only torch's is measured too",
            )
        ]
    costs["torch"] = [cold_load("torch", scratch)]
    costs["kiln"] += [
        cold_load("kiln", scratch) for _ in range(repetitions)
    ]  # before and after torch's minute
    bars = []
    for quantity, wanted, limit in (
        ("seconds", "at least 30x faster", 30.0),
        ("cpu", "stated", None),
    ):
        kiln, torch = (
            median(taken(costs, "kiln", quantity)),
            median(taken(costs, "torch", quantity)),
        )
        name = what if limit else what + ": CPU seconds"
        bar = Bar(
            name, wanted, f"{readable(kiln)}: {torch / kiln:.1f}x", readable(torch), torch / kiln
        )
        bar.met = torch / kiln >= limit if limit else None
        bar.samples = {way: taken(costs, way, quantity) for way in costs}
        bars.append(bar)
    kiln, torch = median(taken(costs, "kiln", "peak")), median(taken(costs, "torch", "peak"))
    bar = Bar(
        what + ": the largest process",
        "at most a fifth",
        f"{kiln / 1e6:.0f} MB: {kiln / torch:.3f}x",
        f"{torch / 1e6:.0f} MB",
    )
    bar.samples = {way: taken(costs, way, "peak") for way in costs}
    return [*bars, at_most(bar, kiln / torch, 0.2)]


def class_bar(scratch: Path, repetitions: int) -> list[Bar]:
    cold_load("class", scratch)
    costs: Costs = {"class": [cold_load("class", scratch) for _ in range(repetitions)]}
    seconds, cpu = (median(taken(costs, "class", what)) for what in ("seconds", "cpu"))
    bar = Bar(
        "a source with `py::class_`, unchanged, by `kiln.load`, cold",
        "at most 6 s",
        f"{readable(seconds)} ({readable(cpu)} of CPU time)",
        "",
    )
    bar.samples = {what: taken(costs, "class", what) for what in ("seconds", "cpu")}
    return [at_most(bar, seconds, 6.0)]


def header_bar(stage: Path, scratch: Path, repetitions: int) -> list[Bar]:
    """As `kiln build` compiles each: C++17 with the compat headers, C++20 with kiln/op.h."""
    include = f"-I{stage / 'include'}"
    compat = [
        "-std=c++17",
        "-O3",
        "-DTORCH_EXTENSION_NAME=bars_add",
        f"-I{stage / 'compat'}",
        include,
    ]
    ways = {
        "compat": (SOURCE, compat),
        "op.h": (SOURCES / "add_kiln.cu", ["-std=c++20", "-O3", include]),
    }
    costs: Costs = {name: [] for name in ways}
    for number in range(1 + repetitions):
        for name, (source, flags) in ways.items():
            cost = compile_cost(source, flags, scratch)
            if number:
                costs[name].append(cost)
    value = ratio(taken(costs, "compat", "cpu"), taken(costs, "op.h", "cpu"))
    wall = ratio(taken(costs, "compat", "seconds"), taken(costs, "op.h", "seconds"))
    told = (
        f"{readable(median(taken(costs, 'compat', 'cpu')))}: {value:.2f}x ({wall:.2f}x by the "
        f"clock)"
    )
    bar = Bar(
        "`nvcc -c` of the add with the compat headers, beside the add with kiln/op.h: CPU seconds",
        "at most 2.0x",
        told,
        readable(median(taken(costs, "op.h", "cpu"))),
    )
    bar.samples = {name: taken(costs, name, "cpu") for name in costs}
    return [at_most(bar, value, 2.0)]


def markdown(bars: list[Bar], facts: dict[str, str]) -> str:
    lines = [
        "# Bars of the compat headers",
        "",
        "What does a source with torch/extension.h cost through kiln, beside torch's own way? "
        "Written by",
    ]
    lines += [
        '`make compat-bars BARS="--write docs/results"`. Medians of one run; torch\'s load is '
        "measured once.",
        "",
    ]
    lines += ["| what | wanted | measured | beside | |", "|---|---|---|---|---|"]
    lines += [f"| {b.what} | {b.wanted} | {b.measured} | {b.beside} | {verdict(b)} |" for b in bars]
    lines += ["", "| machine | |", "|---|---|"] + [
        f"| {name} | {value} |" for name, value in facts.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="What sources with torch's headers cost, and whether the bars are met."
    )
    parser.add_argument("--repetitions", type=int, default=5, help="kept rounds of each (5)")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="DIR",
        help="write compat-bars.md, or compat-bars-gpu.md, there",
    )
    parser.add_argument(
        "--stage", type=Path, default=ROOT / "build/release/stage", help="the package to measure"
    )
    parser.add_argument("--kiln-only", action="store_true", help="without torch's minute")
    parser.add_argument("--headers-only", action="store_true", help="the headers alone")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a bar is not met")
    parser.add_argument("--load", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        load_here(*given.load)
        return 0
    stage = given.stage.resolve()
    os.environ["PYTHONPATH"] = str(stage)
    scratch = ROOT / "build/bars"
    scratch.mkdir(parents=True, exist_ok=True)
    facts = machine()
    for name, value in facts.items():
        print(f"{name}: {value}")
    bars: list[Bar] = []
    try:
        bars += header_bar(stage / "kiln", scratch, given.repetitions)
        show(bars[0])
        if not given.headers_only:
            bars += class_bar(scratch, given.repetitions)
            bars += load_bars(scratch, given.repetitions, not given.kiln_only)
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        print(f"error: the bars could not be measured\n  why: {reason(error)}", file=sys.stderr)
        return 1
    for bar in bars[1:]:
        show(bar)
    if given.write:
        given.write.mkdir(parents=True, exist_ok=True)
        page = given.write / ("compat-bars.md" if facts["GPU"] == "none" else "compat-bars-gpu.md")
        page.write_text(markdown(bars, facts))
        print(f"written: {page}", file=sys.stderr)
    return 1 if given.strict and any(bar.met is False for bar in bars) else 0


if __name__ == "__main__":
    sys.exit(main())
