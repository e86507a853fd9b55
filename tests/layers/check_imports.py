#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the modules of python/kiln import one another in one direction, and by public names alone?

Prints each violation, exits 1 for one. Two rules:

- No cycle of imports, those inside functions and of type checkers counted. A cycle that an import
  inside a function hides works until somebody moves that import, and neither module can be read
  or tested without the other.
- A name with an underscore is used in the module that defines it and nowhere else: neither
  `from .other import _name` nor `other._name`. A module or package may have an underscore
  (`kiln._checks`): it is private to kiln, not to its neighbours. Tests, tools and benchmarks keep
  this rule too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "kiln"
USERS = ("tests", "tools", "benchmarks", "kernels", "templates")


@dataclass(frozen=True)
class Import:
    line: int
    module: str  # of the package: "kiln.op"
    name: str  # what is taken from it; "" for the module itself
    bound: str  # the name by which this file calls a module; "" for a name from it


@dataclass(frozen=True)
class Source:
    path: str
    module: str  # "kiln.op"; "" for a file outside of the package
    is_package: bool
    tree: ast.Module


def module_name(path: Path, python: Path) -> str:
    parts = list(path.relative_to(python).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def base_of(source: Source, node: ast.ImportFrom) -> str:
    """The module that `from X import` names, written out: "..op" in kiln._checks.fakes is
    kiln.op."""
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    parts = parts[: len(parts) - node.level + source.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def imports_of(source: Source, modules: set[str]) -> Iterator[Import]:
    """The imports of modules of the package, wherever in the file they are."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name in modules:
                    yield Import(node.lineno, one.name, "", one.asname or one.name)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(source, node)
            for one in node.names:
                inner = f"{base}.{one.name}"
                if inner in modules:
                    yield Import(node.lineno, inner, "", one.asname or one.name)
                elif base in modules:
                    yield Import(node.lineno, base, one.name, "")


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def private_names(source: Source, modules: set[str]) -> list[str]:
    """Each use of a private name of another module."""
    found = []
    bound = {PACKAGE: PACKAGE}  # by `import kiln` and by `import kiln.op`
    for one in imports_of(source, modules):
        if is_private(one.name) and one.module != source.module:
            found.append((one.line, f"imports {one.name}, which is private to {one.module}"))
        if one.bound:
            bound[one.bound] = one.module
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = module_meant(ast.unparse(node.value), bound, modules)
            if owner and owner != source.module and f"{owner}.{node.attr}" not in modules:
                found.append((node.lineno, f"uses {node.attr}, which is private to {owner}"))
    return [f"{source.path}:{line}: {why}" for line, why in sorted(found)]


def module_meant(expression: str, bound: dict[str, str], modules: set[str]) -> str:
    """The module that `kiln.op` or `measure` is in this file; "" for anything else."""
    for name, module in bound.items():
        if expression == name or expression.startswith(name + "."):
            whole = module + expression[len(name) :]
            if whole in modules:
                return whole
    return ""


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach one another, each as one cycle through its first module."""
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for target in edges.get(waiting.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        reach[start] = seen
    found, done = [], set()
    for start in sorted(edges):
        if start in reach[start] and start not in done:
            done |= {one for one in reach[start] if start in reach.get(one, ())}
            found.append(shortest_way_back(start, edges))
    return found


def shortest_way_back(start: str, edges: dict[str, set[str]]) -> list[str]:
    came_from: dict[str, str] = {}
    waiting = [start]
    for module in waiting:  # grows while it is walked: breadth first
        for target in sorted(edges.get(module, ())):
            if target == start:
                way = [module, start]
                while way[0] != start:
                    way.insert(0, came_from[way[0]])
                return way
            if target not in came_from:
                came_from[target] = module
                waiting.append(target)
    raise ValueError(f"no cycle goes through {start}")


def read_sources(root: Path) -> list[Source]:
    python = root / "python"
    found = []
    for path in sorted((python / PACKAGE).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = str(path.relative_to(root))
        found.append(Source(name, module_name(path, python), path.name == "__init__.py", tree))
    return found


def read_users(root: Path) -> list[Source]:
    found = []
    for folder in USERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and is_python(path):
                tree = ast.parse(path.read_text(encoding="utf-8"))
                found.append(Source(str(path.relative_to(root)), "", False, tree))
    return found


def is_python(path: Path) -> bool:
    if path.suffix:
        return path.suffix == ".py"
    with path.open("rb") as file:
        first = file.readline()
    return first.startswith(b"#!") and b"python" in first


def violations(root: Path) -> list[str]:
    package = read_sources(root)
    modules = {source.module for source in package}
    found = []
    for source in [*package, *read_users(root)]:
        found += private_names(source, modules)
    edges = {
        source.module: {one.module for one in imports_of(source, modules)} for source in package
    }
    found += ["a cycle of imports: " + " -> ".join(cycle) for cycle in cycles(edges)]
    if not package:
        found.append(f"python/{PACKAGE} has no modules")
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = violations(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
