# SPDX-License-Identifier: Apache-2.0
"""Which bytes may a kernel touch through an argument? Those from the first to the last element
that the strides reach, as for an op.

torch tensors, NumPy arrays and whatever has __cuda_array_interface__ (CuPy, Numba) are taken as
they are: nothing is copied, so a kernel's writes are seen by the caller.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .. import _masked
from ..errors import KilnError


@dataclass(frozen=True)
class Memory:
    """A piece of memory behind a pointer. `gpu` is the index of the CUDA device, None: the CPU."""

    address: int
    begin: int
    bytes: int
    writable: bool
    gpu: Optional[int]


def memory_of(value: Any, name: str) -> Optional[Memory]:
    """The memory of an array; None: `value` is not one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_tensor(value, name)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _of_numpy(value, name)
    interface = getattr(value, "__cuda_array_interface__", None)
    return None if interface is None else _of_interface(interface, name)


def _of_tensor(value: Any, name: str) -> Memory:
    if value.layout is not sys.modules["torch"].strided:
        raise KilnError(
            f"cannot pass {name} to a kernel",
            f"its layout is {value.layout}: it has no single piece of memory",
            "pass its parts (values(), indices()), or to_dense()",
        )
    if value.device.type not in ("cpu", "cuda"):
        raise KilnError(
            f"cannot pass {name} to a kernel",
            f"it is on the device '{value.device}'",
            "pass a CPU tensor (runs on the engine) or a CUDA tensor (runs on the GPU)",
        )
    gpu = value.device.index if value.device.type == "cuda" else None
    strides = [stride * value.element_size() for stride in value.stride()]
    return _spanned(
        value.data_ptr(), value.shape, strides, value.element_size(), writable=True, gpu=gpu
    )


def _of_numpy(value: Any, name: str) -> Memory:
    if _masked.is_masked(value):
        raise KilnError(f"cannot pass {name} to a kernel", _masked.WHY, _masked.FIX)
    if not value.dtype.isnative:
        raise KilnError(
            f"cannot pass {name} to a kernel",
            f"its dtype {value.dtype.str} has the other byte order",
            "pass x.astype(x.dtype.newbyteorder('='))",
        )
    if value.dtype.hasobject:
        raise KilnError(
            f"cannot pass {name} to a kernel",
            f"its dtype {value.dtype} holds Python objects",
            "pass an array of numbers",
        )
    return _spanned(
        value.ctypes.data, value.shape, value.strides, value.itemsize, value.flags.writeable, None
    )


def _of_interface(interface: Any, name: str) -> Memory:
    address, read_only = interface["data"]
    size = int(interface["typestr"][2:])
    strides = interface.get("strides")
    if strides is None:
        strides, step = [], size
        for length in reversed(interface["shape"]):
            strides.insert(0, step)
            step *= length
    return _spanned(address or 0, interface["shape"], strides, size, not read_only, _current_gpu())


def _current_gpu() -> int:
    """The device of an array that does not say where it is: the current one of its library."""
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        return int(cupy.cuda.runtime.getDevice())
    torch = sys.modules.get("torch")
    return int(torch.cuda.current_device()) if torch is not None else 0


def _spanned(
    address: int,
    shape: Sequence[int],
    strides: Sequence[int],
    element_bytes: int,
    writable: bool,
    gpu: Optional[int],
) -> Memory:
    """Strides in bytes; NumPy's may be negative, so memory may begin before the first element."""
    if any(length == 0 for length in shape):
        return Memory(address, address, 0, writable, gpu)
    steps = [(length - 1) * stride for length, stride in zip(shape, strides)]
    below = sum(step for step in steps if step < 0)
    above = sum(step for step in steps if step > 0)
    return Memory(address, address + below, above - below + element_bytes, writable, gpu)


def tensor_at(address: int) -> Optional[Memory]:
    """The whole storage of the CPU tensor of this process that holds an address; None: no tensor
    does.

    Kernels that take tables of pointers get addresses as numbers. torch keeps no list of its
    storages, so the collector's list of objects is searched: slow, and only for such arguments.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    for value in gc.get_objects():
        if not issubclass(type(value), torch.Tensor) or type(value).__name__ == "FakeTensor":
            continue
        if value.layout is not torch.strided or value.device.type != "cpu":
            continue
        storage = value.untyped_storage()
        begin, size = storage.data_ptr(), storage.nbytes()
        if begin <= address < begin + size:
            return Memory(address, begin, size, True, None)
    return None
