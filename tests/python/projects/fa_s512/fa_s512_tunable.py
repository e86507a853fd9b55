# SPDX-License-Identifier: Apache-2.0
"""Attention forward for short sequences with tunable tiles, compiled on first use.

python fa_s512_tunable.py --block-m 16 --block-n 32
"""

import argparse
import math
import os
import time

import torch
from torch.utils.cpp_extension import load

HERE = os.path.dirname(os.path.abspath(__file__))
_MODULES = {}


def load_module(block_m=16, block_n=32, head_dim=32, verbose=False):
    key = (block_m, block_n, head_dim)
    if key in _MODULES:
        return _MODULES[key]
    name = f"fa_s512_{block_m}_{block_n}_{head_dim}"
    build_directory = os.path.join(HERE, "build", name)
    os.makedirs(build_directory, exist_ok=True)
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "8.0")
    os.environ.setdefault("MAX_JOBS", "2")
    # One process builds, the others wait.
    lock = os.path.join(build_directory, "lock")
    while True:
        try:
            os.mkdir(lock)
            break
        except FileExistsError:
            time.sleep(0.1)
    try:
        _MODULES[key] = load(
            name=name,
            sources=[os.path.join(HERE, "fa_s512.cu")],
            extra_cflags=["-O3"],
            extra_cuda_cflags=[
                "-O3",
                "--use_fast_math",
                "-Xptxas -v",
                f"-DBLOCK_M={block_m}",
                f"-DBLOCK_N={block_n}",
                f"-DHEAD_DIM={head_dim}",
            ],
            extra_include_paths=[HERE],
            build_directory=build_directory,
            verbose=verbose,
        )
    finally:
        os.rmdir(lock)
    return _MODULES[key]


def attention(q, k, v, **tiles):
    return load_module(head_dim=q.size(-1), **tiles).forward(q, k, v, 1 / math.sqrt(q.size(-1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--block-m", type=int, default=16)
    parser.add_argument("--block-n", type=int, default=32)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, args.seq, 32, device=device) for _ in range(3))
    out = attention(q, k, v, block_m=args.block_m, block_n=args.block_n, verbose=args.verbose)
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    difference = (out - wanted).abs().max().item()
    print(f"block_m={args.block_m} block_n={args.block_n}: largest difference {difference:.1e}")
    assert difference < 1e-4


if __name__ == "__main__":
    main()
