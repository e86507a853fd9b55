# SPDX-License-Identifier: Apache-2.0
"""Which public Triton kernels does rule.md draw?

    python tests/triton/public/draw.py SOURCES --seed ID [--write list.json]

SOURCES: a folder with a checkout of each repository under OWNER+NAME. Nothing of them is imported:
their files are parsed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

REPOSITORIES = (
    "linkedin/Liger-Kernel",
    "fla-org/flash-linear-attention",
    "FlagOpen/FlagGems",
    "BobMcDear/attorch",
    "pytorch/ao",
    "sgl-project/sglang",
)
PER_REPOSITORY, WANTED = 8, 40
# Tests and benchmarks, and what other makers' devices run: a test on a CUDA device compares none.
_SKIPPED = re.compile(
    r"(^|/)(tests?|benchmarks?|examples?|evals?|docs?|_?(ascend|npu|mthreads|cambricon|musa|rocm|"
    r"kunlunxin|metax|iluvatar|hygon|amd|aipu|tsingmicro|arm|nvidia|sunrise|enflame|spacemit|xpu|"
    r"hpu))(/|$)|(^|/)(test_|bench|conftest)|_test\.py$"
)
_COMPARES = re.compile(r"assert_close|allclose|assert_verbose|torch\.equal|\.max\(\)|assertTrue")


@dataclass(frozen=True)
class Candidate:
    repository: str
    path: str
    name: str
    wrappers: tuple[str, ...]  # names of the file that a test may call
    test: str  # the first file that does


def is_jit(function: ast.FunctionDef) -> bool:
    return any("triton.jit" in ast.unparse(one) for one in function.decorator_list)


def names_in(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def launched_in(node: ast.AST) -> set[str]:
    """K of every `K[...](...)` and `wrap_triton(K)[...](...)`."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Subscript):
            kernel = one.func.value
            if isinstance(kernel, ast.Call) and "wrap_triton" in ast.unparse(kernel.func):
                kernel = kernel.args[0]
            found.add(ast.unparse(kernel))
    return found


def top_level(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of the file, also those under an `if`, a `try` or a `with`."""
    for node in nodes:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from top_level(node.body)
            yield from top_level(getattr(node, "orelse", []))


def statements(tree: ast.Module) -> dict[str, ast.AST]:
    """What the file defines at its top: functions, classes, and names that are assigned."""
    found: dict[str, ast.AST] = {}
    for node in top_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if not (isinstance(node, ast.FunctionDef) and is_jit(node)):
                found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node
    return found


def wrappers_of(kernel: str, defined: dict[str, ast.AST]) -> set[str]:
    """What launches the kernel, and what of the file uses that."""
    reached = {name for name, node in defined.items() if kernel in launched_in(node)}
    while True:
        more = {name for name, node in defined.items() if names_in(node) & reached} - reached
        if not more:
            return reached
        reached |= more


def kernels_of(file: Path) -> Iterator[tuple[str, set[str]]]:
    try:
        tree = ast.parse(file.read_text())
    except (SyntaxError, UnicodeDecodeError):
        return
    defined = statements(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and is_jit(node):
            found = wrappers_of(node.name, defined)
            if found:
                yield node.name, found


def candidates_of(root: Path, repository: str) -> Iterator[Candidate]:
    checkout = root / repository.replace("/", "+")
    if not checkout.is_dir():
        raise SystemExit(f"no checkout of {repository} at {checkout}")
    files = sorted(checkout.rglob("*.py"))
    tests = {}
    for file in files:
        path = file.relative_to(checkout).as_posix()
        if re.search(r"(^|/)tests?(/|_)|_test\.py$", path):
            text = file.read_text(errors="replace")
            if "torch" in text and _COMPARES.search(text):
                tests[path] = set(re.findall(r"\w+", text))
    for file in files:
        path = file.relative_to(checkout).as_posix()
        if _SKIPPED.search(path) or "triton" not in file.read_text(errors="replace"):
            continue
        for kernel, wrappers in kernels_of(file):
            test = next((one for one, words in tests.items() if words & wrappers), None)
            if test:
                yield Candidate(repository, path, kernel, tuple(sorted(wrappers)), test)


def draw(found: list[Candidate], seed: str) -> list[Candidate]:
    def key(one: Candidate) -> str:
        text = f"{seed} {one.repository} {one.path} {one.name}"
        return hashlib.sha256(text.encode()).hexdigest()

    taken: list[Candidate] = []
    counts: dict[str, int] = {}
    for one in sorted(found, key=key):
        if len(taken) < WANTED and counts.get(one.repository, 0) < PER_REPOSITORY:
            counts[one.repository] = counts.get(one.repository, 0) + 1
            taken.append(one)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    found = [one for name in REPOSITORIES for one in candidates_of(options.sources, name)]
    for name in REPOSITORIES:
        print(name, sum(one.repository == name for one in found), "candidates")
    drawn = draw(found, options.seed)
    for one in drawn:
        print(one.repository, one.path, one.name, one.wrappers, one.test)
    if options.write:
        text = {"seed": options.seed, "kernels": [asdict(one) for one in drawn]}
        options.write.write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main()
