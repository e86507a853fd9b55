# SPDX-License-Identifier: Apache-2.0
"""Which Python values does the text of a command's arguments mean? `randn:f32:4`, `alpha=2.0`,
`[1,2]`, `true`, `2^20`.

The grammar is the command's own (src/host/arguments.h), asked through libkiln_measure: a text means
here what it means to `kiln call`.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import _measure
from .abi import Library

_VALUES: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "floats": lambda texts: [float(text) for text in texts],
    "dtype": _measure.dtype_of,
}


def arguments_of(
    texts: list[str], seed: int, device: str, library: Optional[Library] = None, op: str = ""
) -> tuple[list[Any], dict[str, Any]]:
    """The command's arguments as Python values. With the library they are bound to the parameters
    of its op; without, each text means what it is written as."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    tensors = 0
    for argument in _measure.arguments(texts, library, op):
        kind, value = argument["kind"], argument["value"]
        if kind in ("tensor", "tensors"):
            specs = [value] if kind == "tensor" else value
            made = [_measure.tensor(s, seed, tensors + i, device) for i, s in enumerate(specs)]
            tensors += len(specs)
            value = made[0] if kind == "tensor" else made
        else:
            value = _VALUES.get(kind, lambda same: same)(value)
        if argument["name"]:
            kwargs[argument["name"]] = value
        else:
            args.append(value)
    return args, kwargs


def plain(text: str) -> Any:
    """A value that is not a tensor: a number, a word, a list."""
    argument = _measure.arguments([text])[0]
    if argument["name"] or argument["kind"] in ("tensor", "tensors"):
        return text
    return _VALUES.get(argument["kind"], lambda same: same)(argument["value"])
