# SPDX-License-Identifier: Apache-2.0
"""How fast is a build, from an edit to a callable op, beside nvcc and beside the classic advice?

    python benchmarks/build_bars.py [--write FOLDER] [--repetitions 5] [--kiln PATH]
    python benchmarks/build_bars.py --classic [--write FOLDER]

Every row is a ratio within one run; one that cannot be measured says why. What is compared is done
in turns, in a running Python too, and a run begins when the machine is quiet or 20 seconds have
passed: the page tells which. --classic measures the folklore about torch.utils.cpp_extension again
(all architectures, ninja, a pinned architecture, jobs, ccache): minutes each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Callable

from build_sources import BARE, CUB_KERNEL, CUTE_KERNEL, DEVICE, HEAVY_BARE, HEAVY_OP, PLAIN, edited
from classic_builds import classic_rows, size_for
from sampling import in_turns, machine, ratio, seconds_of

ROOT = Path(__file__).resolve().parents[1]
CARRY = ROOT / ".carry"  # what a machine without a network lacks
ARCH = "9.0"
GENCODE = ["-gencode", "arch=compute_90,code=[sm_90,compute_90]", "-O3", "-std=c++20", "-lineinfo"]
FIVE = "7.5;8.0;8.6;8.9;9.0+PTX"


class Bench:
    def __init__(self, kiln: Path, folder: Path):
        self.kiln, self.folder, self.edits = kiln, folder, 0

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("KILN_CACHE", "NVCC", "TORCH_CUDA")) and k != "MAX_JOBS"
        }
        return kept | {"XDG_CACHE_HOME": str(self.folder / "cache")} | more

    def source(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def build(self, source: Path, *more: str, arch: str = ARCH, **env: str) -> tuple[float, dict]:
        begin = time.perf_counter()
        done = subprocess.run(
            [str(self.kiln), "build", str(source), "--arch", arch, "--json", *more],
            env=self.environment(**env),
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - begin
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return seconds, json.loads(done.stdout)

    def cold(self, source: Path, *more: str, arch: str = ARCH) -> float:
        """From nothing: no build folder, no cache; what the compilers said about themselves is
        known."""
        for name in ("lone", "store"):
            shutil.rmtree(self.folder / "cache/kiln" / name, ignore_errors=True)
        return self.build(source, *more, arch=arch)[0]

    def nvcc(self, source: Path, *flags: str) -> float:
        return seconds_of(
            [
                "nvcc",
                "-shared",
                "-Xcompiler",
                "-fPIC",
                *GENCODE,
                *flags,
                str(source),
                "-o",
                str(self.folder / "x.so"),
            ]
        )

    def edit(self, source: Path, text: str, lane: str, *more: str) -> tuple[float, float]:
        """Seconds of one edit of the kernel's body, and of the compiler's own part of it."""
        self.edits += 1
        source.write_text(edited(text, self.edits))
        seconds, told = self.build(source, "--explain", *more)
        if lane and told["lane"] != lane:
            raise RuntimeError(f"lane {told['lane']} and not {lane}: {told['explain']['why_lane']}")
        return seconds, sum(
            step["seconds"] for step in told["explain"]["steps"] if step["kind"] == "slice"
        )

    def hit(self, source: Path, **env: str) -> float:
        shutil.rmtree(self.folder / "cache/kiln/lone", ignore_errors=True)
        if env:
            shutil.rmtree(self.folder / "cache/kiln/store", ignore_errors=True)
        seconds, told = self.build(source, **env)
        if any(step["cache"] == "made" for step in told["steps"]):
            raise RuntimeError(f"a miss: {told['steps']}")
        return seconds


IN_PROCESS = """
import json, sys, time, pathlib, torch, kiln
source, text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
def edited(n):
    return text.replace("/*edit*/", f"/*edit*/ if (n < -{n + 1}) out[0] = {n}.0f;")
x = torch.ones(1024, device=kiln.device())
source.write_text(edited(1)); module = kiln.load(source, arch=sys.argv[3]); module.scale(x)
n = 1
for _ in sys.stdin:
    n += 1
    source.write_text(edited(n))
    begin = time.perf_counter()
    module.reload()
    module.scale(x)
    print(time.perf_counter() - begin, flush=True)
