# SPDX-License-Identifier: Apache-2.0
"""Calls ops a given number of times, for who counts instructions from outside.

count_calls.py NOOP NAME ADD NAME COUNT COUNT COUNT: calls of noop as torch.ops gives it, of noop as
kiln gives it, and of add, which launches a kernel on the engine. Each way is warm before it is
counted, so that two runs with different counts differ by calls alone.
"""

from __future__ import annotations

import gc
import os
import sys

WARM_UP = 200


def main() -> None:
    os.environ["KILN_DEVICE"] = "engine"
    import torch

    import kiln

    torch.set_num_threads(1)
    noop, noop_name, add, add_name = sys.argv[1:5]
    counts = [int(word) for word in sys.argv[5:]]
    modules = kiln.load(noop), kiln.load(add)
    ways = [
        getattr(torch.ops, noop_name).noop,
        modules[0].noop,
        getattr(modules[1], "add"),
    ]
    a, b = torch.ones(16), torch.ones(16)
    gc.disable()  # a collection walks all of torch, and when it runs depends on more than the calls
    for way, count in zip(ways, counts):
        for _ in range(WARM_UP + count):
            way(a, b)


if __name__ == "__main__":
    main()
