# SPDX-License-Identifier: Apache-2.0
"""What is it like to write a kernel with kiln? From an empty folder to an op of PyTorch that is
checked, each step timed.

On the GPU where there is one, else on the engine. Lands in build/demo, by the command that is found
first on PATH.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

FOLDER = Path(__file__).resolve().parents[1] / "build/demo"
NAME = "axpy"
timings: list[tuple[str, float]] = []


@contextmanager
def step(what: str) -> Iterator[None]:
    print(f"\n== {what}", flush=True)
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    timings.append((what, seconds))
    print(f"   {seconds:.3f} s", flush=True)


def command(line: str) -> None:
    """Runs it in the demo's folder and shows both the line and what it printed."""
    print(f"   $ {line}", flush=True)
    done = subprocess.run(
        shlex.split(line), cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    for text in done.stdout.rstrip().splitlines():
        print(f"   {text}")
    if done.returncode != 0:
        print(
            f"error: the demo stops here\n  why: '{line}' ended with exit status {done.returncode}",
            file=sys.stderr,
        )
        sys.exit(1)


def use_in_torch() -> str:
    with step("import PyTorch"):
        import torch

        import kiln

        device = kiln.device()
        where = (
            torch.cuda.get_device_name()
            if device == "cuda"
            else "the engine (no GPU here: the kernel's PTX runs on the CPU)"
        )
        print(f"   torch {torch.__version__}; tensors on '{device}': {where}")
    with step("load it into PyTorch"):
        module = kiln.load(FOLDER / NAME)
        print(f"   {module.axpy.schema}")
    with step("call it"):
        x, y = torch.randn(1 << 16, device=device), torch.randn(1 << 16, device=device)
        out = module.axpy(x, y, 0.1)
        if device == "cuda":
            torch.cuda.synchronize()
        difference = (out - (x + 0.1 * y)).abs().max().item()
        print(
            f"   torch.ops.{NAME}.axpy on {x.numel()} floats: largest difference from torch "
            f"{difference:.1e}"
        )
        if not difference < 1e-5:
            sys.exit("error: the kernel and torch disagree")
    with step("check it: strides, sizes, alignment, poisoned outputs, schema"):
        module.axpy.reference(lambda x, y, alpha=1.0: x + alpha * y)
        report = kiln.test(module.axpy, x[:4096].reshape(64, 64), y[:4096].reshape(64, 64), 1 / 3)
        for line in str(report).splitlines():
            print(f"   {line}")
    with step("compile it with torch.compile(fullgraph=True)"):
        compiled = torch.compile(
            lambda a, b: module.axpy(a, b, 0.1) * 2, fullgraph=True, backend="eager"
        )
        same = torch.equal(compiled(x, y), module.axpy(x, y, 0.1) * 2)
        print(f"   same result: {same}")
        if not same:
            sys.exit("error: the compiled function gives another result")
    return where


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CACHE_HOME"] = str(FOLDER / "cache")
    start = time.perf_counter()
    with step("start a project"):
        command(f"kiln new {NAME}")
    with step("build it"):
        command(f"kiln build {NAME}")
    with step("build it again, nothing changed"):
        command(f"kiln build {NAME}")
    where = use_in_torch()
    with step("call it without Python and without torch"):
        command(f"kiln call {NAME}/{NAME}.cu {NAME} randn:f32:1024x64 ones:f32:1024x64 0.1")
    with step("run it as a program, to debug it"):
        command(f"kiln run {NAME}/main.cu -- 1000")
    with step("look for memory errors and races, and into the kernel, as pages"):
        arguments = f"{NAME} randn:f32:1000 ones:f32:1000 0.1"
        command(f"kiln sanitize {NAME}/{NAME}.cu {arguments} --html sanitize.html")
        command(f"kiln inspect {NAME}/{NAME}.cu --overview --html inspect.html")

    print(f"\nall on {where}\n")
    for what, seconds in timings:
        print(f"{seconds:9.3f} s  {what}")
    print(
        f"{time.perf_counter() - start:9.3f} s  in all; the project is in "
        f"{os.path.relpath(FOLDER / NAME)}"
    )


if __name__ == "__main__":
    main()
