# SPDX-License-Identifier: Apache-2.0
"""How large are the terms that make up a result? A result can be far smaller: the gradient of a
softmax under .sum() is 0 exactly, a sum of terms as large as the softmax itself.

An error of rounding is a share of the terms, so they say how far a right op may be off. They are
measured: the reference runs again in f64, and the result of each of torch's operations in it is
changed by a random share, as rounding would change it (Monte Carlo arithmetic: Parker, 1997). How
far the results move, for each unit of that share, is the size of their terms.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .._torch import torch_module

# Far above the rounding of f64 itself, and far below what bends a smooth function.
_SHARE = 2.0**-26
# The largest of so many draws is below half a standard deviation once in 2,000 elements.
_RUNS = 8

# Operations that give one of their inputs, or a part of it: nothing is rounded.
_EXACT = """
abs amax amin arange argmax argmin bernoulli broadcast_to bucketize cat ceil clamp clamp_max
clamp_min clone conj constant_pad_nd contiguous copy copy_ copysign cummax cummin detach empty
empty_like empty_strided eye fill fill_ flip floor frac full full_like gather index index_select
isnan leaky_relu lift lift_fresh masked_fill masked_fill_ masked_select max maximum median min
minimum mode nan_to_num neg neg_ new_empty new_empty_strided new_full new_ones new_zeros one_hot
ones ones_like pixel_shuffle rand rand_like randn randn_like relu relu_ repeat repeat_interleave
roll round scalar_tensor scatter select_backward select_scatter set_ sgn sign slice_backward
slice_scatter sort split stack threshold threshold_backward topk tril triu trunc unfold_backward
where zero_ zeros zeros_like _local_scalar_dense _to_copy _unsafe_view resolve_conj resolve_neg
value_selecting_reduction_backward max_pool2d_with_indices
"""
# Their terms are the inputs, or products of them; the sum may cancel.
_SUMS = """
sum nansum mean mm bmm mv dot addmm addmv baddbmm addbmm cumsum var var_mean std std_mean
convolution convolution_backward linalg_vector_norm norm logsumexp index_add index_put
scatter_add index_add_ index_put_ scatter_add_ embedding_dense_backward trace _embedding_bag
avg_pool2d avg_pool2d_backward adaptive_avg_pool2d _adaptive_avg_pool2d
"""
# Fused: only their parts show what cancels inside.
_FUSED = ("softmax", "norm", "loss", "logsigmoid", "gelu", "silu", "mish", "glu", "softplus")


def sizes_of_terms(run: Callable[[], Sequence[Any]]) -> Optional[list[Any]]:
    """Of each result of `run`, which computes in f64: how large its terms are, element by element.
    None for what is no floating tensor; None for all if the reference does not run so."""
    torch = torch_module()
    try:
        exact = list(run())
        sizes = [torch.zeros_like(_real(one)) if _is_wide(one) else None for one in exact]
        for seed in range(_RUNS):
            with _noise(seed):
                moved = list(run())
            for n, (one, other) in enumerate(zip(exact, moved)):
                if sizes[n] is not None:
                    step = (_real(other - one).abs() / _SHARE).nan_to_num(0.0, 0.0, 0.0)
                    sizes[n] = torch.maximum(sizes[n], step)
    except Exception:  # an operation that does not run under a mode, or other shapes
        return None
    return sizes


def _is_wide(value: Any) -> bool:
    torch = torch_module()
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128)


def _real(tensor: Any) -> Any:
    tensor = tensor.detach()
    return tensor.abs() if tensor.dtype.is_complex else tensor


def _noise(seed: int) -> Any:
    return _noisy_class()(seed)


@functools.cache
def _noisy_class() -> Any:
    torch = torch_module()
    from torch._decomp import decomposition_table
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    exact, sums = frozenset(_EXACT.split()), frozenset(_SUMS.split())

    class Noisy(TorchDispatchMode):
        """Each operation that rounds gives a result that is off by a random share."""

        def __init__(self, seed: int) -> None:
            super().__init__()
            self._generators: dict[Any, Any] = {}
            self._seed = seed
            self._backends: Any = None

        def __enter__(self) -> Any:
            # The fused kernels of attention show nothing of their parts.
            backends = torch.nn.attention
            self._backends = backends.sdpa_kernel(backends.SDPBackend.MATH)
            self._backends.__enter__()
            return super().__enter__()

        def __exit__(self, *details: Any) -> None:
            super().__exit__(*details)
            if self._backends is not None:
                self._backends.__exit__(*details)
                self._backends = None

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            name = function._opname if hasattr(function, "_opname") else str(function)
            if any(part in name for part in _FUSED) and function in decomposition_table:
                with self.again():
                    return decomposition_table[function](*args, **kwargs)
            returns = function._schema.returns
            if name in exact or any(
                one.alias_info is not None and not one.alias_info.is_write for one in returns
            ):
                return function(*args, **kwargs)
            if name in sums and not function._schema.is_mutable:
                args, kwargs = pytree.tree_map(self._off, (args, kwargs))
            found = function(*args, **kwargs)
            if function._schema.is_mutable:
                for argument, value in zip(function._schema.arguments, args):
                    if argument.alias_info is not None and _is_wide(value):
                        value.mul_(self._factor(value))
                return found
            return pytree.tree_map(self._off, found)

        def again(self) -> Any:
            return _Again(self)

        def _factor(self, value: Any) -> Any:
            place = value.device
            if place not in self._generators:
                made = torch.Generator(place)
                self._generators[place] = made.manual_seed(self._seed)
            noise = torch.randn(
                value.shape,
                generator=self._generators[place],
                dtype=torch.float64,
                device=place,
            )
            return 1 + _SHARE * noise

        def _off(self, value: Any) -> Any:
            return value * self._factor(value) if _is_wide(value) else value

    class _Again:
        """The mode once more, for the parts of a fused operation."""

        def __init__(self, mode: Any) -> None:
            self.mode = mode

        def __enter__(self) -> None:
            TorchDispatchMode.__enter__(self.mode)

        def __exit__(self, *details: Any) -> None:
            TorchDispatchMode.__exit__(self.mode, *details)

    return Noisy
