# SPDX-License-Identifier: Apache-2.0
"""What did kernels do, line by line? kiln.counters runs a function on the engine and counts.

    seen = kiln.counters(ops.my_add, x, y)
    assert seen.lines["add.cu:12"].sectors_per_request == 4
    print(seen)

The numbers do not depend on the machine or on the time: a test can ask for equality.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Callable

from ._launch.engine import need_engine
from .command import checked_command
from .errors import KilnError, split_error


class Numbers:
    """Metrics as attributes: `line.sectors_per_request`. What did not happen is 0."""

    def __init__(self, values: dict[str, float], known: frozenset[str]) -> None:
        self.metrics = values
        self._known = known

    def __getattr__(self, name: str) -> float:
        if name.startswith("_") or (name not in self.metrics and name not in self._known):
            raise AttributeError(f"there is no metric '{name}'; .metrics has those that are not 0")
        return self.metrics.get(name, 0)

    def __getitem__(self, name: str) -> float:
        """Also names of Nsight Compute: `launch["dram__bytes_read.sum"]`."""
        if name not in self.metrics and name not in self._known:
            raise KeyError(name)
        return self.metrics.get(name, 0)


class Line(Numbers):
    """What the instructions of one source line did."""

    def __init__(self, value: dict[str, Any], known: frozenset[str]) -> None:
        super().__init__(value["metrics"], known)
        self.at: str = value["at"]
        self.function: str = value["function"]
        self.inlined_at: list[str] = value["inlined_at"]

    def __repr__(self) -> str:
        return f"Line({self.at}, {self.metrics})"


class _Lines(Mapping[str, Line]):
    def __init__(self, lines: list[Line]) -> None:
        self._lines = {line.at: line for line in lines}

    def __getitem__(self, at: str) -> Line:
        if at not in self._lines:
            ran = ", ".join(self._lines) or "none"
            raise KeyError(f"no instruction of {at} ran; lines that did: {ran}")
        return self._lines[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


class Launch(Numbers):
    """One launch of a kernel."""

    def __init__(self, value: dict[str, Any], known: frozenset[str]) -> None:
        super().__init__(value["metrics"], known)
        self.kernel: str = value["kernel"]
        self.grid: list[int] = value["grid"]
        self.block: list[int] = value["block"]
        self.lines: Mapping[str, Line] = _Lines([Line(one, known) for one in value["lines"]])
        self.resources: dict[str, Any] | None = value["resources"]
        self.bound: dict[str, Any] = value["bound"]
        self.advice: list[dict[str, str]] = value["advice"]


class Counters:
    """What kiln.counters saw. `json` is what `kiln counters --json` prints."""

    def __init__(self, run: str, gpu: str) -> None:
        self._run, self._gpu = run, gpu
        self.json: dict[str, Any] = json.loads(self._command("--json"))
        known = frozenset(
            fact["name"] for fact in self.json["facts"] if fact["tag"] != "unavailable"
        )
        self.launches = [Launch(one, known) for one in self.json["launches"]]
        # Of all launches together.
        self.lines: Mapping[str, Line] = _Lines([Line(one, known) for one in self.json["lines"]])

    def __str__(self) -> str:
        return self._command().rstrip("\n")

    def html(self) -> str:
        """One self-contained page: source with heat, PTX, the addresses of a warp."""
        return self._command("--html", "-")

    def _command(self, *words: str) -> str:
        with tempfile.TemporaryDirectory(prefix="kiln-counters-") as folder:
            file = Path(folder) / "run.jsonl"
            file.write_text(self._run)
            command = [str(checked_command()), "counters", str(file), "--gpu", self._gpu, *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KilnError(*split_error(done.stderr.strip() or done.stdout.strip()))
        return done.stdout


def counters(function: Callable[..., Any], *args: Any, gpu: str = "H200", **more: Any) -> Counters:
    """Calls function(*args) on the engine and counts what its kernels do, for the caches, the
    occupancy and the bound of `gpu`. Tensors are CPU tensors, also where there is a GPU."""
    with tempfile.TemporaryDirectory(prefix="kiln-counters-") as folder:
        file = Path(folder) / "run.jsonl"
        with _counting(file, gpu):
            function(*args, **more)
        text = file.read_text() if file.exists() else ""
    return Counters(text, gpu)


@contextlib.contextmanager
def _counting(file: Path, gpu: str) -> Iterator[None]:
    engine = need_engine()
    described = json.loads(
        subprocess.run(
            [str(checked_command()), "counters", "--gpus", "--json"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    caches = {one["name"].lower(): one["caches"] for one in described}
    if gpu.lower() not in caches:
        raise KilnError(
            f"unknown GPU '{gpu}'",
            f"known GPUs: {', '.join(one['name'] for one in described)}",
            "use the one that is most like it; kiln counters --gpus describes them",
        )
    wanted = {"KILN_ENGINE_CACHES": caches[gpu.lower()], "KILN_DEVICE": "engine"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        if engine.count_launches(str(file).encode()):
            raise KilnError(
                "cannot count kernels", f"{file} cannot be written", "set TMPDIR to another folder"
            )
        yield
    finally:
        engine.count_launches(None)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
