# SPDX-License-Identifier: Apache-2.0
"""What are the parameters of an op, without torch to parse its schema? kiln writes the schema, so
its grammar is small: `name.overload(Tensor(a!) x, SymInt[] sizes=[1, 2], *, str s='a') -> Tensor`.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from typing import Any

_KINDS = {
    "Tensor": "tensor", "SymInt": "int", "int": "int", "float": "float", "bool": "bool",
    "str": "str", "ScalarType": "dtype", "Device": "device", "Tensor[]": "tensors",
    "SymInt[]": "ints", "int[]": "ints", "float[]": "floats",
}  # fmt: skip
_PARAMETER = re.compile(r"(\w+)(\([a-z]!\))?(\[\])?(\?)?\s+(\w+)(?:=(.*))?$", re.DOTALL)
REQUIRED = object()


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    optional: bool
    written: bool
    keyword_only: bool
    default: Any  # REQUIRED: it has none


@dataclass(frozen=True)
class Schema:
    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]  # kinds

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The value of each parameter; TypeError as Python raises it."""
        names = [one.name for one in self.parameters if not one.keyword_only]
        if len(args) > len(names):
            raise TypeError(f"{self.name}() takes {len(names)} arguments, got {len(args)}")
        values = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in values or name not in {one.name for one in self.parameters}:
                raise TypeError(f"{self.name}() got an unexpected argument '{name}'")
            values[name] = value
        for one in self.parameters:
            if one.name not in values:
                if one.default is REQUIRED and not one.optional:
                    raise TypeError(f"{self.name}() is missing the argument '{one.name}'")
                values[one.name] = None if one.default is REQUIRED else one.default
        return {one.name: values[one.name] for one in self.parameters}


@functools.lru_cache(maxsize=256)
def read_schema(text: str) -> Schema:
    name, _, rest = text.partition("(")
    inside, _, results = rest.rpartition(") -> ")
    parameters = []
    keyword_only = False
    for part in _split(inside):
        if part == "*":
            keyword_only = True
            continue
        match = _PARAMETER.match(part)
        assert match is not None, part
        kind = _KINDS[match.group(1) + (match.group(3) or "")]
        default = REQUIRED if match.group(6) is None else _value(match.group(6))
        parameters.append(
            Parameter(
                match.group(5),
                kind,
                match.group(4) is not None,
                match.group(2) is not None,
                keyword_only,
                default,
            )
        )
    kinds = tuple(_KINDS[re.sub(r"\([a-z]!\)", "", one)] for one in _split(results.strip("()")))
    return Schema(name, tuple(parameters), kinds)


def _value(text: str) -> Any:
    named = {"None": None, "True": True, "False": False, "inf": float("inf")}
    if text in named:
        return named[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _split(text: str) -> list[str]:
    """At commas outside of brackets and quotes."""
    parts, depth, quote, last = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    parts.append(text[last:].strip())
    return [part for part in parts if part]
