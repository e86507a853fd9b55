# SPDX-License-Identifier: Apache-2.0
import time

import torch

import my_add

device = "cuda" if torch.cuda.is_available() else "cpu"


def bench(function, *args, warmup=2, repeat=5):
    for _ in range(warmup):
        function(*args)
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeat):
        function(*args)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeat * 1e6


for n in (1 << 10, 1 << 14):
    a, b = torch.randn(n, device=device), torch.randn(n, device=device)
    print(f"n={n}: my_add {bench(my_add.add, a, b):.1f} us, torch {bench(torch.add, a, b):.1f} us")
