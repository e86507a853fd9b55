# SPDX-License-Identifier: Apache-2.0
"""Who runs a program: the engine, through build/.../kiln_engine_run_ptx, or a GPU?"""

from __future__ import annotations

import multiprocessing
import subprocess
import tempfile
from pathlib import Path

import gpu
from cases import Case


class Engine:
    name = "engine"
    ptx_version = "9.0"

    def __init__(self, program: Path) -> None:
        self.program = program
        self.folder = tempfile.TemporaryDirectory()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self,
        text: str,
        memory: bytes,
        block: int,
        grid: int = 1,
        cluster: int = 1,
        tensor: list[int] | None = None,
    ) -> bytes:
        at = Path(self.folder.name)
        (at / "program.ptx").write_text(text)
        (at / "memory").write_bytes(memory)
        job = [at / "program.ptx", at / "memory", block, grid, cluster, 0]
        if tensor:
            (at / "map").write_text(" ".join(str(number) for number in tensor))
            job.append(at / "map")
        assert self.process.stdin and self.process.stdout
        print(*job, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            code = self.process.wait()
            self.start()
            raise RuntimeError(f"the engine's process ended with {code}")
        if answer != "ok":
            raise RuntimeError(answer)
        return (at / "memory").read_bytes()


class Gpu:
    """A new process, hence a new context, after each failure."""

    name = "gpu"
    limit_s = 30.0

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        fresh = multiprocessing.get_context("spawn")
        self.channel, other = fresh.Pipe()
        self.process = fresh.Process(target=gpu.serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.ptx_version = self.answer()

    def answer(self) -> object:
        """What the process sent; after a failure it is gone."""
        try:
            ended = self.channel.poll(self.limit_s)
            found = (
                self.channel.recv() if ended else gpu.GpuError(f"no end in {self.limit_s:.0f} s")
            )
        except EOFError:
            found = gpu.GpuError("its process ended")
        if isinstance(found, gpu.GpuError):
            self.process.kill()
            self.process.join()
            raise found
        return found

    def run(
        self,
        text: str,
        memory: bytes,
        block: int,
        grid: int = 1,
        cluster: int = 1,
        tensor: list[int] | None = None,
    ) -> bytes:
        """The memory after kernel `k` of this text has run on it."""
        if not self.process.is_alive():
            self.start()
        self.channel.send((text, memory, block, grid, cluster, tensor))
        return bytes(self.answer())


def run_case(runner: Engine | Gpu, case: Case) -> bytes:
    tensor = list(case.tensor)
    if tensor:
        tensor[2] += case.scratch_at
    return runner.run(
        case.program(runner.ptx_version),
        bytes(case.memory()),
        case.block,
        case.grid,
        case.cluster,
        tensor or None,
    )