"""


class RunningPython:
    """Edits of one source that a Python process has loaded: seconds from each to the op's
    answer."""

    def __init__(self, bench: Bench, name: str, content: str):
        source, text = bench.folder / f"{name}.cu", bench.source(f"{name}.txt", content)
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_PROCESS, str(source), str(text), ARCH],
            env=bench.environment(PYTHONPATH=str(bench.kiln.parents[2]), KILN_BIN=str(bench.kiln)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> RunningPython:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def edit(self) -> float:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("edit\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1][-2000:])
        return float(line)


def cute_folder() -> Path | None:
    """Where CuTe's headers are, if they are: PyPI's nvidia-cutlass has them too."""
    roots = [
        os.environ.get("CUTLASS_PATH", ""),
        str(CARRY / "cutlass"),
        os.environ.get("CUDA_HOME", "/usr/local/cuda"),
    ]
    roots += sys.path
    for root in filter(None, roots):
        for inner in ("include", "cutlass_library/source/include", "cutlass/include"):
            if (Path(root) / inner / "cute/tensor.hpp").exists():
                return Path(root) / inner
    return None


class Table:
    """Rows as they are measured; one that cannot be says why, one that comes too late says so."""

    def __init__(self, budget_s: float):
        self.rows: list[dict] = []
        self.end = time.monotonic() + budget_s

    def row(
        self, what: str, seconds: float, beside: str, value: float, bar: float, judged: bool = True
    ) -> None:
        unit = "" if beside else " ms"
        state = ("holds" if value <= bar else "MISSES") if judged else "not judged here"
        self.rows.append(
            {
                "what": what,
                "ms": seconds * 1e3,
                "beside": beside,
                "value": value,
                "bar": bar,
                "unit": unit,
                "state": state,
            }
        )
        print(line_of(self.rows[-1]), flush=True)

    def part(self, name: str, measure: Callable[[], None]) -> None:
        try:
            if time.monotonic() > self.end:
                raise RuntimeError("out of time")
            measure()
        except RuntimeError as error:
            why = str(error).strip().splitlines()
            self.rows.append(
                {"what": name, "state": f"not measured: {why[-1][:120] if why else 'no reason'}"}
            )
            print(line_of(self.rows[-1]), flush=True)


def line_of(row: dict) -> str:
    if "ms" not in row:
        return f"| {row['what']} | | | | | {row['state']} |"
    digits = 0 if row["unit"] else 2
    value, bar = f"{row['value']:.{digits}f}{row['unit']}", f"{row['bar']:.{digits}f}{row['unit']}"
    return (
        f"| {row['what']} | {row['ms']:.0f} ms | {row['beside']} | {value} | {bar} | "
        f"{row['state']} |"
    )


class Measurement:
    def __init__(self, bench: Bench, table: Table, repetitions: int):
        self.bench, self.table, self.repetitions = bench, table, repetitions
        self.few = max(2, repetitions // 2)
        self.cores = len(os.sched_getaffinity(0))
        self.plain, self.bare = bench.source("plain.cu", PLAIN), bench.source("bare.cu", BARE)
        self.nvcc_s = 0.0

    def run(self) -> None:
        part = self.table.part
        part("full lane, from nothing", self.full_lane)
        part("edit lane, NVRTC slice", self.slice)
        part("edit lane, device chain", self.device_chain)
        part("five architectures + PTX", lambda: self.five("", self.plain, self.repetitions))
        part("nothing changed", self.nothing)
        part("hit after rm -rf build", self.hit)
        part("hit from Redis", self.from_redis)
        part("cub", lambda: self.heavy("cub", CUB_KERNEL + HEAVY_OP, CUB_KERNEL + HEAVY_BARE))
        part("CuTe", self.cute)

    def full_lane(self) -> None:
        times = in_turns(
            {
                "kiln": lambda: self.bench.cold(self.plain),
                "nvcc": lambda: self.bench.nvcc(self.bare),
            },
            self.repetitions,
        )
        self.nvcc_s = median(times["nvcc"])
        self.table.row(
            "full lane, from nothing",
            median(times["kiln"]),
            "nvcc -shared",
            ratio(times["kiln"], times["nvcc"]),
            0.85,
            self.cores >= 4,
        )

    def slice(self) -> None:
        self.bench.cold(self.plain)
        self.bench.edit(self.plain, PLAIN, "device")
        own: list[float] = []

        def by_command() -> float:
            seconds, nvrtc = self.bench.edit(self.plain, PLAIN, "slice")
            own.append(nvrtc)
            return seconds

        with RunningPython(self.bench, "live", PLAIN) as python:
            python.edit()  # shows NVRTC to be right
            times = in_turns({"command": by_command, "python": python.edit}, 2 * self.repetitions)
        own = own[-len(times["command"]) :]
        beside = f"NVRTC's own {median(own) * 1e3:.0f} ms + 60 ms"
        for name, what in (
            ("command", "kiln build"),
            ("python", "to the op's answer in a running Python"),
        ):
            value = median(seconds / (nvrtc + 0.06) for seconds, nvrtc in zip(times[name], own))
            self.table.row(
                f"edit lane, NVRTC slice: {what}", median(times[name]), beside, value, 1.0
            )

    def device_chain(self) -> None:
        source = self.bench.source("device.cu", DEVICE)
        self.bench.build(source)
        with RunningPython(self.bench, "live_device", DEVICE) as python:
            ways = {
                "command": lambda: self.bench.edit(source, DEVICE, "device")[0],
                "nvcc": lambda: self.bench.nvcc(self.bare),
                "python": python.edit,
            }
            times = in_turns(ways, self.repetitions + 2)
        for name, what in (
            ("command", "kiln build"),
            ("python", "to the op's answer in a running Python"),
        ):
            value = ratio(times[name], times["nvcc"])
            self.table.row(
                f"edit lane, device chain: {what}", median(times[name]), "nvcc -shared", value, 0.45
            )

    def five(self, name: str, source: Path, repetitions: int, *more: str) -> None:
        ways = {
            "five": lambda: self.bench.cold(source, *more, arch=FIVE),
            "one": lambda: self.bench.cold(source, *more),
        }
        times = in_turns(ways, repetitions, discard=0 if name else 1)
        self.table.row(
            f"{name}five architectures + PTX",
            median(times["five"]),
            "one architecture",
            ratio(times["five"], times["one"]),
            1.8,
            self.cores >= 8,
        )

    def nothing(self) -> None:
        self.bench.build(self.plain)
        seconds = median(self.bench.build(self.plain)[0] for _ in range(10))
        self.table.row("nothing changed", seconds, "", seconds * 1e3, 40)

    def hit(self) -> None:
        seconds = median(self.bench.hit(self.plain) for _ in range(self.repetitions))
        self.table.row("hit after rm -rf build", seconds, "", seconds * 1e3, 150)

    def from_redis(self) -> None:
        with redis(self.bench.folder) as place:
            if not place:
                raise RuntimeError("no redis-server here")
            env = {"KILN_CACHE_REMOTE": place, "KILN_CACHE_SECRET": "a secret of the benchmark"}
            shutil.rmtree(self.bench.folder / "cache/kiln/store", ignore_errors=True)
            shutil.rmtree(self.bench.folder / "cache/kiln/lone", ignore_errors=True)
            self.bench.build(self.plain, **env)
            seconds = median(self.bench.hit(self.plain, **env) for _ in range(self.repetitions))
            self.table.row("hit from Redis", seconds, "", seconds * 1e3, 250)

    def heavy(self, name: str, op: str, bare: str, *more: str) -> None:
        """The same ratios where the headers are large."""
        source, bare_source = (
            self.bench.source(f"{name}.cu", op),
            self.bench.source(f"{name}_bare.cu", bare),
        )
        cold = {
            "kiln": lambda: self.bench.cold(source, *more),
            "nvcc": lambda: self.bench.nvcc(bare_source, *more),
        }
        times = in_turns(cold, self.few, discard=0)
        beside = median(times["nvcc"])
        self.table.row(
            f"{name}: full lane, from nothing",
            median(times["kiln"]),
            "nvcc -shared",
            ratio(times["kiln"], times["nvcc"]),
            0.85,
            self.cores >= 4,
        )
        try:
            self.bench.edit(source, op, "device", *more)
        except RuntimeError as error:
            print(f"{name}: {error}", flush=True)
            whole = [self.bench.edit(source, op, "", *more)[0] for _ in range(self.few)]
            self.table.row(
                f"{name}: an edit, by the full lane",
                median(whole),
                "nvcc -shared",
                median(whole) / beside,
                0.45,
            )
            self.table.part(
                f"{name}: five architectures", lambda: self.five(f"{name}: ", source, 1, *more)
            )
            return
        try:
            pairs = [self.bench.edit(source, op, "slice", *more) for _ in range(self.few)]
            own = median(own for _, own in pairs)
            self.table.row(
                f"{name}: edit lane, NVRTC slice",
                median(s for s, _ in pairs),
                f"NVRTC's own {own * 1e3:.0f} ms + 60 ms",
                median(s / (o + 0.06) for s, o in pairs),
                1.0,
            )
        except RuntimeError:
            chain = [self.bench.edit(source, op, "device", *more)[0] for _ in range(self.few)]
            self.table.row(
                f"{name}: edit lane, device chain",
                median(chain),
                "nvcc -shared",
                median(chain) / beside,
                0.45,
            )
        self.table.part(
            f"{name}: five architectures", lambda: self.five(f"{name}: ", source, 1, *more)
        )

    def cute(self) -> None:
        folder = cute_folder()
        if not folder:
            raise RuntimeError("no CuTe headers here (CUTLASS_PATH)")
        self.heavy("CuTe", CUTE_KERNEL + HEAVY_OP, CUTE_KERNEL + HEAVY_BARE, f"-I{folder}")


class redis:  # noqa: N801
    """A server of its own while it lasts; None where there is none."""

    def __init__(self, folder: Path):
        self.folder, self.server = folder, None

    def __enter__(self) -> str | None:
        program, env = shutil.which("redis-server"), None
        if not program and (CARRY / "redis/redis-server").exists():
            program, env = (
                str(CARRY / "redis/redis-server"),
                os.environ | {"LD_LIBRARY_PATH": str(CARRY / "redis/lib")},
            )
        if not program:
            return None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.server = subprocess.Popen(
            [program, "--port", str(port), "--save", "", "--dir", str(self.folder)],
            env=env,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        return f"redis://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        if self.server:
            self.server.kill()
            self.server.wait()


QUIET_WAIT_S = 20.0


def busy_share(seconds: float = 1.0) -> float:
    """Of all cores' time, what others use: the load average tells of the last minute."""

    def ticks() -> tuple[int, int]:
        numbers = [
            int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        ]
        return sum(numbers), numbers[3] + numbers[4]

    total, idle = ticks()
    time.sleep(seconds)
    total, idle = (now - then for now, then in zip(ticks(), (total, idle)))
    return 1 - idle / max(1, total)


