# SPDX-License-Identifier: Apache-2.0
"""In which forms can the same arguments reach an op? Other strides, another alignment, expanded
views, other sizes.

The reference runs on the same changed arguments as the op.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .._torch import torch_module

# Distinct sizes of which dimensions are shrunk; each costs three runs.
_MOST_SIZES = 3


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    written_names: frozenset[Any]  # positions and keywords of the arguments that the op writes to
    overload: Any  # the OpOverload that takes these arguments, or None

    @classmethod
    def of(cls, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        overload = _overload_for(op, args, kwargs)
        written: set[Any] = set()
        for index, argument in enumerate([] if overload is None else overload._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.update((index, argument.name))
        return cls(args, kwargs, frozenset(written), overload)

    @property
    def device(self) -> Any:
        return next((tensor.device for tensor in self.tensors()), None)

    def slots(self) -> Iterator[tuple[Any, Any]]:
        yield from enumerate(self.args)
        yield from self.kwargs.items()

    def tensors(self) -> list[Any]:
        found: list[Any] = []
        for _, value in self.slots():
            found += [
                one
                for one in (value if isinstance(value, (list, tuple)) else [value])
                if _is_tensor(one)
            ]
        return found

    def named_tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """(name, tensor, is_written) of each tensor, in the order of tensors(). Those of a list:
        xs[0], xs[1]."""
        arguments = (
            []
            if self.overload is None
            else [argument.name for argument in self.overload._schema.arguments]
        )
        for key, value in self.slots():
            name = (
                key
                if isinstance(key, str)
                else arguments[key]
                if key < len(arguments)
                else f"argument {key}"
            )
            written = key in self.written_names
            if _is_tensor(value):
                yield name, value, written
            elif isinstance(value, (list, tuple)):
                for index, one in enumerate(value):
                    if _is_tensor(one):
                        yield f"{name}[{index}]", one, written

    def written(self) -> list[Any]:
        return [
            value for key, value in self.slots() if key in self.written_names and _is_tensor(value)
        ]

    def map(self, change: Callable[[Any, bool], Any]) -> Call:
        """The call with change(tensor, is_written) in place of every tensor."""

        def apply(key: Any, value: Any) -> Any:
            if _is_tensor(value):
                return change(value, key in self.written_names)
            if isinstance(value, (list, tuple)) and any(_is_tensor(one) for one in value):
                return [
                    change(one, key in self.written_names) if _is_tensor(one) else one
                    for one in value
                ]
            return value

        args = tuple(apply(index, value) for index, value in enumerate(self.args))
        return Call(
            args,
            {k: apply(k, v) for k, v in self.kwargs.items()},
            self.written_names,
            self.overload,
        )

    def copy(self) -> Call:
        """The same values in the same layout, in memory of their own. Arguments that share memory
        share it again."""
        copies: dict[int, Any] = {}

        def duplicate(tensor: Any, _written: bool) -> Any:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in copies or storage.nbytes() == 0:
                copies[storage.data_ptr()] = storage.clone()
            copy = torch_module().empty(0, dtype=tensor.dtype, device=tensor.device)
            copy.set_(
                copies[storage.data_ptr()], tensor.storage_offset(), tensor.shape, tensor.stride()
            )
            return copy.requires_grad_(tensor.requires_grad)

        return self.map(duplicate)

    def bytes(self) -> list[Any]:
        return [_whole_storage(tensor).clone() for tensor in self.tensors()]

    def check_bytes(self, before: list[Any]) -> None:
        """Raises when a byte changed that the op was not to write: of an input, or between elements
        of an output."""
        torch = torch_module()
        written = {id(tensor) for tensor in self.written()}
        for index, (tensor, old) in enumerate(zip(self.tensors(), before)):
            now = _whole_storage(tensor)
            if id(tensor) in written:
                # The elements themselves may change: put them into the old bytes, and what is left
                # must be equal.
                view = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                view.set_(
                    old.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
                )
                view.copy_(tensor.detach())
            if torch.equal(now, old):
                continue
            place = (now != old).nonzero()[0].item()
            what = (
                "outside the elements of tensor argument"
                if id(tensor) in written
                else "in the input"
            )
            raise AssertionError(
                f"the op changed memory {what} {index}: byte {place} of {now.numel()} was "
                f"{old[place].item()} and is "
                f"{now[place].item()}"
            )


@dataclass(frozen=True)
class Variant:
    name: str
    call: Optional[Call]
    why: str = ""  # why there is no call


def variants_of(call: Call) -> Iterator[Variant]:
    for name, (change, least_ndim) in LAYOUTS.items():
        if any(tensor.ndim >= least_ndim for tensor in call.tensors()):
            yield Variant(name, call.map(_keeping_gradients(change)))
        else:
            yield Variant(name, None, f"no tensor has {least_ndim} dimensions or more")
    yield from _resized(call)


def with_other_scalars(call: Call) -> Iterator[Variant]:
    """Each number takes values that the caller did not think of: 0.1 and 1/3 are not exact in any
    binary type, so they tell float from double. An int becomes one more, a bool the other.

    Numbers that were left out are tried too, where they are floats: their defaults (1.0) hide the
    same."""
    arguments = [] if call.overload is None else call.overload._schema.arguments
    names = [argument.name for argument in arguments]
    given = {
        key if isinstance(key, str) else names[key] if key < len(names) else key: (key, value)
        for key, value in call.slots()
    }
    for argument in arguments:
        default = argument.default_value
        if argument.name not in given and isinstance(default, float):
            given[argument.name] = (argument.name, default)
    floats = {argument.name for argument in arguments if str(argument.real_type) == "float"}
    for name, (key, value) in given.items():
        for other in _other_values(value, name in floats):
            args, kwargs = list(call.args), dict(call.kwargs)
            if isinstance(key, str):
                kwargs[key] = other
            else:
                args[key] = other
            shown = name if isinstance(name, str) else f"argument {name}"
            text = f"{shown} = {other if isinstance(other, (bool, int)) else f'{other:.6g}'}"
            yield Variant(text, Call(tuple(args), kwargs, call.written_names, call.overload))


def _other_values(value: Any, is_float: bool) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float) or (is_float and isinstance(value, int)):
        return [other for other in (0.1, 1 / 3) if other != value]
    return [value + 1] if isinstance(value, int) else []


def _keeping_gradients(change: Callable[[Any, bool], Any]) -> Callable[[Any, bool], Any]:
    return lambda tensor, written: change(tensor, written).requires_grad_(tensor.requires_grad)


def _strided(tensor: Any, _written: bool) -> Any:
    """Every second element of the last dimension."""
    if tensor.ndim == 0:
        return tensor
    room = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    return room[..., ::2].copy_(tensor.detach())


def _transposed(tensor: Any, _written: bool) -> Any:
    """The first dimension runs fastest."""
    if tensor.ndim < 2:
        return tensor
    order = tuple(reversed(range(tensor.ndim)))
    return tensor.detach().permute(order).contiguous().permute(order)


def _misaligned(tensor: Any, _written: bool) -> Any:
    """One element past an aligned address."""
    room = tensor.new_zeros(tensor.numel() + 1)
    return room[1:].view(tensor.shape).copy_(tensor.detach())


def _expanded(tensor: Any, written: bool) -> Any:
    """Row 0 stands for every row, through a stride of 0. What is written to keeps its memory."""
    if tensor.ndim == 0 or written or tensor.shape[0] == 0:
        return tensor.detach().clone()
    return tensor.detach()[:1].clone().expand(tensor.shape)


# Name -> how a tensor gets that layout, and how many dimensions it needs at least.
LAYOUTS: dict[str, tuple[Callable[[Any, bool], Any], int]] = {
    "strided": (_strided, 1),
    "transposed": (_transposed, 2),
    "misaligned": (_misaligned, 0),
    "expanded": (_expanded, 1),
}


def _resized(call: Call) -> Iterator[Variant]:
    """Every dimension of one size becomes 0, 1, or one less, in all tensors at once: shapes that
    fitted still fit."""
    sizes: dict[int, None] = {}
    for tensor in call.tensors():
        sizes.update((size, None) for size in tensor.shape if size > 1)
    if not sizes:
        yield Variant("other sizes", None, "no dimension is larger than 1")
    for size in list(sizes)[:_MOST_SIZES]:
        for smaller in dict.fromkeys((0, 1, size - 1)):
            change = _keeping_gradients(functools.partial(_shrunk, size, smaller))
            yield Variant(f"size {size} -> {smaller}", call.map(change))


def _shrunk(size: int, smaller: int, tensor: Any, _written: bool) -> Any:
    view = tensor.detach()
    for dimension, length in enumerate(tensor.shape):
        if length == size:
            view = view.narrow(dimension, 0, smaller)
    return view.clone(memory_format=torch_module().contiguous_format)


def _whole_storage(tensor: Any) -> Any:
    torch = torch_module()
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage())


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch_module().Tensor)


def _overload_for(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    torch = torch_module()
    if isinstance(op, torch._ops.OpOverload):
        return op
    if not isinstance(op, torch._ops.OpOverloadPacket):
        return None
    names = op.overloads()
    if len(names) == 1:
        return getattr(op, names[0])
    try:
        return getattr(op, torch._C._jit_resolve_packet(op._qualified_op_name, *args, **kwargs))
    except RuntimeError:
        return None
