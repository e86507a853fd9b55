# SPDX-License-Identifier: Apache-2.0
"""What does an op return, by its fake rule, on tensors that have no data?

A rule is parsed and checked against the schema once, at load; evaluated, it makes empty tensors.
Sizes stay what torch gives them (int or SymInt): a conversion to int would tie a compiled graph to
one shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from ..errors import RuleError
from .evaluation import Evaluation
from .layout import elementwise_strides
from .syntax import (
    DTYPE_NUMBERS,
    DTYPES,
    Arithmetic,
    Dtype,
    Expr,
    Name,
    Result,
    Size,
    Splat,
    fault,
    parse,
)

_KINDS = {
    "Tensor": "tensor", "int": "int", "SymInt": "int", "float": "float", "bool": "bool",
    "str": "str", "ScalarType": "dtype", "Device": "device", "List[Tensor]": "tensors",
    "List[int]": "ints", "List[SymInt]": "ints", "List[float]": "floats", "List[bool]": "bools",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str  # a value of _KINDS
    optional: bool
    default: Any
    written: bool


def parameters_of(schema: Any) -> tuple[Parameter, ...]:
    """The parameters of a torch FunctionSchema in the words of a rule."""
    found = []
    for argument in schema.arguments:
        text = str(argument.real_type)
        optional = text.startswith("Optional[")
        text = text[len("Optional[") : -1] if optional else text
        written = argument.alias_info is not None and argument.alias_info.is_write
        default = argument.default_value if argument.has_default_value() else None
        found.append(Parameter(argument.name, _KINDS.get(text, text), optional, default, written))
    return tuple(found)


def compile_rule(rule: str, schema: Any) -> Callable[..., Any]:
    """A function with the op's arguments that makes the op's results from them. Raises
    RuleError."""
    results = parse(rule)
    parameters = parameters_of(schema)
    checked = _Check(rule, {parameter.name: parameter for parameter in parameters})
    for result in results:
        checked.result(result)
    if len(results) != len(schema.returns):
        raise RuleError(
            "the fake rule is not valid",
            f"it declares {len(results)} results and the op has {len(schema.returns)}\n{rule}",
            f"the schema is {schema}",
        )

    def fake(*args: Any, **kwargs: Any) -> Any:
        # torch leaves out arguments that equal their defaults.
        values = {parameter.name: parameter.default for parameter in parameters}
        values.update(zip(values, args), **kwargs)
        for parameter in parameters:
            if parameter.kind == "dtype":
                values[parameter.name] = _as_dtype(values[parameter.name])
        made = [_Evaluation(rule, values).result(result) for result in results]
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    fake.__name__ = fake.__qualname__ = "fake_rule"
    fake.__doc__ = f"The fake rule {rule!r}."
    return fake


def default_fake(schema: Any) -> Optional[Callable[..., Any]]:
    """What an op without a rule must return: nothing, or tensors that it was given to write. None:
    it has others."""
    names = [argument.name for argument in schema.arguments]
    written = {
        frozenset(argument.alias_info.before_set): argument.name
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    returned = []
    for result in schema.returns:
        alias = None if result.alias_info is None else frozenset(result.alias_info.before_set)
        if alias not in written:
            return None
        returned.append(written[alias])

    def fake(*args: Any, **kwargs: Any) -> Any:
        values = {**dict(zip(names, args)), **kwargs}
        made = [values[name] for name in returned]
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    return fake


class _Check:
    """Every name is a parameter of the right kind, before any tensor is seen."""

    def __init__(self, rule: str, parameters: dict[str, Parameter]) -> None:
        self.rule, self.parameters = rule, parameters

    def kind(self, name: Name) -> str:
        if name.name not in self.parameters:
            known = ", ".join(self.parameters) or "none"
            raise fault(
                self.rule,
                name.at,
                f"the op has no parameter '{name.name}'",
                f"its parameters: {known}",
            )
        kind = self.parameters[name.name].kind
        if name.index is None:
            return kind
        self.expr(name.index)
        if kind not in ("tensors", "ints"):
            raise fault(self.rule, name.at, f"'{name.name}' is not a list")
        return kind[:-1]

    def need(self, name: Name, *kinds: str) -> None:
        kind = self.kind(name)
        if kind not in kinds:
            raise fault(
                self.rule,
                name.at,
                f"'{name.name}' is of kind {kind}; {' or '.join(kinds)} is needed here",
            )

    def result(self, result: Result) -> None:
        for tensor in result.tensors:
            self.need(tensor, "tensor", "tensors") if result.kind == "like" else self.need(
                tensor, "tensor"
            )
        if result.dtype is not None:
            self.dtype(result.dtype)
        for dim in result.dims:
            self.dim(dim)
        if result.device is not None:
            self.need(result.device, "tensor", "device")
        elif result.kind == "shape" and not any(
            p.kind in ("tensor", "tensors") for p in self.parameters.values()
        ):
            raise fault(
                self.rule,
                result.at,
                "the op has no tensor that could give the device",
                "add '@ device'",
            )

    def dtype(self, dtype: Dtype) -> None:
        for operand in dtype.operands:
            if isinstance(operand, Dtype):
                bare = operand.operands[0] if operand.kind == "operand" else None
                if isinstance(bare, Name):
                    numbers = ("int", "float", "bool") if dtype.kind == "promote" else ()
                    self.need(bare, "tensor", "dtype", *numbers)
                else:
                    self.dtype(operand)
            elif dtype.kind == "parameter":
                self.need(operand, "dtype")
            else:
                self.need(operand, "tensor", "dtype")

    def dim(self, dim: Union[Expr, Splat]) -> None:
        if not isinstance(dim, Splat):
            return self.expr(dim)
        self.need(dim.source, "tensor" if dim.of_shape else "ints")
        for bound in (dim.start, dim.stop):
            if bound is not None:
                self.expr(bound)
        return None

    def expr(self, expr: Expr) -> None:
        if isinstance(expr, Name):
            self.need(expr, "int")
        elif isinstance(expr, Size):
            self.need(expr.tensor, "tensor")
            if expr.index is not None:
                self.expr(expr.index)
        elif isinstance(expr, Arithmetic):
            for operand in expr.operands:
                if expr.operator == "len" and isinstance(operand, Name):
                    self.need(operand, "tensors", "ints")
                else:
                    self.expr(operand)


class _Evaluation(Evaluation):
    def sizes(self, tensor: Any) -> Any:
        return tensor.shape

    def extreme(self, operator: str, values: list[Any]) -> Any:
        import torch

        combine = torch.sym_min if operator == "min" else torch.sym_max
        total = values[0]
        for value in values[1:]:
            total = combine(total, value)
        return total

    def result(self, result: Result) -> Any:
        import torch

        device = None if result.device is None else self.device(self.value(result.device))
        if result.kind == "like":
            like = self.value(result.tensors[0])
            if isinstance(like, (list, tuple)):
                return [
                    torch.empty_like(t, dtype=self.dtype(result.dtype, t.dtype), device=device)
                    for t in like
                ]
            return torch.empty_like(like, dtype=self.dtype(result.dtype, like.dtype), device=device)
        if result.kind == "broadcast":
            given = [
                self.values[t.name] if t.index is None else self.value(t) for t in result.tensors
            ]
            return self.broadcast(
                result, [tensor for tensor in given if tensor is not None], device
            )
        sizes: list[Any] = []
        for dim in result.dims:
            sizes.extend(self.splat(dim)) if isinstance(dim, Splat) else sizes.append(
                self.expr(dim)
            )
        first = self.first_tensor(result)
        return torch.empty(
            sizes, dtype=self.dtype(result.dtype, None), device=device or first.device
        )

    def broadcast(self, result: Result, tensors: list[Any], device: Any) -> Any:
        import torch

        if not tensors:
            raise fault(
                self.rule, result.at, "every tensor of broadcast() was left out of this call"
            )
        dtype = self.dtype(result.dtype, promoted(tensors))
        shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
        strides = elementwise_strides(tensors, shape)
        # A CPU scalar takes part in an operation of CUDA tensors; the result is where the others
        # are.
        placed = next((tensor for tensor in tensors if tensor.ndim > 0), tensors[0])
        return torch.empty_strided(shape, strides, dtype=dtype, device=device or placed.device)

    def first_tensor(self, result: Result) -> Any:
        for value in self.values.values():
            for candidate in value if isinstance(value, (list, tuple)) else (value,):
                if hasattr(candidate, "device") and hasattr(candidate, "shape"):
                    return candidate
        if result.device is not None:
            return None
        raise fault(self.rule, result.at, "no tensor was given, and so no device", "add '@ device'")

    def device(self, value: Any) -> Any:
        return value.device if hasattr(value, "shape") else value

    def dtype(self, dtype: Optional[Dtype], default: Any) -> Any:
        import torch

        if dtype is None:
            return default
        if dtype.kind == "fixed":
            return getattr(torch, DTYPES[dtype.name])
        if dtype.kind == "parameter":
            given = self.values[dtype.name]
            if given is None and default is None:
                raise fault(
                    self.rule,
                    dtype.at,
                    f"'{dtype.name}' was left out of this call and the rule needs it",
                )
            return default if given is None else _as_dtype(given)
        operands = [self.operand(operand) for operand in dtype.operands]
        if dtype.kind == "promote":
            return promoted(operands)
        found = (
            operands[0]
            if isinstance(operands[0], torch.dtype)
            else getattr(operands[0], "dtype", operands[0])
        )
        if dtype.kind == "float_of" and not (found.is_floating_point or found.is_complex):
            return torch.get_default_dtype()
        return _as_dtype(found)


def promoted(operands: list[Any]) -> Any:
    """The dtype that torch gives to an elementwise operation of these tensors, numbers and dtypes.
    A tensor of no dimension yields to others of its category, and a number to any tensor of its
    category."""
    import torch
    from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

    # A symbolic number has the category of its kind, whatever its value; a dtype counts as a tensor
    # with a dimension.
    kinds = ((torch.SymInt, 1), (torch.SymFloat, 1.0), (torch.SymBool, True))
    plain = [next((value for kind, value in kinds if isinstance(o, kind)), o) for o in operands]
    plain = [
        torch.empty(1, dtype=o, device="meta") if isinstance(o, torch.dtype) else o for o in plain
    ]
    return elementwise_dtypes(*plain, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[
        1
    ]


def _as_dtype(value: Any) -> Any:
    import torch

    return getattr(torch, DTYPES[DTYPE_NUMBERS[value]]) if isinstance(value, int) else value