def wait_for_quiet() -> str:
    """Until others use less than a twentieth of the cores' time, or the time is up; in words for
    the page."""
    begun = time.monotonic()
    while (share := busy_share()) > 0.05 and time.monotonic() - begun < QUIET_WAIT_S:
        pass
    waited = time.monotonic() - begun
    return (
        f"others used {share:.0%} of the cores' time when it began, after {waited:.0f} s of waiting"
    )


HEAD = "| what | time | beside | value | bar | |\n|---|---|---|---|---|---|\n"


def page(rows: list[dict], classic: list[tuple[str, str, str]], facts: dict[str, str]) -> str:
    text = "# Build times\n\nWritten by `benchmarks/build_bars.py`. Every ratio is of one run.\n\n"
    text += HEAD + "".join(line_of(row) + "\n" for row in rows) if rows else ""
    if classic:
        text += (
            f"\n## The classic advice\n\ntorch.utils.cpp_extension with "
            f"{size_for(len(os.sched_getaffinity(0))).told()};\neach line adds to the one above. "
            f"kiln's rows are one kernel as an op.\n\n"
        )
        text += "| what | seconds | folklore |\n|---|---|---|\n"
        text += "".join(
            f"| {what} | {seconds} | {folklore} |\n" for what, seconds, folklore in classic
        )
    return (
        text
        + "\n| machine | |\n|---|---|\n"
        + "".join(f"| {name} | {value} |\n" for name, value in facts.items())
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="What builds cost, beside nvcc.")
    parser.add_argument("--kiln", type=Path, default=ROOT / "build/release/stage/kiln/bin/kiln")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--budget", type=float, default=200, metavar="SECONDS", help="no part begins later (200)"
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FOLDER",
        help="write build.md and build.json, or classic.* there",
    )
    parser.add_argument(
        "--classic", action="store_true", help="the classic advice instead: minutes"
    )
    given = parser.parse_args()
    facts = machine() | {"quiet": wait_for_quiet()}
    table, classic = Table(given.budget), []
    with tempfile.TemporaryDirectory(prefix="kiln-bars-") as folder:
        bench = Bench(given.kiln.resolve(), Path(folder).resolve())
        if given.classic:
            classic = classic_rows(Path(folder), bench)
        else:
            print(HEAD, end="")
            Measurement(bench, table, given.repetitions).run()
    text = page(table.rows, classic, facts)
    print("\n" + text)
    if given.write:
        name = "build-classic" if given.classic else "build"
        given.write.mkdir(parents=True, exist_ok=True)
        (given.write / f"{name}.md").write_text(text)
        told = {"rows": table.rows, "classic": classic, "machine": facts}
        (given.write / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")
    return 1 if any(row["state"] == "MISSES" for row in table.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
