# SPDX-License-Identifier: Apache-2.0
"""What does a traced op without a backward do when a gradient is asked for? It raises, as an eager
one does.

An eager call needs nothing from here: the op's library marks its results
(runtime/src/autograd.cpp). torch.compile never runs the op while it traces, but asks for its Python
kernels, which eager calls do not pay for.
"""

from __future__ import annotations

from typing import Any

from ._torch import torch_module

WHY_AND_FIX = (
    "  why: a gradient was asked for through its result\n  fix: give it one with @op.backward, or "
    "keep it out of the graph: call it under torch.no_grad(), or detach() its arguments"
)


def refuse_traced_gradients(overload: Any) -> None:
    """Backward through the traced op raises; one that writes raises at once, as an eager one."""
    torch = torch_module()
    key = torch._C.DispatchKey.Autograd
    allow_traced_gradients(overload)

    def autograd(*args: Any, **kwargs: Any) -> Any:
        from torch.utils import _pytree as pytree

        flat, layout = pytree.tree_flatten((args, kwargs))
        asked = any(isinstance(one, torch.Tensor) and one.requires_grad for one in flat)
        if not (asked and torch.is_grad_enabled()):
            return _below_autograd(overload, args, kwargs)
        if overload._schema.is_mutable:
            raise RuntimeError(refusal_to_write(overload))
        shape: list[Any] = []
        found = _function().apply(overload, layout, shape, *flat)
        return pytree.tree_unflatten(list(found), shape[0])

    overload.py_impl(key)(autograd)


def refusal_to_write(overload: Any) -> str:
    written = next(
        one.name for one in overload._schema.arguments if one.alias_info and one.alias_info.is_write
    )
    return (
        f"error: {overload._name} cannot be differentiated\n  why: it writes to '{written}', and "
        "one of its arguments requires a gradient\n  fix: call it under torch.no_grad(), or "
        "detach() the arguments that require one"
    )


def allow_traced_gradients(overload: Any) -> None:
    """The op has got a backward, or is about to get its refusal anew."""
    overload.py_kernels.pop(torch_module()._C.DispatchKey.Autograd, None)
    overload._dispatch_cache.clear()


def _below_autograd(overload: Any, args: Any, kwargs: Any) -> Any:
    with torch_module()._C._AutoDispatchBelowAutograd():
        return overload(*args, **kwargs)


_FUNCTIONS: list[Any] = []


def _function() -> Any:
    """A torch.autograd.Function, made when torch is there."""
    if _FUNCTIONS:
        return _FUNCTIONS[0]
    torch = torch_module()
    from torch.utils import _pytree as pytree

    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, overload: Any, layout: Any, shape: list[Any], *flat: Any) -> Any:
            args, kwargs = pytree.tree_unflatten(list(flat), layout)
            found, result_layout = pytree.tree_flatten(_below_autograd(overload, args, kwargs))
            ctx.op = str(overload._name)
            shape.append(result_layout)
            return tuple(found)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise RuntimeError(f"error: {ctx.op} has no backward\n{WHY_AND_FIX}")

    _FUNCTIONS.append(NoBackward)
    return NoBackward
