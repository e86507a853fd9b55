# SPDX-License-Identifier: Apache-2.0
"""How is one way compared with another? In turns, in one run, by the median; and on which machine
was that?"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Callable


def in_turns(
    ways: dict[str, Callable[[], float]], repetitions: int, discard: int = 1
) -> dict[str, list[float]]:
    """Seconds of each way, taken A B C A B C ...: a slow minute of the machine falls on all alike.
    The first rounds, which fill the file cache, are not kept."""
    kept: dict[str, list[float]] = {name: [] for name in ways}
    for round_number in range(discard + repetitions):
        for name, way in ways.items():
            seconds = way()
            if round_number >= discard:
                kept[name].append(seconds)
    return kept


def seconds_of(
    command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None
) -> float:
    """From start to exit of a command that must succeed."""
    start = time.perf_counter()
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)}\nexit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return seconds


def ratio(of: list[float], to: list[float]) -> float:
    """The median of the ratios of neighbours in time, which is steadier than the ratio of the
    medians."""
    return median(a / b for a, b in zip(of, to))


def first_line(command: list[str], pattern: str) -> str:
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except OSError:
        return "not here"
    found = re.search(pattern, text)
    return found.group(1) if found else "unknown"


def cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    for line in lines:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    part = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("CPU part")), ""
    )
    return f"{platform.machine()} CPU part {part}".strip()


def machine() -> dict[str, str]:
    """What a figure needs beside it."""
    gpu = first_line(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], r"(.+)"
    )
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": f"{cpu_name()}, {os.cpu_count()} cores, {platform.machine()}",
        "GPU": "none" if gpu in ("not here", "unknown") else gpu,
        "load": f"{os.getloadavg()[0]:.1f} at the start",
        "nvcc": first_line(["nvcc", "--version"], r"V([\d.]+)"),
        "g++": first_line(["g++", "-dumpfullversion"], r"(\S+)"),
        "python": platform.python_version(),
    }
    try:
        from importlib.metadata import version

        facts["torch"] = version("torch")
    except ImportError:
        facts["torch"] = "not here"
    return facts
