# SPDX-License-Identifier: Apache-2.0
"""Which lines of a checkout are changed for CPU tensors? Those that rule.md allows: what only
chooses a device. `x.is_cuda` is true, `device="cuda"` is the CPU. Kernels stay as they are; each
change is printed with its line."""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from pathlib import Path
from typing import Any


class ForTheCpu(ast.NodeTransformer):
    def __init__(self, path: str) -> None:
        self._path = path

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if any("triton.jit" in ast.unparse(one) for one in node.decorator_list):
            return node
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == "is_cuda" and isinstance(node.ctx, ast.Load):
            return self._changed(node, True)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg == "device" and isinstance(node.value, ast.Constant):
            if node.value.value == "cuda":
                node.value = self._changed(node.value, "cpu")
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if ast.unparse(node.left).endswith((".type", "device_type")):
            for index, one in enumerate(node.comparators):
                if isinstance(one, ast.Constant) and one.value == "cuda":
                    node.comparators[index] = self._changed(one, "cpu")
        return self.generic_visit(node)

    def _changed(self, node: ast.AST, value: Any) -> ast.Constant:
        print(f"{self._path}:{node.lineno}: {ast.unparse(node)} is {value!r} here")
        return ast.copy_location(ast.Constant(value), node)


def for_the_cpu(tree: ast.Module, path: str) -> ast.Module:
    return ast.fix_missing_locations(ForTheCpu(path).visit(tree))


def change_imports_below(folder: Path) -> None:
    """Modules of the checkout are changed when they are imported."""

    class Loader(importlib.machinery.SourceFileLoader):
        def get_code(self, name: str) -> Any:
            return self.source_to_code(self.get_data(self.path), self.path)

        def source_to_code(self, data: Any, path: Any, **_: Any) -> Any:  # type: ignore[override]
            return compile(for_the_cpu(ast.parse(data), str(path)), path, "exec")

    hook = importlib.machinery.FileFinder.path_hook((Loader, [".py"]))

    def only_below(path: str) -> Any:
        if not Path(path).resolve().is_relative_to(folder.resolve()):
            raise ImportError
        return hook(path)

    sys.path_hooks.insert(0, only_below)
    sys.path_importer_cache.clear()
