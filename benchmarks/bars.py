#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do a build, a load and a call cost, and are kiln's own bars met? Ratios come from one run on
one machine.

make bars                       the table
make bars BARS="--full"         and torch's cpp_extension.load, which takes a minute a time
make bars BARS="--write DIR"    and DIR/bars-cpu.md and .json (bars-gpu where there is a GPU)
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))
from builds import SOURCES, Builds, twenty_ops  # noqa: E402
from sampling import in_turns, machine, ratio, seconds_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Bar:
    what: str
    wanted: str  # "at most 1.15x", for the reader
    measured: str = ""
    beside: str = ""
    value: float | None = None  # what the bar is about: a ratio, milliseconds, bytes
    met: bool | None = None  # None: not measured, and `measured` says why
    samples: dict[str, list[float]] = field(default_factory=dict)


def at_most(bar: Bar, value: float, limit: float) -> Bar:
    bar.value, bar.met = value, value <= limit
    return bar


def readable(seconds: float) -> str:
    if seconds < 1e-4:
        return f"{seconds * 1e6:.2f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def compared(what: str, limit: float, samples: dict[str, list[float]], of: str, to: str) -> Bar:
    """`of` takes at most `limit` times of `to`."""
    value = ratio(samples[of], samples[to])
    bar = Bar(
        what,
        f"at most {limit}x",
        f"{readable(median(samples[of]))}: {value:.2f}x",
        readable(median(samples[to])),
    )
    bar.samples = {of: samples[of], to: samples[to]}
    return at_most(bar, value, limit)


def faster(what: str, times: float, samples: dict[str, list[float]], of: str, to: str) -> Bar:
    """`of` is at least `times` as fast as `to`."""
    value = ratio(samples[to], samples[of])
    bar = Bar(what, f"at least {times}x faster",
              f"{readable(median(samples[of]))}: {value:.1f}x faster",
              readable(median(samples[to])))  # fmt: skip
    bar.samples = {of: samples[of], to: samples[to]}
    bar.value, bar.met = value, value >= times
    return bar


def not_measured(what: str, wanted: str, why: str) -> Bar:
    return Bar(what, wanted, f"not measured: {why}")


def reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines or [type(error).__name__]
    return telling[-1][:160]


# ---- the bars ------------------------------------------------------------------------------------


def build_bars(builds: Builds, repetitions: int) -> list[Bar]:
    what = "cold `kiln build` of the add kernel, beside `nvcc -shared` without kiln"
    samples = in_turns({"kiln": builds.cold_kiln, "nvcc": builds.cold_nvcc}, repetitions)
    return [compared(what, 1.15, samples, "kiln", "nvcc")]


def other_build_bars(builds: Builds, repetitions: int, full: bool) -> list[Bar]:
    bars = []
    ways = [
        ("tvm_ffi", "TVM-FFI's `load_inline`", 1.5, repetitions),
        ("torch_load_inline", "torch's `load_inline(no_implicit_headers=True)`", 1.5, repetitions),
        ("torch_load", "`torch.utils.cpp_extension.load`", 30.0, 1),
    ]
    for way, name, times, rounds in ways:
        what, wanted = (
            f"cold `kiln build` of the add kernel, beside {name}",
            f"at least {times:g}x faster",
        )
        if way == "torch_load" and not full:
            bars.append(not_measured(what, wanted, "takes a minute; ask with --full"))
            continue
        try:
            site = tvm_ffi_site(builds.scratch) if way == "tvm_ffi" else None
            pair = {
                "kiln": builds.cold_kiln,
                way: lambda way=way, site=site: builds.in_python(way, site),
            }
            samples = in_turns(
                pair, rounds, discard=0
            )  # the file cache is warm: kiln's own bars came before
            bars.append(faster(what, times, samples, "kiln", way))
        except (RuntimeError, subprocess.SubprocessError, OSError) as error:
            bars.append(not_measured(what, wanted, reason(error)))
    return bars


