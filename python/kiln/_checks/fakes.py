# SPDX-License-Identifier: Apache-2.0
"""Does a fake tell of the tensors that the op returns? torch.library.opcheck compares strides of
CUDA tensors alone."""

from __future__ import annotations

from typing import Any

from .arguments import Call


def check_fake(overload: Any, call: Call) -> None:
    """Raises AssertionError at the first result whose sizes, strides, dtype or device the fake
    tells wrongly."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    own = call.copy()
    real = _leaves(overload(*own.args, **own.kwargs))
    mode = FakeTensorMode()
    shadow = call.copy().map(lambda tensor, _written: mode.from_tensor(tensor))
    with mode:
        declared = _leaves(overload(*shadow.args, **shadow.kwargs))
    if len(declared) != len(real):
        raise AssertionError(
            f"the fake declares {len(declared)} results, the op returns {len(real)}"
        )
    for index, (fake, seen) in enumerate(zip(declared, real)):
        name = "the result" if len(real) == 1 else f"result {index}"
        for what, ours, theirs in (
            ("sizes", tuple(fake.shape), tuple(seen.shape)),
            ("strides", _strides_that_matter(fake), _strides_that_matter(seen)),
            ("dtype", fake.dtype, seen.dtype),
            ("device", fake.device, seen.device),
        ):
            if ours != theirs:
                raise AssertionError(f"{name} has {what} {theirs}, the fake says {ours}")


def _strides_that_matter(tensor: Any) -> tuple[Any, ...]:
    """A dimension of one element, or a tensor of none, may have any stride."""
    if tensor.numel() == 0:
        return ()
    return tuple(
        stride if size > 1 else "any" for size, stride in zip(tensor.shape, tensor.stride())
    )


def _leaves(results: Any) -> list[Any]:
    if isinstance(results, (list, tuple)):
        return [leaf for result in results for leaf in _leaves(result)]
    return [results] if hasattr(results, "stride") else []
