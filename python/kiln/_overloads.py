# SPDX-License-Identifier: Apache-2.0
"""What does calling an op run? The C++ function of the overload that is meant, and what torch
leaves to the op.

Where overloads differ in the type of one number, that type tells which one is meant: torch tries
each in turn and throws for each that does not fit; the second costs 17 us on a CPU tensor of 16
elements (torch 2.11, aarch64).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from ._fakes.rules import parameters_of
from ._torch import OLDEST_WITH_LISTS, torch_module, version_of
from .errors import KilnError

_TYPES = {"int": int, "float": float, "str": str}


def callable_of(
    overloads: Sequence[Any], packet_function: Callable[..., Any]
) -> Callable[..., Any]:
    """What is behind op(...): torch's own function of the packet wherever nothing has to be
    added."""
    if version_of(torch_module().__version__) < OLDEST_WITH_LISTS:
        for overload in overloads:
            if any(
                _needs_lists(value)
                for value in (*overload._schema.arguments, *overload._schema.returns)
            ):
                return refusing(overload)
    call = (chooser(overloads, packet_function) if len(overloads) > 1 else None) or packet_function
    written = {
        (position, parameter.name)
        for overload in overloads
        for position, parameter in enumerate(parameters_of(overload._schema))
        if parameter.written
    }
    call = counting(call, tuple(sorted(written))) if written else call
    return with_empty_lists(overloads[0], call) if len(overloads) == 1 else call


def with_empty_lists(overload: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, of an op that may get no tensor at all because it takes lists and optionals only.

    torch finds no device to dispatch on and raises a page of its dispatch keys. The op itself knows
    better what is wrong, or that nothing is: it runs for the device that kiln uses."""
    kinds = [(one.kind, one.optional) for one in parameters_of(overload._schema)]
    takes_tensors = any(kind in ("tensor", "tensors") for kind, _ in kinds)
    if not takes_tensors or any(kind == "tensor" and not optional for kind, optional in kinds):
        return call
    from .place import device

    def call_or_run(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except NotImplementedError:
            values = [*args, *kwargs.values()]
            if any(_has_tensor(value) for value in values):
                raise
        torch = torch_module()
        key = torch._C.DispatchKey.CUDA if device() == "cuda" else torch._C.DispatchKey.CPU
        return overload.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)

    return call_or_run


def _has_tensor(value: Any) -> bool:
    tensor = torch_module().Tensor
    return isinstance(value, tensor) or (
        isinstance(value, (list, tuple)) and any(isinstance(one, tensor) for one in value)
    )


def refusing(overload: Any) -> Callable[..., Any]:
    """torch's own error would speak of the conversion of an IValue."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise KilnError(
            f"cannot call {overload}",
            f"lists and strings cross between torch and an op since torch 2.10; this is "
            f"{torch_module().__version__}",
            "pip install 'torch>=2.10', or write the op without them",
        )

    return refuse


def _needs_lists(value: Any) -> bool:
    kind = str(value.real_type)
    return "List[" in kind or "str" in kind


def counting(call: Callable[..., Any], written: tuple[tuple[int, str], ...]) -> Callable[..., Any]:
    """`call`, and autograd learns what was written: without that, a backward that saved the tensor
    would use the new values in silence. (A kernel at ADInplaceOrView would tell it too, and cost 12
    us a call instead of 0.7.)"""
    from torch.autograd.graph import increment_version

    def call_and_count(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        for position, name in written:
            tensor = args[position] if position < len(args) else kwargs.get(name)
            if tensor is not None:
                increment_version(tensor)
        return result

    return call_and_count


def chooser(
    overloads: Sequence[Any], otherwise: Callable[..., Any]
) -> Optional[Callable[..., Any]]:
    """A function that calls the overload meant, or `otherwise` (torch's own search) when the type
    does not tell.

    None: the overloads do not differ in that way."""
    parameters = [parameters_of(overload._schema) for overload in overloads]
    if len({len(one) for one in parameters}) != 1:
        return None
    differing = [
        index
        for index, kinds in enumerate(zip(*parameters))
        if len({one.kind for one in kinds}) > 1
    ]
    if len(differing) != 1:
        return None
    position = differing[0]
    if any(one[position].kind not in _TYPES or one[position].optional for one in parameters):
        return None
    names = {one[position].name for one in parameters}
    keyword_only = any(overload._schema.arguments[position].kwarg_only for overload in overloads)
    if len(names) != 1 or keyword_only:
        return None
    by_type = {
        _TYPES[one[position].kind]: overload._op for one, overload in zip(parameters, overloads)
    }
    if len(by_type) != len(overloads):
        return None
    name = names.pop()

    def call(*args: Any, **kwargs: Any) -> Any:
        value = args[position] if len(args) > position else kwargs.get(name)
        return by_type.get(type(value), otherwise)(*args, **kwargs)

    return call
