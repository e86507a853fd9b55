# SPDX-License-Identifier: Apache-2.0
"""How long does each stage of a first call take in Python? One fresh process of `kiln bench
--cold`.

python -m kiln._processes.cold REQUEST.json ANSWER.json
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable


class Stages:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def time(self, name: str, body: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        try:
            value = body()
        except Exception as error:  # a stage that cannot be had is a row that says why
            self.rows.append(
                {
                    "name": name,
                    "ns": -1,
                    "why": f"{type(error).__name__}: {str(error).splitlines()[0]}",
                }
            )
            return None
        self.rows.append({"name": name, "ns": (time.perf_counter() - began) * 1e9, "why": ""})
        return value

    def skip(self, name: str, why: str) -> None:
        self.rows.append({"name": name, "ns": -1, "why": why})


def interpreter_ns() -> float:
    """From the start of this process to here, by the kernel's clock."""
    ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    import os

    started = ticks / os.sysconf("SC_CLK_TCK")
    return max(0.0, (time.clock_gettime(time.CLOCK_BOOTTIME) - started) * 1e9)


def run(request: dict[str, Any]) -> dict[str, Any]:
    stages = Stages()
    stages.rows.append({"name": "start of Python", "ns": interpreter_ns(), "why": ""})
    torch = stages.time("import torch", lambda: __import__("torch"))
    stages.time("import kiln", lambda: __import__("kiln.loader"))
    from .._argument_text import arguments_of
    from ..loader import load
    from ..modules import library_of
    from ..place import device

    where = device()
    on_gpu = where == "cuda"
    gpu_stages: dict[str, Callable[[], Any]] = {
        "context": torch.cuda.init,
        "first allocation": lambda: (torch.empty(1 << 20, device="cuda"), torch.cuda.synchronize()),
        "second allocation": lambda: (
            torch.empty(1 << 22, device="cuda"),
            torch.cuda.synchronize(),
        ),
        "stream": torch.cuda.Stream,
        "cuBLAS handle": torch.cuda.current_blas_handle,
        "cuDNN handle": lambda: torch.nn.functional.conv2d(
            torch.ones(1, 1, 8, 8, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda")
        ),
    }
    for name, body in gpu_stages.items():
        if on_gpu:
            stages.time(name, body)
        else:
            stages.skip(name, "skipped, no GPU")
    module = stages.time("load of the library", lambda: load(request["library"]))
    op = getattr(module, request["op"].split(".")[0])
    args, kwargs = arguments_of(request["arguments"], 0, where, library_of(module), request["op"])

    def wait() -> None:
        if on_gpu:
            torch.cuda.synchronize()

    wait()
    stages.time("first call", lambda: op(*args, **kwargs))
    stages.time("wait for it", wait)
    stages.time("second call", lambda: (op(*args, **kwargs), wait()))
    steady = []
    for _ in range(50):
        began = time.perf_counter()
        op(*args, **kwargs)
        wait()
        steady.append((time.perf_counter() - began) * 1e9)
    stages.rows.append({"name": "steady call", "ns": statistics.median(steady), "why": ""})
    return {"kind": request["kind"], "stages": stages.rows}


def main(request_path: str, answer_path: str) -> int:
    try:
        answer = run(json.loads(Path(request_path).read_text()))
    except Exception as error:
        answer = {
            "error": {"what": "no stages of Python", "why": f"{type(error).__name__}: {error}"}
        }
    whole = Path(answer_path + ".part")
    whole.write_text(json.dumps(answer))
    whole.rename(answer_path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
