# SPDX-License-Identifier: Apache-2.0
"""What does a load, and a call, of a ready library cost beside torch? Prints JSON.

calls.py load LIBRARY NAME    seconds of torch.ops.load_library in a process that has torch and
                              nothing of kiln yet
calls.py host NOOP NAME       seconds of a call on 16-element CPU tensors: torch.add, and an op that
                              does all but launch
calls.py gpu ADD NAME         seconds of a call on 16-element CUDA tensors: torch.add, and an op
                              that adds

NAME is the namespace of the library's ops.
"""

from __future__ import annotations

import json
import os
import sys
import time

CALLS = 2000
ROUNDS = 25


def seconds_a_call(function, a, b, wait) -> float:
    """A batch is enqueued, then waited for."""
    for _ in range(CALLS // 10):
        function(a, b)
    wait()
    start = time.perf_counter()
    for _ in range(CALLS):
        function(a, b)
    wait()
    return (time.perf_counter() - start) / CALLS


def in_turns(ways, a, b, wait) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, function in ways.items():
            seconds[name].append(seconds_a_call(function, a, b, wait))
    return seconds


def load(library: str, _namespace: str) -> dict[str, list[float]]:
    import torch

    start = time.perf_counter()
    torch.ops.load_library(library)
    return {"load": [time.perf_counter() - start]}


def host(library: str, namespace: str) -> dict[str, list[float]]:
    os.environ["KILN_DEVICE"] = "engine"  # where there is a GPU, CPU tensors are served only then
    return beside_torch_add(library, namespace, "noop", "cpu", lambda: None)


def gpu(library: str, namespace: str) -> dict[str, list[float]]:
    import torch

    return beside_torch_add(library, namespace, "add", "cuda", torch.cuda.synchronize)


def beside_torch_add(
    library: str, namespace: str, name: str, device: str, wait
) -> dict[str, list[float]]:
    """torch.add; the op as torch alone gives it; the op as kiln gives it."""
    import torch

    import kiln

    torch.set_num_threads(1)
    torch.ops.load_library(library)
    alone = getattr(getattr(torch.ops, namespace), name)
    module = kiln.load(library)
    a, b = torch.randn(16, device=device), torch.randn(16, device=device)
    return in_turns(
        {"torch.add": torch.add, "torch.ops": alone, "kiln": getattr(module, name)}, a, b, wait
    )


if __name__ == "__main__":
    print(json.dumps({"load": load, "host": host, "gpu": gpu}[sys.argv[1]](*sys.argv[2:])))
