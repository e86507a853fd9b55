# SPDX-License-Identifier: Apache-2.0
"""What does an op do under torch.func (grad, vjp, jvp, vmap and what is made of them)? It is
differentiated by its backward; without one it raises, as it does for loss.backward().

A transform wraps its tensors and runs an op once for each level of wrappers. torch itself knows no
rule for an op without a backward: it gives zeros at the level of grad (torch 2.7 to 2.15). A kernel
of the op's own at Autograd would know better, and each eager call would pay for it. So the op has a
kernel where transforms begin, which passes the call on to a twin; the twin has the same schema and
a kernel at Autograd.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Optional

from ._no_backward import WHY_AND_FIX, refusal_to_write
from ._torch import torch_module

NAMESPACE = "kiln_transformed"
_FRONT = "FuncTorchDynamicLayerFrontMode"

Rules = Callable[[], Optional[tuple[Callable[..., Any], Callable[..., Any]]]]


def follow_transforms(overload: Any, library: Any, rules: Rules) -> None:
    """`library`: the torch.library.Library whose end takes the registration back. `rules` gives
    backward and setup_context, or None."""
    twins: list[Twin] = []

    def front(*args: Any, **kwargs: Any) -> Any:
        if not twins:
            twins.append(Twin(overload, rules))
        twins[0].learn_vmap()
        return twins[0].overload(*args, **kwargs)

    library.impl(overload._name, front, _FRONT)


class Twin:
    """An op of the same schema that runs another under torch.func."""

    def __init__(self, overload: Any, rules: Rules) -> None:
        torch = torch_module()
        self.original, self.rules = overload, rules
        self._library = torch.library.Library(NAMESPACE, "FRAGMENT")
        namespace, _, rest = overload._name.partition("::")
        base, _, suffix = rest.partition(".")
        name = f"{namespace}_{base}"
        schema = str(overload._schema)
        arguments = schema[schema.index("(") :]
        place = getattr(torch.ops, NAMESPACE)
        full = name + ("." + suffix if suffix else "")
        if not torch._C._dispatch_has_kernel(f"{NAMESPACE}::{full}"):
            # A definition stays: another build of the same op takes it over.
            _definitions().define(full + arguments)
        self.overload = getattr(getattr(place, name), suffix or "default")
        self._full = f"{NAMESPACE}::{full}"
        self._library.impl(self._full, self._plain, "CompositeExplicitAutograd")
        self._library.impl(self._full, self._recorded, "Autograd")
        self._has_vmap = False

    def learn_vmap(self) -> None:
        """A rule of torch.library.register_vmap is the original's; it may come at any time."""
        torch = torch_module()
        if self._has_vmap or not torch._C._dispatch_has_kernel_for_dispatch_key(
            self.original._name, "FuncTorchBatched"
        ):
            return
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)

        def batched(*args: Any, **kwargs: Any) -> Any:
            return self.original.redispatch(keys, *args, **kwargs)

        self._library.impl(self._full, batched, "FuncTorchBatched")
        self._has_vmap = True

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        return self.original(*args, **kwargs)

    def _recorded(self, *args: Any, **kwargs: Any) -> Any:
        torch = torch_module()
        if torch._C._functorch.peek_interpreter_stack() is None:
            return self.original(*args, **kwargs)  # below all transforms: as an eager call
        if self.original._schema.is_mutable:
            _refuse_to_write(self.original, args, kwargs)
            with torch._C._AutoDispatchBelowAutograd():
                return self.overload(*args, **kwargs)
        from torch.utils import _pytree as pytree

        flat, layout = pytree.tree_flatten((args, kwargs))
        shape: list[Any] = []
        from torch._functorch.utils import enable_single_level_autograd_function

        function = _single_level(self, layout, shape)
        with enable_single_level_autograd_function():
            found = function.apply(*flat)
        return pytree.tree_unflatten(list(found), shape[0])


_DEFINITIONS: list[Any] = []


def _definitions() -> Any:
    if not _DEFINITIONS:
        _DEFINITIONS.append(torch_module().library.Library(NAMESPACE, "FRAGMENT"))
    return _DEFINITIONS[0]


