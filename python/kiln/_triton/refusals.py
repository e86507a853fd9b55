# SPDX-License-Identifier: Apache-2.0
"""Which argument did Triton not take, and what can be passed instead? Triton names the type alone:
"failed to specialize argument of type: numpy.ndarray"."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .._launch.memory import memory_of
from ..errors import ArgumentError, KilnError

_TAKEN = "Triton takes tensors, numbers, None, and tuples of these"


def refusal(
    function: Any, arguments: Sequence[Any], named: Mapping[str, Any]
) -> Optional[KilnError]:
    """What is wrong with the arguments of a launch that failed; None: nothing that kiln knows."""
    names = list(getattr(function, "arg_names", ()))
    constant = {one.name for one in getattr(function, "params", ()) if one.is_constexpr}
    given = {**dict(zip(names, arguments)), **{n: v for n, v in named.items() if n in names}}
    kernel = getattr(function, "__name__", "the kernel")
    for name, value in given.items():
        if name in constant:
            continue
        try:
            memory_of(value, f"'{name}'")
        except KilnError as error:  # a layout or a byte order that no kernel can read
            return ArgumentError(error.what, error.why, error.fix)
        fix = _instead(value, name)
        if fix:
            shown = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
            return ArgumentError(f"cannot pass '{name}' to {kernel}", f"{shown}: {_TAKEN}", fix)
    return None


def _instead(value: Any, name: str) -> str:
    """What to pass instead; empty: Triton takes the value."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return f"torch.from_numpy({name}) shares its memory"
    if numpy is not None and isinstance(value, numpy.generic):
        return f"{name}.item()"
    if isinstance(value, (list, dict, set)):
        return "a tuple, or a tensor"
    if isinstance(value, (str, bytes)):
        return f"declare it as a constant: {name}: tl.constexpr"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return "a number of at most 64 bits"
    return ""
