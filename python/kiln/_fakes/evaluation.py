# SPDX-License-Identifier: Apache-2.0
"""What do the names, sizes and sums of a fake rule stand for in one call?

Here is what a rule means for tensors of torch (rules.py) and for plain sizes (shapes.py) alike;
each adds what a result is made of. Sizes stay what the tensors give: int, or torch's SymInt.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from .syntax import Arithmetic, Dtype, Expr, Name, Number, Size, Splat, fault


class Evaluation:
    """One rule on the arguments of one call."""

    def __init__(self, rule: str, values: dict[str, Any]) -> None:
        self.rule, self.values = rule, values

    def sizes(self, tensor: Any) -> Any:
        raise NotImplementedError

    def dtype(self, dtype: Optional[Dtype], default: Any) -> Any:
        raise NotImplementedError

    def extreme(self, operator: str, values: list[Any]) -> Any:
        return min(values) if operator == "min" else max(values)

    def value(self, name: Name) -> Any:
        value = self.values.get(name.name)
        if name.index is not None and value is not None:
            value = value[self.expr(name.index)]
        if value is None:
            raise fault(
                self.rule, name.at, f"'{name.name}' was left out of this call and the rule needs it"
            )
        return value

    def operand(self, operand: Union[Name, Dtype]) -> Any:
        """A tensor, a number or a dtype."""
        name = (
            operand.operands[0]
            if isinstance(operand, Dtype) and operand.kind == "operand"
            else operand
        )
        return self.value(name) if isinstance(name, Name) else self.dtype(name, None)

    def splat(self, splat: Splat) -> Any:
        source = self.value(splat.source)
        if not splat.of_shape:
            return source
        start = None if splat.start is None else self.expr(splat.start)
        stop = None if splat.stop is None else self.expr(splat.stop)
        return self.sizes(source)[start:stop]

    def expr(self, expr: Expr) -> Any:
        if isinstance(expr, Number):
            return expr.value
        if isinstance(expr, Name):
            return self.value(expr)
        if isinstance(expr, Size):
            return self.size(expr)
        if expr.operator == "len":
            return len(self.value(expr.operands[0]))  # type: ignore[arg-type]
        return self.arithmetic(expr, [self.expr(operand) for operand in expr.operands])

    def size(self, size: Size) -> Any:
        sizes = self.sizes(self.value(size.tensor))
        if size.what == "ndim":
            return len(sizes)
        if size.what == "numel":
            total = 1
            for one in sizes:
                total = total * one
            return total
        assert size.index is not None
        index = self.expr(size.index)
        if not -len(sizes) <= index < len(sizes):
            name = size.tensor.name
            raise fault(
                self.rule,
                size.at,
                f"'{name}' has {len(sizes)} dimensions and the rule asks for {name}.shape[{index}]",
            )
        return sizes[index]

    def arithmetic(self, expr: Arithmetic, values: list[Any]) -> Any:
        if expr.operator == "neg":
            return -values[0]
        if expr.operator in ("min", "max"):
            return self.extreme(expr.operator, values)
        left, right = values
        if expr.operator in ("//", "%", "ceil_div") and isinstance(right, int) and right == 0:
            raise fault(self.rule, expr.at, "a division by zero")
        return {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "//": lambda: left // right,
            "%": lambda: left % right,
            "ceil_div": lambda: (left + right - 1) // right,
        }[expr.operator]()
