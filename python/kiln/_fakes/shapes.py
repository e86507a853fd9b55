# SPDX-License-Identifier: Apache-2.0
"""Which sizes and dtypes do an op's results have, by its fake rule, where torch is not asked?

The same rules as in rules.py, on plain sizes and the names of dtypes: for callers that bring the
memory for results, and have to know how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union

from ..errors import RuleError
from .evaluation import Evaluation
from .syntax import DTYPE_NUMBERS, Dtype, Result, Splat, fault, parse


@dataclass(frozen=True)
class Shape:
    """A tensor without data. dtype: as rules write it, "f32"."""

    sizes: tuple[int, ...]
    dtype: str


def shapes_of(rule: str, values: dict[str, Any]) -> list[Union[Shape, list[Shape]]]:
    """values: of each parameter; a Shape for a tensor, a list of them for a list."""
    return [_Evaluation(rule, values).result(result) for result in parse(rule)]


class _Evaluation(Evaluation):
    def sizes(self, tensor: Any) -> Any:
        return tensor.sizes

    def result(self, result: Result) -> Union[Shape, list[Shape]]:
        if result.kind == "like":
            like = self.value(result.tensors[0])
            if isinstance(like, list):
                return [Shape(one.sizes, self.dtype(result.dtype, one.dtype)) for one in like]
            return Shape(like.sizes, self.dtype(result.dtype, like.dtype))
        if result.kind == "broadcast":
            given = [
                self.values[t.name] if t.index is None else self.value(t) for t in result.tensors
            ]
            shapes = [one for one in given if one is not None]
            return Shape(
                broadcast([one.sizes for one in shapes]),
                self.dtype(result.dtype, promoted(shapes)),
            )
        sizes: list[int] = []
        for dim in result.dims:
            if isinstance(dim, Splat):
                sizes.extend(int(size) for size in self.splat(dim))
            else:
                sizes.append(int(self.expr(dim)))
        return Shape(tuple(sizes), self.dtype(result.dtype, None))

    def dtype(self, dtype: Optional[Dtype], default: Optional[str]) -> str:
        if dtype is None:
            assert default is not None
            return default
        if dtype.kind == "fixed":
            return dtype.name
        if dtype.kind == "parameter":
            given = self.values.get(dtype.name)
            if given is None and default is None:
                raise fault(self.rule, dtype.at, f"'{dtype.name}' was left out of this call")
            return str(default if given is None else _name_of(given))
        operands = [self.operand(operand) for operand in dtype.operands]
        if dtype.kind == "promote":
            return promoted(operands)
        found = operands[0].dtype if isinstance(operands[0], Shape) else _name_of(operands[0])
        return "f32" if dtype.kind == "float_of" and _CATEGORY[found] < 2 else found


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(one) for one in shapes)
    found = []
    for padded in zip(*((1,) * (rank - len(one)) + tuple(one) for one in shapes)):
        sizes = {one for one in padded if one != 1}
        if len(sizes) > 1:
            raise RuleError(
                "the arguments do not broadcast", f"sizes {' and '.join(map(str, shapes))}"
            )
        found.append(sizes.pop() if sizes else 1)
    return tuple(found)


_BYTES = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8e5m2": 1, "f8e4m3": 1, "i8": 1, "i16": 2, "i32": 4,
    "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1, "c32": 4, "c64": 8, "c128": 16,
}  # fmt: skip
_CATEGORY = {
    name: 0 if name == "bool" else 3 if name[0] == "c" else 1 if name[0] in "iu" else 2
    for name in _BYTES
}
_PART = {"c32": "f16", "c64": "f32", "c128": "f64"}
_COMPLEX = {"f16": "c32", "bf16": "c64", "f32": "c64", "f64": "c128"}


def promote_types(a: str, b: str) -> str:
    """torch.promote_types, as kiln/promote.h has it."""
    if a == b:
        return a
    wide = ("u16", "u32", "u64")
    if (a in wide or b in wide) and 2 not in (_CATEGORY[a], _CATEGORY[b]) or "8e" in a + b:
        raise RuleError("the dtypes have no common one", f"{a} and {b}", "convert one of them")
    if _CATEGORY[a] == _CATEGORY[b]:
        if _BYTES[a] != _BYTES[b]:
            return a if _BYTES[a] > _BYTES[b] else b
        return "f32" if _CATEGORY[a] == 2 else "i16" if _BYTES[a] == 1 else a
    high, low = (a, b) if _CATEGORY[a] > _CATEGORY[b] else (b, a)
    if _CATEGORY[high] == 3 and _CATEGORY[low] == 2:
        return _COMPLEX[promote_types(_PART[high], low)]
    return high


def promoted(operands: list[Any]) -> str:
    """The dtype of an elementwise operation on Shapes, dtypes and numbers: those without
    dimensions, and then plain numbers, count only when their category is higher."""
    ranks: list[Optional[str]] = [None, None, None]
    for one in operands:
        if isinstance(one, Shape):
            rank, dtype = (0 if one.sizes else 1), one.dtype
        elif isinstance(one, str):
            rank, dtype = 0, one
        else:
            dtype = "bool" if isinstance(one, bool) else "i64" if isinstance(one, int) else "f32"
            rank = 2
        seen = ranks[rank]
        ranks[rank] = dtype if seen is None else promote_types(seen, dtype)
    found = _combined(ranks[0], _combined(ranks[1], ranks[2]))
    assert found is not None
    return found


def _combined(higher: Optional[str], lower: Optional[str]) -> Optional[str]:
    if higher is None or lower is None:
        return lower if higher is None else higher
    if _CATEGORY[higher] == 2 and _CATEGORY[lower] == 3:
        return _COMPLEX[higher]
    if _CATEGORY[higher] >= 2 or _CATEGORY[lower] <= _CATEGORY[higher]:
        return higher
    return lower


def _name_of(dtype: Any) -> str:
    return DTYPE_NUMBERS[dtype] if isinstance(dtype, int) else str(dtype)
