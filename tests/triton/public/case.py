# SPDX-License-Identifier: Apache-2.0
"""How is one public kernel tried? A case calls its wrapper as the repository's own test does and
compares with that test's reference and tolerance. Inputs are made on the CPU from one seed, so that
the engine and a GPU get the same bits."""

from __future__ import annotations

import ast
import importlib
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Optional

import torch
from device_lines import for_the_cpu

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
        names = runpy.run_path(str(self.checkout / path), run_name="tried")
        torch.manual_seed(0)  # it drew numbers of its device
        return names

    def module(self, name: str, folder: str = ".", empty: Sequence[str] = ()) -> Any:
        """A module of the checkout. empty: packages whose own file does not run, since it imports
        all of the project and what that depends on."""
        at = (self.checkout / folder).resolve()
        for package in empty:
            made = ModuleType(package)
            made.__path__ = [str(at.joinpath(*package.split(".")))]
            sys.modules.setdefault(package, made)
        if str(at) not in sys.path:
            sys.path.insert(0, str(at))
        return importlib.import_module(name)

    def part(self, path: str, *names: str, **given: Any) -> Any:
        """These functions and classes of a file, with what of the file they use, without running
        the rest of it. given: names that stand for imports of the project."""
        file = self.checkout / path
        module = ModuleType("part_of_" + file.stem)
        module.__file__ = str(file)
        vars(module).update(given)
        sys.modules[module.__name__] = module
        tree = ast.parse(file.read_text())
        tree.body = needed(tree, set(names), set(given))
        if self.device == "cpu":
            tree = for_the_cpu(tree, str(file))
        exec(compile(tree, str(file), "exec"), vars(module))
        return module

    def randn(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> Any:
        return self.put(torch.randn(*shape).to(dtype), grad)

    def rand(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> Any:
        return self.put(torch.rand(*shape).to(dtype), grad)

    def randint(self, low: int, high: int, shape: Any, dtype: torch.dtype = torch.int64) -> Any:
        return self.put(torch.randint(low, high, shape, dtype=dtype))

    def put(self, tensor: torch.Tensor, grad: bool = False) -> Any:
        return tensor.to(self.device).requires_grad_(grad)

    def needs(self, arch: int) -> None:
        """What the repository's test asks of a GPU before it runs."""
        major, minor = torch.cuda.get_device_capability()
        if major * 10 + minor < arch:
            raise Skipped(f"its own test needs sm_{arch}")

    def judge(self, name: str, found: Any, right: bool, why: str, rtol: float, atol: float) -> None:
        """A comparison that is no tolerance per element; rtol and atol are for the GPU's result."""
        error = None if right else f"{name}: {why}"
        self.compared[name] = Compared(found.detach().to("cpu"), rtol, atol, 0.0, error)

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


class Skipped(Exception):
    """The repository's own test skips this target."""


def top_level(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of the file, also those under an `if` or a `try`."""
    for node in nodes:
        if isinstance(node, (ast.If, ast.Try)):
            yield from top_level(node.body)
        else:
            yield node


def defined_by(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(one.asname or one.name).split(".")[0] for one in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {
        one.id for target in targets if target for one in ast.walk(target)
        if isinstance(one, ast.Name)
    }  # fmt: skip


def needed(tree: ast.Module, names: set[str], given: set[str]) -> list[ast.stmt]:
    """The statements that define these names, and those that they need, in the file's order."""
    nodes = list(top_level(tree.body))
    wanted, kept = set(names), set()
    while True:
        more = {
            index for index, node in enumerate(nodes)
            if index not in kept and defined_by(node) & (wanted - given)
        }  # fmt: skip
        if not more:
            break
        kept |= more
        for index in more:
            wanted |= {one.id for one in ast.walk(nodes[index]) if isinstance(one, ast.Name)}
    imports = [one for one in nodes if isinstance(one, ast.ImportFrom)]
    future = [one for one in imports if one.module == "__future__"]
    return future + [nodes[index] for index in sorted(kept) if nodes[index] not in future]


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.shape != b.shape or a.numel() == 0:
        return float("nan") if a.shape != b.shape else 0.0
    gap = (a.double() - b.double()).abs()
    return float(gap[~gap.isnan()].max()) if not bool(gap.isnan().all()) else 0.0
