# SPDX-License-Identifier: Apache-2.0
"""Is NAME as fast as torch?   kiln test --bench, or python bench.py [elements]"""

import sys
from pathlib import Path

import kiln
import torch

NAME = kiln.load(Path(__file__).parent)


def torch_add(x, y, alpha):
    return torch.add(x, y, alpha=alpha)


def main():
    device = kiln.device()
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << (24 if device == "cuda" else 16)
    x = torch.randn(elements, device=device)
    y = torch.randn_like(x)
    print(kiln.bench(NAME.NAME, x, y, 0.1, against={"torch.add": torch_add}, bytes=3 * x.nbytes))


if __name__ == "__main__":
    main()
