# SPDX-License-Identifier: Apache-2.0
"""Which sources are measured, if nobody may tune to them, and what do those lack that fall back? A
sample drawn by a seed from checkouts that a person gives, and a table of families."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

# A family and what the compiler's first error names of it. The first row that fits counts.
_FAMILIES = (
    ("torch::nn and the C++ front end", r"nn|optim|data::|serialize|jit::load"),
    ("custom classes and the JIT", r"class_|CustomClass|intrusive_ptr|jit|IValue|Stack"),
    ("TensorIterator and at::native", r"TensorIterator|native|gpu_kernel|Loops"),
    ("at::vec and CPU kernels", r"vec\b|Vectorized|cpublas|CPUBlas"),
    ("distributed and symmetric memory", r"c10d|distributed|symm|nccl|NCCL"),
    ("graph capture and allocators", r"Graph|MemPool|Allocator|Storage"),
    ("pybind11", r"pybind11|\bpy\b"),
    ("autograd", r"autograd|Autograd|Variable"),
    ("dispatch macros", r"AT_DISPATCH|DISPATCH"),
    ("headers of torch", r"\.h\b|\.cuh\b"),
    ("ops and members of tensors", r"Tensor|at::|torch::"),
)


def draw(
    candidates: dict[str, list[str]], folder: Path, each: int, seed: str, known: set[str]
) -> list[dict[str, object]]:
    """Up to `each` sources per repository. Bytes that occurred before are dropped: forks and copies
    of one extension would count several times. known: digests that are dropped, too."""
    chooser = random.Random(seed)
    seen = set(known)
    chosen: list[dict[str, object]] = []
    for repository, paths in sorted(candidates.items()):
        fresh = []
        for path in paths:
            digest = hashlib.sha256((folder / repository / path).read_bytes()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                fresh.append(path)
        commit = folder / f"{repository}.commit"
        chosen += [
            {
                "repository": repository.replace("+", "/", 1),
                "commit": commit.read_text().strip() if commit.is_file() else "",
                "candidates": len(paths),
                "path": path,
            }
            for path in sorted(chooser.sample(fresh, min(each, len(fresh))))
        ]
    return chosen


def repositories(folder: Path, seed: str) -> list[Path]:
    """The checkouts in the order of the draw."""
    found = sorted(path for path in folder.iterdir() if path.is_dir())
    random.Random(seed).shuffle(found)
    return found


def collect(
    folder: Path, seed: str, wanted: int, candidates_of: Callable[[Path], list[str]]
) -> dict[str, list[str]]:
    """Candidates of the first `wanted` repositories in the order of the draw that have any."""
    found: dict[str, list[str]] = {}
    for root in repositories(folder, seed):
        if len(found) == wanted:
            break
        paths = candidates_of(root)
        if paths:
            found[root.name] = paths
    return found


def family(why: str) -> str:
    message = re.sub(r"\b(at|c10|torch|pybind11)::kc\b", r"\1", why.split("error:")[-1])
    for name, pattern in _FAMILIES:
        if re.search(pattern, message):
            return name
    return "other"


def print_families(lacking: list[str]) -> None:
    print("\n## What is lacking, by family\n\n| family | sources |\n|---|---|")
    for name, count in Counter(family(why) for why in lacking).most_common():
        print(f"| {name} | {count} |")
