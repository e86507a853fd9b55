# SPDX-License-Identifier: Apache-2.0
"""Does the backward of an op give the gradients of its reference?

Every differentiable result gets a random weight; the gradients of the weighted sum are compared,
input by input. The reference is differentiated in f64 where it can be, as for the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Optional

from .._torch import torch_module
from .arguments import LAYOUTS, Call
from .compare import Tolerance, compare
from .poison import poisoned
from .reference import Reference, first_line, results_of, seeded, widened
from .terms import sizes_of_terms


class NotDifferentiable(Exception):
    """There is nothing to compare; the text says why."""


@dataclass(frozen=True)
class Differentiated:
    call: Call
    leaves: list[tuple[str, Any]]  # name, tensor that requires a gradient
    outputs: dict[int, Any]  # the results that can be differentiated, by number


def has_backward(overload: Any, device: Any) -> bool:
    """Whether torch can differentiate the op for tensors of the device, as far as its registrations
    say."""
    torch = torch_module()
    if overload is None:
        return True  # a plain function: its results show
    namespace, name = overload._name.split(".")[0].split("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    if hasattr(packet, "_kiln_backward"):
        return overload._overloadname in packet._kiln_backward
    own = "autograd" + (device.type if device is not None else "cpu")
    keys = [key for key in torch._C.DispatchKey.__members__ if key.lower() in ("autograd", own)]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return any(has_kernel(overload._name, key) for key in (*keys, "CompositeImplicitAutograd"))


def with_leaves(call: Call) -> Call:
    """The call on copies that require a gradient: all floating tensors, or those that were given
    so, if any was."""
    chosen = any(tensor.requires_grad for tensor in call.tensors())
    fresh = call.copy()
    for given, (_, tensor, written) in zip(call.tensors(), fresh.named_tensors()):
        differentiable = tensor.dtype.is_floating_point or tensor.dtype.is_complex
        tensor.requires_grad_(
            differentiable and not written and (given.requires_grad or not chosen)
        )
    return fresh


def leaves_of(call: Call) -> list[tuple[str, Any]]:
    return [(name, tensor) for name, tensor, _ in call.named_tensors() if tensor.requires_grad]


class Gradients:
    def __init__(self, op: Any, reference: Reference, tolerance: Tolerance, seed: int) -> None:
        self.op, self.reference, self.tolerance, self.seed = op, reference, tolerance, seed

    def check(
        self, call: Call, layout: str = "", only: Optional[int] = None, ones: bool = False
    ) -> dict[str, str]:
        """Compares the gradients of every input; name -> "" or how far they are apart.

        Raises AssertionError at the first difference, NotDifferentiable where there is nothing to
        compare. layout: that of the gradients that come in; only: of this result alone; ones: as
        .sum().backward() sends them.
        """
        leaves = with_leaves(call)
        if not leaves_of(leaves):
            raise NotDifferentiable("no input is a floating-point tensor that the op only reads")
        right = self._reference(leaves)
        before = leaves.bytes()
        with torch_module().enable_grad(), poisoned(call.device, "junk"):
            mine = self._differentiable(self.op, leaves)
            if not mine.outputs:
                if self._promises_none(call):
                    raise NotDifferentiable(
                        "the function's results have none: a torch.autograd.Function gives them"
                    )
                raise AssertionError(
                    "no result of the op requires a gradient, though its inputs do"
                )
            chosen = [n for n in mine.outputs if n in right.outputs and only in (None, n)]
            if not chosen:
                raise NotDifferentiable(
                    "no result is differentiable in both the op and its reference"
                )
            weights = {n: self._weight(n, mine.outputs[n], layout, ones) for n in chosen}
            got = self._gradients(mine, weights)
        leaves.check_bytes(before)
        with torch_module().enable_grad():
            expected = self._gradients(right, weights)
        compared = partial(self._compared_all, mine, got, expected)
        try:
            return compared(None)
        except AssertionError:
            # Where terms cancel, the gradient does not tell how far a right backward may be off.
            given = self.tolerance.atol is not None
            if given or (terms := self._terms(right.call, weights)) is None:
                raise
            return compared(terms)

    def _terms(self, call: Call, weights: dict[int, Any]) -> Optional[list[Any]]:
        def run() -> list[Any]:
            fresh = call.copy()
            with torch_module().enable_grad():
                again = self._differentiable(self.reference.function, fresh)
                found = self._gradients(again, weights)
            zeros = torch_module().zeros_like
            return [
                zeros(leaf) if one is None else one for one, (_, leaf) in zip(found, again.leaves)
            ]

        return sizes_of_terms(run)

    def _compared_all(
        self,
        mine: Differentiated,
        got: Sequence[Any],
        expected: Sequence[Any],
        terms: Optional[Sequence[Any]],
    ) -> dict[str, str]:
        sizes = terms or [None] * len(got)
        return {
            name: self._compared(name, ours, theirs, size)
            for (name, _), ours, theirs, size in zip(mine.leaves, got, expected, sizes)
        }

    def _promises_none(self, call: Call) -> bool:
        """A plain function, such as the wrapper of a Triton kernel, need not have gradients, unless
        it is an autograd.Function or the caller's tensors ask for them."""
        function = getattr(self.op, "__self__", None)
        is_autograd = isinstance(function, type) and issubclass(
            function, torch_module().autograd.Function
        )
        asked = any(tensor.requires_grad for tensor in call.tensors())
        return call.overload is None and not is_autograd and not asked

    def results(self, call: Call) -> list[int]:
        """The results that can be differentiated in both."""
        with torch_module().enable_grad():
            leaves = with_leaves(call)
            right = self._reference(leaves)
            return [n for n in self._differentiable(self.op, leaves).outputs if n in right.outputs]

    def _reference(self, leaves: Call) -> Differentiated:
        """In f64, unless the reference computes in a dtype of its own."""
        try:
            wide = None if self.reference.expected(leaves).why_not_f64 else widened(leaves.copy())
            call = leaves.copy() if wide is None else wide
            for given, tensor in zip(leaves.tensors(), call.tensors()):
                tensor.requires_grad_(given.requires_grad)
            with torch_module().enable_grad():
                return self._differentiable(self.reference.function, call)
        except Exception as error:
            raise NotDifferentiable(
                f"the reference cannot be differentiated: {first_line(error)}"
            ) from None

    def _differentiable(self, function: Callable[..., Any], call: Call) -> Differentiated:
        torch = torch_module()
        with seeded(self.seed):
            found = results_of(function(*call.args, **call.kwargs), call)
        outputs = {
            n: one
            for n, one in enumerate(found)
            if isinstance(one, torch.Tensor) and one.requires_grad
        }
        return Differentiated(call, leaves_of(call), outputs)

    def _weight(self, index: int, output: Any, layout: str, ones: bool) -> Any:
        torch = torch_module()
        if ones:
            return torch.ones((), dtype=output.dtype, device=output.device).expand(output.shape)
        make = torch.Generator().manual_seed(self.seed + index)
        dtype = torch.complex128 if output.dtype.is_complex else torch.float64
        weight = (
            torch.randn(output.shape, generator=make, dtype=dtype)
            .to(output.dtype)
            .to(output.device)
        )
        change, min_ndim = LAYOUTS.get(layout, (None, 0))
        return change(weight, False) if change and weight.ndim >= min_ndim else weight

    def _gradients(self, of: Differentiated, weights: dict[int, Any]) -> Sequence[Any]:
        outputs = [of.outputs[n] for n in weights]
        weighted = [weight.to(one.dtype) for weight, one in zip(weights.values(), outputs)]
        return torch_module().autograd.grad(
            outputs, [leaf for _, leaf in of.leaves], weighted, allow_unused=True
        )

    def _compared(self, name: str, got: Any, expected: Any, terms: Any) -> str:
        """expected None: the reference does not differentiate with respect to this input, and
        neither need the op."""
        if expected is None:
            return "" if got is None else "the reference has no gradient for it"
        if got is None:
            largest = 0.0 if terms is None else terms.double() * 2.0**-40
            if not (expected.abs() > largest).any():
                return "none, as zero in the reference"
            place = expected.nonzero()[0].tolist()
            raise AssertionError(
                f"the gradient of '{name}' differs at {place}: got None for the whole input, "
                f"expected "
                f"{expected[tuple(place)].item()!r}; return a gradient for it, or detach it in the "
                f"reference if it is "
                "not meant to have one"
            )
        return compare(
            [got],
            [expected.to(got.dtype)],
            self.tolerance,
            f"the gradient of '{name}'",
            None if terms is None else [terms],
        )