def tvm_ffi_site(scratch: Path) -> Path | None:
    """Where tvm_ffi is: this Python has it (None), it was put into .carry/tvm-ffi, or pip brings
    it."""
    if importlib.util.find_spec("tvm_ffi"):
        return None
    for folder in (ROOT / ".carry/tvm-ffi", scratch / "tvm-ffi"):
        if (folder / "tvm_ffi").exists():
            return folder
    seconds_of(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--target",
            str(scratch / "tvm-ffi"),
            "apache-tvm-ffi",
        ]
    )
    return scratch / "tvm-ffi"


def header_bars(builds: Builds, repetitions: int) -> list[Bar]:
    twenty, twenty_bare = twenty_ops(builds.scratch)
    one = in_turns(
        {
            "op.h": lambda: builds.compile_only(SOURCES / "add_kiln.cu"),
            "bare": lambda: builds.compile_only(SOURCES / "add_bare.cu"),
        },
        repetitions,
    )
    many = in_turns(
        {
            "op.h": lambda: builds.compile_only(twenty),
            "bare": lambda: builds.compile_only(twenty_bare),
        },
        repetitions,
    )
    return [
        compared("`nvcc -c` of one op with op.h, beside a bare .cu", 1.15, one, "op.h", "bare"),
        compared(
            "`nvcc -c` of twenty ops with op.h, beside a bare .cu", 1.35, many, "op.h", "bare"
        ),
    ]


def command_bars(builds: Builds, repetitions: int) -> list[Bar]:
    cache = builds.scratch / "warm"
    source = SOURCES / "add_kiln.cu"
    builds.kiln_build(source, cache)
    environment = builds.environment(cache)
    samples = in_turns(
        {
            "no change": lambda: seconds_of(
                [str(builds.kiln), "build", str(source), "--arch", "9.0"], environment
            ),
            "help": lambda: seconds_of([str(builds.kiln), "--help"], environment),
            "true": lambda: seconds_of(["/bin/true"], environment),
        },
        repetitions * 4,
    )
    bars = []
    for what, name, limit_ms in (
        ("`kiln build` with nothing changed", "no change", 40),
        ("`kiln --help`", "help", 10),
    ):
        seconds = median(samples[name])
        bar = Bar(
            what,
            f"under {limit_ms} ms",
            readable(seconds),
            f"{readable(median(samples['true']))} for /bin/true",
        )
        bar.samples = {name: samples[name]}
        bars.append(at_most(bar, seconds * 1e3, limit_ms))
    return bars


