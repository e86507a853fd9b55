# SPDX-License-Identifier: Apache-2.0
"""How is one public kernel tried? A case calls its wrapper as the repository's own test does and
compares with that test's reference and tolerance. Inputs are made on the CPU from one seed, so that
the engine and a GPU get the same bits."""

from __future__ import annotations

import importlib
import runpy
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

import torch

Body = Callable[["Run"], None]
CASES: dict[str, Body] = {}  # by "repository path kernel", as list.json has them


def case(repository: str, path: str, *kernels: str) -> Callable[[Body], Body]:
    """The function tries these kernels of the file."""

    def add(function: Body) -> Body:
        for kernel in kernels:
            CASES[f"{repository} {path} {kernel}"] = function
        return function

    return add


class Nothing:
    """In place of a benchmark: times of the engine are not those of a GPU."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *_: Any, **__: Any) -> Nothing:
        return self

    def run(self, *_: Any, **__: Any) -> None: ...


@dataclass
class Compared:
    found: torch.Tensor
    rtol: float
    atol: float
    difference: float
    error: Optional[str]


@dataclass
class Run:
    """What a case is given: a device, the checkout, inputs, and where comparisons are kept."""

    checkout: Path
    device: str  # "cpu" or "cuda"
    compared: dict[str, Compared] = field(default_factory=dict)
    launched: set[str] = field(default_factory=set)

    def script(self, path: str) -> dict[str, Any]:
        """The names of a script of the checkout, run as it is but for its benchmarks."""
        import triton

        triton.testing.perf_report = Nothing
        return runpy.run_path(str(self.checkout / path), run_name="tried")

    def module(self, name: str, folder: str = ".") -> Any:
        at = str((self.checkout / folder).resolve())
        if at not in sys.path:
            sys.path.insert(0, at)
        return importlib.import_module(name)

    def randn(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> Any:
        return self.put(torch.randn(*shape).to(dtype), grad)

    def rand(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> Any:
        return self.put(torch.rand(*shape).to(dtype), grad)

    def randint(self, low: int, high: int, shape: Any, dtype: torch.dtype = torch.int64) -> Any:
        return self.put(torch.randint(low, high, shape, dtype=dtype))

    def put(self, tensor: torch.Tensor, grad: bool = False) -> Any:
        return tensor.to(self.device).requires_grad_(grad)

    def compare(self, name: str, found: Any, expected: Any, rtol: float, atol: float) -> None:
        """Kept whatever comes out: a GPU's results are compared with the engine's by the same
        tolerance."""
        found = found.detach().to("cpu")
        expected = expected.detach().to("cpu")
        error = None
        try:
            torch.testing.assert_close(
                found, expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False
            )
        except AssertionError as failed:
            error = f"{name}: " + " ".join(str(failed).split())[:300]
        self.compared[name] = Compared(found, rtol, atol, difference(found, expected), error)


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.shape != b.shape or a.numel() == 0:
        return float("nan") if a.shape != b.shape else 0.0
    gap = (a.double() - b.double()).abs()
    return float(gap[~gap.isnan()].max()) if not bool(gap.isnan().all()) else 0.0
