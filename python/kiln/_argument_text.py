# SPDX-License-Identifier: Apache-2.0
"""Which Python values does the text of a command's arguments mean? `randn:f32:4`, `alpha=2.0`,
`[1,2]`, `true`."""

from __future__ import annotations

import json
from typing import Any

from . import _measure


def arguments_of(texts: list[str], seed: int, device: str) -> tuple[list[Any], dict[str, Any]]:
    """The command's arguments as Python values: tensors of the host's grammar, numbers, words."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    tensors = 0
    for text in texts:
        name, _, rest = text.partition("=")
        keyword = (
            name
            if rest and name.isidentifier() and name not in ("full", "arange", "randint")
            else ""
        )
        value: Any = rest if keyword else text
        if ":" in value or value.endswith(".npy"):
            value = _measure.tensor(value, seed, tensors, device)
            tensors += 1
        else:
            value = plain(value)
        if keyword:
            kwargs[keyword] = value
        else:
            args.append(value)
    return args, kwargs


def plain(text: str) -> Any:
    """A value that is not a tensor: a number, a word, a list."""
    words = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    if text.startswith("["):
        return json.loads(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
