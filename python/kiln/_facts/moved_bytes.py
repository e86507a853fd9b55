# SPDX-License-Identifier: Apache-2.0
"""How many bytes must each op of a call move? Its tensors, each element once, as the dispatcher
sees them."""

from __future__ import annotations

import math
from typing import Any, Callable

from .._torch import torch_module


def touched_bytes(tensor: Any) -> int:
    """Of the elements, each once: a broadcast row is read once from memory."""
    distinct = math.prod(size for size, stride in zip(tensor.shape, tensor.stride()) if stride != 0)
    return distinct * tensor.element_size()


def moved_bytes(body: Callable[[], Any]) -> dict[str, list[int]]:
    """Runs `body`; for each op its calls in order. Empty where this torch has no such mode."""
    torch = torch_module()
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return {}
    found: dict[str, list[int]] = {}

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            read = {_place(t): t for t in _tensors([args, kwargs or {}], torch)}
            written = {_place(t): t for t in _tensors([result], torch)}
            total = sum(map(touched_bytes, [*read.values(), *written.values()]))
            found.setdefault(func._schema.name, []).append(total)
            return result

    with Watch():
        body()
    return found


def _place(tensor: Any) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def _tensors(values: Any, torch: Any) -> list[Any]:
    if isinstance(values, torch.Tensor):
        return [values] if values.layout == torch.strided and not values.is_meta else []
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (list, tuple)):
        return []
    return [tensor for value in values for tensor in _tensors(value, torch)]
