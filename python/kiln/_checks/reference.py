# SPDX-License-Identifier: Apache-2.0
"""What should an op give? Its reference, evaluated in f64 where that can be and rounded to the
dtype of the result.

A reference in f32 has errors of its own: that of a correct GELU differed by more than the tolerance
in 1 of 20 seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .._torch import torch_module
from .arguments import Call
from .terms import sizes_of_terms


def wide_dtype(dtype: Any) -> Any:
    """f64 or complex128 for a narrower dtype; None for what has none wider."""
    torch = torch_module()
    wide = (
        torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else None
    )
    return None if dtype == wide else wide


def widened(call: Call) -> Optional[Call]:
    """The call with every floating tensor in f64 (complex ones in complex128); None where nothing
    gets wider."""
    if not any(wide_dtype(tensor.dtype) for tensor in call.tensors()):
        return None
    return call.map(
        lambda tensor, _written: tensor.detach().to(wide_dtype(tensor.dtype) or tensor.dtype)
    )


def rounded(exact: Sequence[Any], own: Sequence[Any]) -> tuple[list[Any], str]:
    """`exact`, each value in the dtype of its counterpart in `own`, and "", or `own` and why
    `exact` cannot serve.

    Integers and booleans stay those of `own`: a comparison in f64 may fall to the other side of a
    threshold."""
    if len(exact) != len(own):
        return list(own), f"it gives {len(exact)} results for f64 and {len(own)} without"
    found = []
    for one, native in zip(exact, own):
        value, why = _rounded_one(one, native)
        if why:
            return list(own), why
        found.append(value)
    return found, ""


def _rounded_one(one: Any, native: Any) -> tuple[Any, str]:
    torch = torch_module()
    if isinstance(native, (list, tuple)) and isinstance(one, (list, tuple)):
        return rounded(one, native)
    if not isinstance(native, torch.Tensor) or not isinstance(one, torch.Tensor):
        return native, ""
    if one.shape != native.shape:
        return native, "the sizes of its results depend on the dtype"
    wide = wide_dtype(native.dtype)
    if wide is None:
        return native, ""
    if one.dtype != wide:
        return native, f"it computes in {_name(one.dtype)} whatever the dtype of its arguments"
    return one.to(native.dtype), ""


@dataclass(frozen=True)
class Expected:
    results: list[Any]
    why_not_f64: str = ""  # "": they come from f64, or there is nothing narrower than f64


class Reference:
    """A reference function with the seed it runs under."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self.function, self.seed = function, seed

    def expected(self, call: Call) -> Expected:
        """What the reference returns, then what it leaves in the arguments that the op writes
        to."""
        own, drew = self._run(call.copy())
        wide = widened(call.copy())
        if wide is None:
            return Expected(own)
        if drew:
            return Expected(own, "it draws random numbers")
        try:
            exact, _ = self._run(wide)
        except Exception as error:
            return Expected(own, f"it fails in f64: {first_line(error)}")
        return Expected(*rounded(exact, own))

    def terms(self, call: Call) -> Optional[list[Any]]:
        """How large the terms of each result are; None where the reference does not say it."""
        if self.expected(call).why_not_f64:
            return None
        wide = widened(call.copy()) or call

        def run() -> list[Any]:
            return self._run(wide.copy())[0]

        return sizes_of_terms(run)

    def _run(self, call: Call) -> tuple[list[Any], bool]:
        """The results, and whether random numbers were drawn."""
        with seeded(self.seed):
            before = _random_states(call.device)
            found = results_of(self.function(*call.args, **call.kwargs), call)
            after = _random_states(call.device)
        return found, any(not torch_module().equal(a, b) for a, b in zip(before, after))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    torch = torch_module()
    with torch.random.fork_rng(enabled=True):
        torch.manual_seed(seed)
        yield


def results_of(returned: Any, call: Call) -> list[Any]:
    found = (
        list(returned)
        if isinstance(returned, (tuple, list))
        else []
        if returned is None
        else [returned]
    )
    return found + call.written()


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _random_states(device: Any) -> list[Any]:
    torch = torch_module()
    on_gpu = device is not None and device.type == "cuda"
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if on_gpu else [])]


def _name(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")