def check_numerically(op: Any, call: Call) -> str:
    """The backward against finite differences in f64; raises AssertionError. Returns what was done,
    or raises NotDifferentiable where the op takes no f64."""
    torch = torch_module()
    from torch.autograd.gradcheck import GradcheckError

    wide = with_leaves(widened(call) or call).map(
        lambda t, _: t.detach().contiguous().requires_grad_(t.requires_grad)
    )
    names = [name for name, _ in leaves_of(wide)]
    if not names:
        raise NotDifferentiable("no input is a floating-point tensor that the op only reads")
    try:
        op(*wide.copy().args, **wide.copy().kwargs)
    except Exception as error:
        raise NotDifferentiable(
            f"not checked: the op has no reference and takes no f64: {first_line(error)}"
        ) from None

    def run(*leaves: Any) -> Any:
        given = iter(leaves)
        filled = wide.map(lambda tensor, _: next(given) if tensor.requires_grad else tensor)
        found = results_of(op(*filled.args, **filled.kwargs), filled)
        return tuple(one for one in found if isinstance(one, torch.Tensor) and one.requires_grad)

    leaves = tuple(tensor for _, tensor in leaves_of(wide))
    fast = sum(leaf.numel() for leaf in leaves) > _MAX_FULL_ELEMENTS
    try:
        torch.autograd.gradcheck(run, leaves, fast_mode=fast, nondet_tol=1e-9)
    except GradcheckError as error:
        inputs = ", ".join(f"input {index} is '{name}'" for index, name in enumerate(names))
        raise AssertionError(f"gradcheck in f64 ({inputs}): {error}") from None
    return f"gradcheck in f64 of {', '.join(names)}{', along random directions' if fast else ''}"


# gradcheck takes two runs of the op for each of them; beyond, it follows random directions.
_MAX_FULL_ELEMENTS = 256