def run_calls(mode: str, library: tuple[str, str]) -> dict[str, list[float]]:
    done = subprocess.run(
        [sys.executable, str(SOURCES.parent / "calls.py"), mode, *library],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def library_bars(builds: Builds, repetitions: int, has_gpu: bool) -> list[Bar]:
    cache = builds.scratch / "warm"
    add = builds.kiln_build(SOURCES / "add_kiln.cu", cache)
    noop = builds.kiln_build(SOURCES / "noop.cu", cache)
    size = Path(add[0]).stat().st_size
    bars = [
        at_most(
            Bar(
                "library with one float add op, one arch and PTX",
                "under 120 KB, of which symbols for other callers 40",
                f"{size / 1000:.1f} KB",
            ),
            size,
            120_000,
        )
    ]

    loads = [run_calls("load", add)["load"][0] for _ in range(repetitions)]
    bar = Bar(
        "`torch.ops.load_library`, in a fresh process",
        "under 1.5 ms",
        readable(median(loads)),
        samples={"load": loads},
    )
    bars.append(at_most(bar, median(loads) * 1e3, 1.5))

    calls = run_calls("host", noop)
    what = "an op's call on 16-element CPU tensors (engine excluded), beside torch.add"
    bars.append(compared(what + ", as torch.ops", 1.4, calls, "torch.ops", "torch.add"))
    bars.append(compared(what + ", as kiln's callable", 1.4, calls, "kiln", "torch.add"))

    what = "an op's whole call on 16-element CUDA tensors, beside torch.add"
    if has_gpu:
        calls = run_calls("gpu", add)
        bars.append(compared(what + ", as torch.ops", 1.08, calls, "torch.ops", "torch.add"))
        bars.append(compared(what + ", as kiln's callable", 1.08, calls, "kiln", "torch.add"))
    else:
        bars.append(not_measured(what, "at most 1.08x", "skipped, no GPU"))
    return bars


# ---- what is shown -------------------------------------------------------------------------------


def verdict(bar: Bar) -> str:
    return {True: "met", False: "NOT MET", None: ""}[bar.met]


def markdown(bars: list[Bar], facts: dict[str, str]) -> str:
    lines = [
        "# Bars",
        "",
        'Written by `make bars BARS="--full --write docs/results"`. Times are medians, ratios '
        "medians of",
    ]
    lines += [
        "neighbouring pairs, all of one run.",
        "",
        "| what | wanted | measured | beside | |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {b.what} | {b.wanted} | {b.measured} | {b.beside} | {verdict(b)} |" for b in bars]
    lines += ["", "| machine | |", "|---|---|"] + [
        f"| {name} | {value} |" for name, value in facts.items()
    ]
    return "\n".join(lines) + "\n"


def show(bar: Bar) -> None:
    beside = f"  (beside {bar.beside})" if bar.beside else ""
    print(
        f"{verdict(bar) or '-':8s} {bar.what}\n"
        f"         {bar.measured}{beside}; wanted {bar.wanted}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description="What a build, a load and a call cost, and whether the bars are met."
    )
    parser.add_argument(
        "--full", action="store_true", help="also torch.utils.cpp_extension.load, a minute a time"
    )
    parser.add_argument(
        "--repetitions", type=int, default=7, help="kept rounds of each comparison (7)"
    )
    parser.add_argument(
        "--write", type=Path, metavar="DIR", help="write bars-cpu or bars-gpu .md and .json there"
    )
    parser.add_argument(
        "--stage", type=Path, default=ROOT / "build/release/stage", help="the package to measure"
    )
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a bar is not met")
    given = parser.parse_args()

    os.environ["PYTHONPATH"] = str(given.stage.resolve())
    package = given.stage.resolve() / "kiln"
    builds = Builds(package / "bin/kiln", package / "include", ROOT / "build/bars")
    facts = machine()
    has_gpu = facts["GPU"] != "none"
    for name, value in facts.items():
        print(f"{name}: {value}")
    groups = [
        lambda: build_bars(builds, given.repetitions),
        lambda: header_bars(builds, given.repetitions),
        lambda: command_bars(builds, given.repetitions),
        lambda: library_bars(builds, given.repetitions, has_gpu),
        lambda: other_build_bars(builds, max(3, given.repetitions // 2), given.full),
    ]
    bars: list[Bar] = []
    broken = 0
    for group in groups:
        try:
            found = group()
        except (RuntimeError, subprocess.SubprocessError, OSError) as error:
            print(
                f"error: a group of bars could not be measured\n  why: {reason(error)}",
                file=sys.stderr,
            )
            broken += 1
            continue
        for bar in found:
            show(bar)
        bars += found
    if given.write:
        given.write.mkdir(parents=True, exist_ok=True)
        stem = given.write / ("bars-gpu" if has_gpu else "bars-cpu")
        stem.with_suffix(".md").write_text(markdown(bars, facts))
        stem.with_suffix(".json").write_text(
            json.dumps({"machine": facts, "bars": [asdict(b) for b in bars]}, indent=1) + "\n"
        )
        print(f"written: {stem}.md and .json", file=sys.stderr)
    missed = [bar for bar in bars if bar.met is False]
    print(
        f"{sum(1 for b in bars if b.met)} met, {len(missed)} not met, "
        f"{sum(1 for b in bars if b.met is None)} not measured"
    )
    return 1 if broken or (given.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
