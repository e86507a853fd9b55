# SPDX-License-Identifier: Apache-2.0
"""Which strides does torch give to the result of an elementwise operation? Those of TensorIterator,
step by step.

torch._prims_common has such a function; it differs from TensorIterator for size-1 dimensions and
for ties. A test compares this one with torch.add over 2148 pairs of layouts. Comparisons of
symbolic strides become guards, as in torch's own fakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def elementwise_strides(tensors: Sequence[Any], shape: Sequence[Any]) -> tuple[Any, ...]:
    """Strides of a new tensor of `shape`, to which all `tensors` broadcast."""
    if all(_same(tensor.shape, shape) for tensor in tensors):
        if all(tensor.is_contiguous() for tensor in tensors):
            return _dense(shape, range(len(shape) - 1, -1, -1), least=1)
        import torch

        if len(shape) == 4 and all(
            tensor.is_contiguous(memory_format=torch.channels_last) for tensor in tensors
        ):
            return _dense(shape, (1, 3, 2, 0), least=1)
        first = tensors[0].stride()
        if _is_dense(shape, first) and all(_same(tensor.stride(), first) for tensor in tensors[1:]):
            return tuple(first)
    order = _fastest_first([_broadcast_strides(tensor, shape) for tensor in tensors], shape)
    contiguous = order == list(range(len(shape) - 1, -1, -1))
    return _dense(shape, order, least=1 if contiguous else 0)


def _broadcast_strides(tensor: Any, shape: Sequence[Any]) -> list[Any]:
    missing = len(shape) - tensor.ndim
    strides: list[Any] = [0] * missing
    for size, stride, wanted in zip(tensor.shape, tensor.stride(), shape[missing:]):
        strides.append(0 if size == 1 and wanted != 1 else stride)
    return strides


def _fastest_first(strides: Sequence[Sequence[Any]], shape: Sequence[Any]) -> list[int]:
    """TensorIterator's insertion sort of the dimensions, which leaves ambiguous ones where they
    are."""
    order = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(order)):
        moving = start
        for other in range(start - 1, -1, -1):
            comparison = _compare(strides, shape, order[other], order[moving])
            if comparison > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif comparison < 0:
                break
    return order


def _compare(strides: Sequence[Sequence[Any]], shape: Sequence[Any], left: int, right: int) -> int:
    for tensor in strides:
        a, b = tensor[left], tensor[right]
        if a == 0 or b == 0:
            continue
        if a < b:
            return -1
        if a > b:
            return 1
        if shape[left] > shape[right]:
            return 1
    return 0


def _dense(shape: Sequence[Any], order: Sequence[int], least: int) -> tuple[Any, ...]:
    """Strides without gaps, the first dimension of `order` fastest. A contiguous tensor counts a
    size of 0 as 1."""
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for dimension in order:
        strides[dimension] = step
        size = shape[dimension]
        step = step * (least if least and isinstance(size, int) and size < least else size)
    return tuple(strides)


def _is_dense(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Each place in memory is one element, whatever the order of the dimensions."""
    step: Any = 1
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides) if size > 1):
        if stride != step:
            return False
        step = step * size
    return True


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x == y for x, y in zip(a, b))
