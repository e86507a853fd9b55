#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do tests and examples of ops use numbers that tell float from double? Prints each file that
passes numbers to ops, none of which does, exits 1 if there is one.

usage: check_values.py [ROOT [FILE...]]      FILE: instead of PLACES

0.5, 2.0 and 2.5 are the same in every binary type, so an op that narrows them to float passes. 0.1
and 1/3 are not. Of a file the literals count that are arguments of calls, but not of torch's own
functions; of a Markdown page those in its Python blocks and in its `kiln call` lines.
"""

from __future__ import annotations

import ast
import re
import struct
import sys
from pathlib import Path

PLACES = (
    "README.md",
    "templates/**/*.md",
    "templates/**/*.py",
    "templates/**/*.cu",
    "tests/python/test_argument_views.py",
    "tests/python/test_kiln_test*.py",
    "tests/python/test_ops.py",
    "tests/python/test_saved_arguments.py",
    "tests/python/test_transforms.py",
    "tools/demo.py",
)
# Functions whose numbers reach no op.
NOT_OPS = re.compile(
    r"^(torch|math|pytest|np|numpy|time|random|functional|F|subprocess|re|cuda|jnp|signal)\b|"
    r"\b(sleep|approx|assert_close|allclose|isclose|full|tensor|linspace|arange|clamp|Tolerance|"
    r"compare|parametrize|timeout|run|manual_seed|normal_|uniform_|new_full|fill_|Dropout)$"
)


def is_exact(value: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def numbers_of(node: ast.expr) -> list[float]:
    """Literals, and quotients of them: 1 / 3."""
    if isinstance(node, ast.UnaryOp):
        return numbers_of(node.operand)
    if isinstance(node, ast.Constant) and type(node.value) is float:
        return [node.value]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        sides = [one.value for one in (node.left, node.right) if isinstance(one, ast.Constant)]
        if len(sides) == 2 and all(isinstance(one, (int, float)) for one in sides) and sides[1]:
            return [sides[0] / sides[1]]
    return []


def of_python(text: str) -> list[float]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a fragment
        return []
    found: list[float] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not NOT_OPS.search(ast.unparse(node.func)):
            for argument in (*node.args, *(one.value for one in node.keywords)):
                found += numbers_of(argument)
    return found


def of_commands(text: str) -> list[float]:
    """The numbers after the tensors of `kiln call`, `sanitize` and `counters`."""
    lines = re.findall(r"kiln (?:call|sanitize|counters) [^`|#\n]*", text)
    words = [word for line in lines for word in line.split()[2:]]
    return [float(word) for word in words if re.fullmatch(r"-?\d*\.\d+", word)]


def numbers_in(path: Path) -> list[float]:
    text = path.read_text()
    if path.suffix == ".py":
        return of_python(text) + of_commands(text)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return [one for block in blocks for one in of_python(block)] + of_commands(text)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else ".")
    given = [root / one for one in arguments[1:]]
    files = given or sorted({one for place in PLACES for one in root.glob(place)})
    wrong = 0
    for path in files:
        found = numbers_in(path)
        if not found or not all(map(is_exact, found)):
            continue
        wrong += 1
        shown = ", ".join(f"{one:g}" for one in sorted(set(found))[:6])
        print(
            f"{path.relative_to(root)}: {shown} are exact in float, so an op that narrows them "
            "passes; use 0.1 or 1 / 3 as well"
        )
    print(f"{len(files)} files, {wrong} without a number that tells float from double")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
