# SPDX-License-Identifier: Apache-2.0
"""What does the backward of an op find in ctx, if its author gave no setup_context? The arguments.
Every tensor of them, also one of a list, is saved by torch: it knows then if one was written to in
between, and lets go of them after the backward."""

from __future__ import annotations

import functools
from typing import Any, Callable

from ._torch import torch_module


def save_arguments(
    ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Any = None
) -> None:
    """The setup_context of an op whose author gave none."""
    tensor = torch_module().Tensor
    single = [value for value in inputs if isinstance(value, tensor)]
    in_lists = [one for value in inputs for one in _tensors_of(value)]
    ctx.save_for_backward(*single, *in_lists)
    ctx.arguments = tuple(
        None if isinstance(value, tensor) else [None] * len(value) if _tensors_of(value) else value
        for value in inputs
    )
    ctx.kiln_lists = tuple(index for index, value in enumerate(inputs) if _tensors_of(value))


def with_arguments(backward: Callable[..., Any]) -> Callable[..., Any]:
    """`backward`, with the lists of tensors in ctx.arguments again."""

    @functools.wraps(backward)
    def with_lists(ctx: Any, *gradients: Any) -> Any:
        return backward(_Saved(ctx) if ctx.kiln_lists else ctx, *gradients)

    return with_lists


class _Saved:
    """A ctx whose saved_tensors are the single tensors, and whose arguments have the lists."""

    def __init__(self, ctx: Any) -> None:
        self.__dict__["_kiln_ctx"] = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kiln_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._kiln_ctx, name, value)

    def _in_lists(self) -> int:
        return sum(len(self._kiln_ctx.arguments[index]) for index in self._kiln_ctx.kiln_lists)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        saved = self._kiln_ctx.saved_tensors
        return tuple(saved[: len(saved) - self._in_lists()])

    @property
    def arguments(self) -> tuple[Any, ...]:
        saved = self._kiln_ctx.saved_tensors
        rest = iter(saved[len(saved) - self._in_lists() :])
        return tuple(
            [next(rest) for _ in value] if index in self._kiln_ctx.kiln_lists else value
            for index, value in enumerate(self._kiln_ctx.arguments)
        )


def _tensors_of(value: Any) -> list[Any]:
    """Those of a list of tensors. (A schema's list has no other items.)"""
    if not isinstance(value, (list, tuple)):
        return []
    return [one for one in value if isinstance(one, torch_module().Tensor)]