def _single_level(twin: Twin, layout: Any, shape: list[Any]) -> Any:
    """The autograd.Function of one call at one level. torch's public class asks for a function that
    knows all levels; within a level its base class serves, as torch.func itself uses it."""
    torch = torch_module()
    from torch.autograd.forward_ad import _set_fwd_grad_enabled
    from torch.autograd.function import _SingleLevelFunction
    from torch.utils import _pytree as pytree

    name, rules = twin.original._name, twin.rules()
    modes = (
        partial(torch.set_grad_enabled, torch.is_grad_enabled()),
        partial(_set_fwd_grad_enabled, torch._C._is_fwd_grad_enabled()),
    )

    def forward(*flat: Any) -> Any:
        args, kwargs = pytree.tree_unflatten(list(flat), layout)
        # apply() has switched both modes off, and the levels below record too.
        with modes[0](), modes[1](), torch._C._AutoDispatchBelowAutograd():
            found, result_layout = pytree.tree_flatten(twin.overload(*args, **kwargs))
        shape.append(result_layout)
        return tuple(found)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        if rules is None:
            return
        from torch._library.utils import fill_defaults

        schema = twin.original._schema
        args, kwargs = pytree.tree_unflatten(list(inputs), layout)
        args, kwargs = fill_defaults(schema, args, kwargs)
        given = {"keyword_only_inputs": kwargs} if kwargs else {}
        output = pytree.tree_unflatten(list(output), shape[0])
        rules[1](ctx, args, output, **given)

    def backward(ctx: Any, *gradients: Any) -> Any:
        if rules is None:
            raise RuntimeError(f"error: {name} has no backward\n{WHY_AND_FIX}")
        args, kwargs = layout.unflatten([None] * layout.num_leaves)
        found = rules[0](ctx, *_as_results(pytree, gradients, shape[0]))
        found = list(found) if isinstance(found, tuple) else [found]
        return tuple(_leaves_of_gradients(pytree, name, found, args, kwargs))

    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(
            f"error: {name} has no forward-mode derivative\n  why: torch.func.jvp or another user "
            "of forward mode asked for one, and an op has a backward only\n  fix: use reverse "
            "mode: torch.func.vjp, grad or jacrev (jacrev(grad(f)) for hessian(f))"
        )

    return type(
        f"At_one_level_{name.replace('::', '_').replace('.', '_')}",
        (_SingleLevelFunction,),
        {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
            "jvp": staticmethod(jvp),
        },
    )


def _as_results(pytree: Any, gradients: Any, layout: Any) -> tuple[Any, ...]:
    """One per result of the schema: a list for a list of tensors."""
    found = pytree.tree_unflatten(list(gradients), layout)
    return tuple(found) if isinstance(found, tuple) else (found,)


def _leaves_of_gradients(
    pytree: Any, name: str, found: list[Any], args: Any, kwargs: Any
) -> list[Any]:
    """One gradient per flat argument, from one per argument of the schema. A result beyond the
    arguments that were passed is one of a default."""
    if len(found) < len(args):
        raise RuntimeError(
            f"error: the backward of {name} returned {len(found)} gradients for {len(args)} "
            "arguments\n  fix: return one for each, None where there is none"
        )
    leaves: list[Any] = []
    for given, gradient in zip(args, found):
        count = len(pytree.tree_leaves(given, is_leaf=lambda one: one is None))
        if isinstance(given, (list, tuple)):
            leaves += list(gradient) if gradient is not None else [None] * count
        else:
            leaves.append(gradient)
    return leaves + [None] * len(pytree.tree_leaves(kwargs, is_leaf=lambda one: one is None))


def _refuse_to_write(overload: Any, args: Any, kwargs: Any) -> None:
    torch = torch_module()
    from torch.autograd import forward_ad
    from torch.utils import _pytree as pytree

    tensors = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    recorded = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
    dual = any(forward_ad.unpack_dual(one).tangent is not None for one in tensors)
    if not recorded and not dual:
        return
    raise RuntimeError(refusal_to_write(overload))
